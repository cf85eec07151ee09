"""The command line measuring for real, on `tiny`: bytes on stdout, sentences on stderr, exit codes."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gputop import backends
from gputop.results.columns import COLUMNS
from gputop.results.records import TOTAL_ROWS
from tests.homes import homes_in

ROOT = Path(__file__).resolve().parents[2]
GPUTOP = (sys.executable, "-m", "gputop")
TINY = ("--backend", "cpu", "--workload", "tiny")
QUICK = (*TINY, "--seconds", "0.3")
KEYS = [column.key for column in COLUMNS]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's home of these tests' own; ceilings are measured once in it."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def env(home: Path, calibrated: Path) -> dict[str, str]:
    return {**os.environ, **homes_in(home, calibrated), "PYTHONPATH": str(ROOT)}


def gputop(env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """Run it with nothing on stdin and no terminal."""
    done = subprocess.run(
        (*GPUTOP, *words), env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=150, check=False
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    assert "Traceback" not in err
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


def altered(folder: Path, env: dict[str, str], code: str) -> dict[str, str]:
    """An environment whose `ssh` runs, on this machine, a worker with its session altered by `code`."""
    (folder / "worker.py").write_text(
        f"import os\nfrom gputop.session.session import Session\n{code}\n"
        "from gputop.ipc.worker import main\nraise SystemExit(main())\n"
    )
    ssh = folder / "ssh"
    ssh.write_text(f"#!/bin/sh\nexec {sys.executable} {folder}/worker.py\n")
    ssh.chmod(0o755)
    return {**env, "PATH": f"{folder}{os.pathsep}{env['PATH']}"}


def test_inspect_takes_each_site_of_a_plan_apart(env: dict[str, str]) -> None:
    done = gputop(env, "inspect", "cpu-blas", *QUICK, "--site", "all")
    assert done.returncode == 0, done.stderr
    for site in ("embed", "qkv", "attention", "w2", "head"):
        assert f"\n{site} · cpu_" in f"\n{done.stdout}"
    assert "time by term" in done.stdout
    assert "this phase, layer" in done.stdout


def test_alone_without_a_terminal_it_prints_the_phase_table_with_its_gate(env: dict[str, str]) -> None:
    done = gputop(env, *QUICK, "--rung", "cpu-blas")
    assert done.returncode == 0, done.stderr
    assert "no terminal here, so this is what `gputop run` prints" in done.stderr
    lines = done.stdout.splitlines()
    heading = next(line for line in lines if line.startswith("phase"))
    assert heading.split() == ["phase", "n", "kernel", "time", "floor", "of", "floor", "binds", "gate"]
    first_words = [line.split()[0] for line in lines if line.strip()]
    assert [word for word in first_words if word in TOTAL_ROWS] == list(TOTAL_ROWS)
    assert {"embed", "qkv", "w2", "head"} <= set(first_words)
    gate = next(line for line in lines if line.startswith("gate "))
    assert re.search(r"gate PASS.*logits -?\d+\.\d{6} -?\d+\.\d{6}.*error \d\.\de-\d+ of 1\.0e-05", gate)
    assert "timer perf_counter" in done.stdout
    assert "plan cpu-blas" in done.stdout


def test_where_a_start_goes_is_said_by_both_processes_from_one_start(
    env: dict[str, str], tmp_path: Path
) -> None:
    home = {"XDG_STATE_HOME": str(tmp_path / "state")}
    done = gputop({**env, **home, "GPUTOP_TIMES": "1"}, "run", *QUICK)
    assert done.returncode == 0, done.stderr
    (log,) = tmp_path.rglob("worker.log")
    lines = re.findall(r"^ *(\d+\.\d{3}) s  (.+)$", done.stderr + log.read_text(), re.MULTILINE)
    marks = {step: float(seconds) for seconds, step in lines}
    steps = ("gputop: started", "worker: started", "worker: Open", "worker: Measure", "gputop: done")
    assert sorted(steps, key=marks.__getitem__) == list(steps)
    assert not re.search(r"^ *\d+\.\d{3} s  ", gputop(env, "run", *QUICK).stderr, re.MULTILINE)


def test_a_plan_is_one_word_here_as_in_a_comparison(env: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    word = "cpu-blas,prune=on,w2:cpu_loops_gemm"
    done = gputop(env, "run", *QUICK, "--rung", word, "--batch", "2", "--csv", str(path))
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    assert {row["plan"] for row in rows} == {"cpu-blas,prune=on,batch=2,w2:cpu_loops_gemm"}


def test_what_is_exported_under_a_german_locale_reads_back(env: dict[str, str], tmp_path: Path) -> None:
    german = {**env, "LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8"}
    path = tmp_path / "t.json"
    done = gputop(german, "run", *QUICK, "--windows", "2", "--csv", "-", "--json", str(path))
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert list(rows[0]) == KEYS
    devices = [row for row in rows if row["phase"] == "device"]
    assert [row["window"] for row in devices] == ["1", "2"]
    assert all(0 < float(row["time_s"]) < 10 for row in devices)
    assert {row["gate"] for row in rows} == {"PASS"}, "exported without the phases' own gate"
    assert "nan" not in done.stdout
    same = json.loads(path.read_text())["rows"]
    assert list(same[0]) == KEYS
    assert same[0]["registers"] is None
    assert [(row["phase"], str(row["time_s"] or "")) for row in same] == [
        (row["phase"], row["time_s"]) for row in rows
    ]


def test_a_file_and_a_dash_get_the_same_bytes(env: dict[str, str], tmp_path: Path) -> None:
    """Of ceilings that are the same each time, with what an encoder or a newline filter would spoil."""
    steady = altered(
        tmp_path,
        env,
        "from gputop.results.records import Ceiling, Ceilings\n"
        "peak = Ceiling('dram_read', 1.25e10, 'B/s', 'a sum,\\nin \"floats\" of 4 µB')\n"
        "Session.calibrate = lambda *_: Ceilings('A processor', None, 't', (peak,))\n",
    )
    folder = tmp_path / "out"
    folder.mkdir()
    paths = {kind: folder / f"ceilings.{kind}" for kind in ("csv", "json")}
    command = ("calibrate", *TINY, "--remote", "here")
    shown = gputop(steady, *command, "--csv", str(paths["csv"]), "--json", str(paths["json"]))
    assert shown.returncode == 0, shown.stderr
    assert "12.5 GB/s" in shown.stdout
    for kind, path in paths.items():
        assert gputop(steady, *command, f"--{kind}", "-").stdout.encode() == path.read_bytes()
    assert sorted(folder.iterdir()) == sorted(paths.values()), "something was left beside the files"


@pytest.mark.parametrize(("force", "begins"), [((), True), (("--force",), False)])
def test_ceilings_of_an_earlier_start_are_said_to_be_of_it(
    force: tuple[str, ...], begins: bool, env: dict[str, str], tmp_path: Path
) -> None:
    kept = altered(
        tmp_path,
        env,
        "from gputop.results.records import Ceiling, Ceilings\n"
        "peak = Ceiling('dram_read', 1.25e10, 'B/s', 'a sum')\n"
        "def calibrate(self, force, *_):\n"
        "    at = '9999-01-01' if force else '2026-01-02T03:04:05+00:00'\n"
        "    return Ceilings('A processor', None, at, (peak,))\n"
        "Session.calibrate = calibrate\n",
    )
    done = gputop(kept, "calibrate", *TINY, "--remote", "here", *force)
    note = "measured at 2026-01-02T03:04:05+00:00, by an earlier start; --force measures anew"
    assert (note in done.stderr) == begins


def test_compare_finds_blas_faster_than_loops(env: dict[str, str]) -> None:
    """Where others keep the machine busy a window may not be able to tell; three in a row hardly."""
    for _ in range(3):
        done = gputop(env, "compare", "cpu-loops", "cpu-blas", *TINY, "--csv", "-")
        assert done.returncode == 0, done.stderr
        rows = {row["phase"]: row for row in csv.DictReader(io.StringIO(done.stdout))}
        if rows["device"]["verdict"] == "FASTER":
            break
    device = rows["device"]
    assert device["verdict"] == "FASTER"
    assert 1 < float(device["ratio_lo"]) <= float(device["ratio"]) <= float(device["ratio_hi"])
    assert float(device["delta_hi_s"]) < 0
    assert (device["plan_a"], device["plan_b"]) == ("cpu-loops", "cpu-blas")
    assert {"qkv", "w2", "wall"} <= set(rows)


def test_one_plan_against_its_copy_is_never_faster(env: dict[str, str]) -> None:
    done = gputop(env, "compare", "cpu-blas", "--aa", *QUICK, "--windows", "2")
    assert done.returncode == 0, done.stderr
    last = done.stdout.splitlines()[-1]
    assert re.match(r"copies of cpu-blas differ by up to [\d.]+ %|how far copies of cpu-blas differ", last)
    verdict = re.search(r"^device .* (\w+)$", done.stdout, re.MULTILINE)
    assert verdict
    assert verdict[1] in ("SAME", "UNRESOLVED")
    assert done.stdout.count("gate PASS") == 2
    assert "window 2 of 2" in done.stderr


def test_the_ladder_sets_measured_beside_predicted_and_its_changes_add_up(
    env: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "ladder.csv"
    done = gputop(env, "ladder", "--attribute", "cpu-loops..cpu-blas", *QUICK, "--csv", str(path))
    assert done.returncode == 0, done.stderr
    assert "add --routing to learn which kernel suits each site of cpu-blas" in done.stderr
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["rung"] for row in rows] == ["cpu-loops", "cpu-transposed", "cpu-blas"]
    assert {row["gate"] for row in rows} == {"PASS"}, "every phase, before anything is exported"
    assert float(rows[2]["predicted"]) > 1
    assert float(rows[2]["device_s"]) > 0
    assert "cpu-loops -> cpu-transposed" in done.stdout
    assert re.search(r"^sum of the changes +[+-]?\d", done.stdout, re.MULTILINE)
    assert re.search(r"^cpu-loops -> cpu-blas +[+-]?\d.*measured directly", done.stdout, re.MULTILINE)


def test_every_kernel_is_paired_with_the_plans_own_at_each_site(env: dict[str, str], tmp_path: Path) -> None:
    """One of them gives a wrong answer: it has no time, and costs the others nothing."""
    broken = altered(
        tmp_path,
        env,
        "import numpy as np\n"
        "from functools import partial\n"
        "from gputop.backends.cpu import kernels\n"
        "def off(a, b, out):\n"
        "    return lambda: np.multiply(np.matmul(a, b), 1.01, out=out)\n"
        "kernels.TABLE['cpu_loops_attention'] = partial(kernels.attention, off)\n",
    )
    path = tmp_path / "routing.csv"
    command = ("ladder", "--rungs", "cpu-blas", "--routing", *TINY, "--seconds", "0.1")
    done = gputop(broken, *command, "--remote", "here", "--csv", str(path))
    assert done.returncode == 0, done.stderr
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    by_site = {(row["site"], row["kernel"]): row for row in rows}
    assert {site for site, _ in by_site} == {"qkv", "attention", "wo", "w1", "w2", "head"}
    for site in ("w1", "head"):
        loops = by_site[site, "cpu_loops_gemm"]
        assert float(loops["time_s"]) > 0
        assert float(loops["ratio"]) > 0
        assert by_site[site, "cpu_blas_gemm"]["incumbent"] == "true"
    wrong = by_site["attention", "cpu_loops_attention"]
    assert (wrong["time_s"], wrong["ratio"]) == ("", "")
    assert "Gate FAIL" in wrong["status"]
    assert sum(row["standing"] == "winner" for row in rows) == len({row["site"] for row in rows})


def test_batches_in_one_window_and_one_that_does_not_fit(env: dict[str, str], tmp_path: Path) -> None:
    roomy = altered(
        tmp_path,
        env,
        "from gputop.backends.cpu.backend import CpuBackend\n"
        "own = CpuBackend.need_bytes\n"
        "CpuBackend.need_bytes = lambda self, plan: own(self, plan) + (plan.batch > 2) * (1 << 50)\n",
    )
    path = tmp_path / "batches.csv"
    command = ("ladder", "--batches", "1,2,4", "--rung", "cpu-pruned,fold=off", *QUICK)
    done = gputop(roomy, *command, "--remote", "here", "--csv", str(path))
    assert done.returncode == 0, done.stderr
    with path.open(newline="") as file:
        one, two, four = csv.DictReader(file)
    assert [row["batch"] for row in (one, two, four)] == ["1", "2", "4"]
    assert one["rung"] == "cpu-pruned,fold=off"
    assert float(two["flops"]) == 2 * float(one["flops"])
    assert float(one["tokens_per_s"]) > 0
    assert four["device_s"] == ""
    assert "GB of memory" in four["status"]
    # On a busy machine no batch need be faster, and that is then said instead.
    assert "without padding and idle SMs" in done.stdout or "nothing is repaid" in done.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("run", "--set", "graph=on"), "graph exists on cuda only"),
        (("compare", "cpu-blas", "cpu-blas,w2:cpu_blas_gem"), "Did you mean 'cpu_blas_gemm'?"),
    ],
    ids=["toggle", "kernel of a word"],
)
def test_a_plan_that_can_not_be_is_refused_with_why(
    words: tuple[str, ...], expected: str, env: dict[str, str]
) -> None:
    done = gputop(env, *words, *QUICK)
    assert (done.returncode, done.stdout) == (2, "")
    assert expected in done.stderr


def test_a_batch_beyond_memory_is_refused_before_anything_is_lost(
    env: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "long.toml"
    path.write_text("layers = 1\nd_model = 64\nheads = 4\nd_ff = 256\nseq = 32768\nvocab = 256\n")
    done = gputop(env, "run", "--backend", "cpu", "--workload", str(path), "--batch", "4096")
    assert (done.returncode, done.stdout) == (2, "")
    assert "batch" in done.stderr


def test_cuda_where_there_is_none_is_not_here_and_says_what_mends_it(env: dict[str, str]) -> None:
    if backends.load("cuda").available() is None:
        pytest.skip("a GPU can be used here")
    done = gputop(env, "run", "--backend", "cuda", "--workload", "tiny")
    assert (done.returncode, done.stdout) == (3, "")
    assert re.search(r"cuda1[23]|driver", done.stderr)


def test_a_gpu_that_is_passed_over_is_told_once_beside_the_data(env: dict[str, str], tmp_path: Path) -> None:
    said = "A GPU is here and is not used: add it."
    beside = altered(
        tmp_path, env, f"from gputop import backends\nbackends.choose = lambda name: ('cpu', {said!r})"
    )
    words = ("run", "--workload", "tiny", "--seconds", "0.1", "--windows", "2", "--remote", "here")
    done = gputop(beside, *words)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(f"gputop: {said}\n") == 1
    assert said not in done.stdout


def test_a_failed_gate_shows_no_time_and_exits_1(env: dict[str, str], tmp_path: Path) -> None:
    """A kernel of the cpu backend that is one percent off."""
    broken = altered(
        tmp_path,
        env,
        "import numpy as np\n"
        "from functools import partial\n"
        "from gputop.backends.cpu import kernels\n"
        "def off(a, b, out):\n"
        "    return lambda: np.multiply(np.matmul(a, b), 1.01, out=out)\n"
        "kernels.TABLE['cpu_blas_gemm'] = partial(kernels.gemm, off)\n",
    )
    path = tmp_path / "t.csv"
    done = gputop(broken, "run", *QUICK, "--rung", "cpu-blas", "--remote", "here", "--csv", str(path))
    assert done.returncode == 1, done.stderr
    assert "gate FAIL" in done.stdout
    with path.open(newline="") as file:
        [row] = csv.DictReader(file)
    assert (row["phase"], row["gate"], row["time_s"]) == ("device", "FAIL", "")
    assert row["status"]
    assert "Gate FAIL" in done.stderr
    assert not re.search(r"\d (ms|µs|ns)\b", done.stdout)


def test_a_worker_lost_in_a_window_costs_that_window(env: dict[str, str], tmp_path: Path) -> None:
    mortal = altered(
        tmp_path,
        env,
        f"first = {str(tmp_path / 'first')!r}\n"
        "own = Session.measure\n"
        "def measure(self, *plans, **options):\n"
        "    if not os.path.exists(first):\n"
        "        open(first, 'w').close()\n"
        "        os.kill(os.getpid(), 9)\n"
        "    return own(self, *plans, **options)\n"
        "Session.measure = measure\n",
    )
    done = gputop(mortal, "run", *QUICK, "--remote", "here")
    assert done.returncode == 0, done.stderr
    assert "killed by SIGKILL" in done.stderr
    assert "Starting a new worker" in done.stderr
    assert "gate PASS" in done.stdout


def test_a_worker_that_always_dies_exits_4(env: dict[str, str], tmp_path: Path) -> None:
    doomed = altered(tmp_path, env, "Session.measure = lambda *plans, **options: os.kill(os.getpid(), 11)\n")
    done = gputop(doomed, "run", *QUICK, "--remote", "here")
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.count("SIGSEGV") == 2


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
@pytest.mark.parametrize("command", ["run", "record"])
def test_an_interrupt_ends_quietly_and_takes_the_worker_along(
    command: str, number: signal.Signals, code: int, env: dict[str, str], tmp_path: Path
) -> None:
    """Only `record` says something: what became of the file. Without a window nothing is kept."""
    pipe = tmp_path / "pid"
    os.mkfifo(pipe)
    busy = altered(
        tmp_path,
        env,
        "own = Session.measure\n"
        "def measure(self, *plans, **options):\n"
        f"    with open({str(pipe)!r}, 'w') as told:\n"
        "        told.write(str(os.getpid()))\n"
        "    return own(self, *plans, **options)\n"
        "Session.measure = measure\n",
    )
    file = tmp_path / "ladder.jsonl"
    words = (command, str(file), "--rungs", "cpu-blas") if command == "record" else (command,)
    process = subprocess.Popen(
        (*GPUTOP, *words, *TINY, "--seconds", "600", "--remote", "here"),
        env=busy,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    worker = int(pipe.read_text())
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert out == b""
    last = err.decode().splitlines()[-1:]
    left = "gputop: stopped before the first window: nothing was recorded"
    assert last == ([left] if command == "record" else [])
    assert not list(tmp_path.glob("ladder*"))
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)
