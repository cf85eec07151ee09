"""The command line as a user meets it: bytes on stdout, sentences on stderr, exit codes."""

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

from gputop import __version__
from gputop.cli import main
from gputop.cli.commands import COMMANDS
from gputop.columns import COLUMNS

ROOT = Path(__file__).resolve().parents[2]
GPUTOP = (sys.executable, "-m", "gputop")
TINY = ("--backend", "cpu", "--workload", "tiny")
QUICK = (*TINY, "--seconds", "0.3")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's home of these tests' own; ceilings are measured once in it."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def env(home: Path) -> dict[str, str]:
    folders = {name: str(home / name) for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME")}
    return {**os.environ, **folders, "PYTHONPATH": str(ROOT)}


def gputop(env: dict[str, str], *words: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        (*GPUTOP, *words),
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,  # type: ignore[call-overload]
    )


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The sentence of a bad input that is refused before any worker starts."""
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("gputop: ")
    assert err.count("\n") == 1
    return err


def stand_in_for_ssh(folder: Path, env: dict[str, str], code: str) -> dict[str, str]:
    """An environment whose `ssh` runs, on this machine, a worker with its session altered by `code`."""
    (folder / "worker.py").write_text(
        f"import os\nfrom gputop.session import Session\n{code}\n"
        "from gputop.worker import main\nraise SystemExit(main())\n"
    )
    ssh = folder / "ssh"
    ssh.write_text(f"#!/bin/sh\nexec {sys.executable} {folder}/worker.py\n")
    ssh.chmod(0o755)
    return {**env, "PATH": f"{folder}{os.pathsep}{env['PATH']}"}


def test_run_prints_the_phase_table_with_its_gate(env: dict[str, str]) -> None:
    done = gputop(env, "run", *QUICK, "--rung", "cpu-blas")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    heading = next(line for line in lines if line.startswith("phase"))
    assert heading.split() == ["phase", "n", "kernel", "time", "floor", "of", "floor", "binds", "gate"]
    first_words = [line.split()[0] for line in lines if line.strip()]
    assert [word for word in first_words if word in ("sum", "gaps", "device", "wall", "residual")] == [
        "sum", "gaps", "device", "wall", "residual",
    ]  # fmt: skip
    assert {"embed", "qkv", "w2", "head"} <= set(first_words)
    gate = next(line for line in lines if line.startswith("gate "))
    assert re.search(r"gate PASS.*logits -?\d+\.\d{6} -?\d+\.\d{6}.*error \d\.\de-\d+ of 1\.0e-05", gate)
    assert "timer perf_counter" in done.stdout
    assert "plan cpu-blas" in done.stdout


def test_alone_without_a_terminal_it_prints_what_run_prints_and_says_so(env: dict[str, str]) -> None:
    done = gputop(env, *QUICK)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("phase ") == 1
    assert "no terminal here, so this is what `gputop run` prints" in done.stderr


def test_several_windows_are_numbered(env: dict[str, str]) -> None:
    done = gputop(env, "run", *QUICK, "--windows", "2", "--csv", "-")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert {row["window"] for row in rows} == {"1", "2"}


def test_csv_reads_back_under_a_german_locale(env: dict[str, str]) -> None:
    german = {**env, "LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8"}
    done = gputop(german, "run", *QUICK, "--csv", "-")
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert list(rows[0]) == [column.key for column in COLUMNS]
    device = next(row for row in rows if row["phase"] == "device")
    assert 0 < float(device["time_s"]) < 10
    assert device["gate"] == "PASS"
    assert "nan" not in done.stdout
    assert "gate PASS" not in done.stdout


def test_a_file_and_a_dash_get_the_same_bytes(env: dict[str, str], tmp_path: Path) -> None:
    """Of ceilings, which are measured once and then read back."""
    gputop(env, "calibrate", *TINY)
    for kind in ("csv", "json"):
        path = tmp_path / f"ceilings.{kind}"
        to_file = gputop(env, "calibrate", *TINY, f"--{kind}", str(path))
        to_stdout = subprocess.run(
            (*GPUTOP, "calibrate", *TINY, f"--{kind}", "-"), env=env, capture_output=True, check=True
        )
        assert path.read_bytes() == to_stdout.stdout
        assert "dram_read" in to_file.stdout
        assert list(tmp_path.iterdir()) == [path]
        path.unlink()


def test_json_has_the_same_names_and_null_for_unknown(env: dict[str, str], tmp_path: Path) -> None:
    done = gputop(env, "run", *QUICK, "--json", "-", "--csv", str(tmp_path / "t.csv"))
    table = json.loads(done.stdout)
    assert list(table["rows"][0]) == [column.key for column in COLUMNS]
    assert table["rows"][0]["registers"] is None
    with (tmp_path / "t.csv").open(newline="") as file:
        assert [row["phase"] for row in csv.DictReader(file)] == [row["phase"] for row in table["rows"]]


def test_compare_finds_blas_faster_than_loops(env: dict[str, str]) -> None:
    done = gputop(env, "compare", "cpu-loops", "cpu-blas", *TINY, "--csv", "-")
    assert done.returncode == 0, done.stderr
    rows = {row["phase"]: row for row in csv.DictReader(io.StringIO(done.stdout))}
    device = rows["device"]
    assert device["verdict"] == "FASTER"
    assert 1 < float(device["ratio_lo"]) <= float(device["ratio"]) <= float(device["ratio_hi"])
    assert float(device["delta_hi_s"]) < 0
    assert (device["plan_a"], device["plan_b"]) == ("cpu-loops", "cpu-blas")


def test_one_plan_against_its_copy_is_never_faster(env: dict[str, str]) -> None:
    done = gputop(env, "compare", "cpu-blas", "--aa", *TINY, "--csv", "-")
    assert done.returncode == 0, done.stderr
    rows = {row["phase"]: row for row in csv.DictReader(io.StringIO(done.stdout))}
    assert rows["device"]["verdict"] in ("SAME", "UNRESOLVED")
    assert float(rows["device"]["aa_floor"]) >= 0.003


def test_compare_says_its_verdict_in_words(env: dict[str, str]) -> None:
    done = gputop(env, "compare", "cpu-loops", "cpu-blas", *QUICK, "--windows", "2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("gate PASS") == 2
    assert re.search(r"^device .*FASTER$", done.stdout, re.MULTILINE)
    assert "window 2 of 2" in done.stderr


def test_the_ladder_sets_measured_beside_predicted(env: dict[str, str]) -> None:
    done = gputop(env, "ladder", "--rungs", "cpu-loops,cpu-transposed,cpu-blas", *QUICK, "--csv", "-")
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["rung"] for row in rows] == ["cpu-loops", "cpu-transposed", "cpu-blas"]
    assert float(rows[2]["predicted"]) > 1
    assert float(rows[2]["device_s"]) > 0


def test_attribution_adds_up(env: dict[str, str]) -> None:
    done = gputop(env, "ladder", "--attribute", "cpu-loops..cpu-blas", *QUICK)
    assert done.returncode == 0, done.stderr
    assert "cpu-loops -> cpu-transposed" in done.stdout
    assert re.search(r"^sum +[+-]?\d", done.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("rungs", "cpu-blas"),
        ("toggles", "fused_qkv"),
        ("kernels", "cpu_blas_gemm"),
        ("sites", "attention"),
        ("phases", "lnf"),
        ("workloads", "gpt2-small"),
        ("backends", "cpu"),
        ("devices", "cores"),
        ("columns", "gputop.compare/1"),
    ],
)
def test_list_names_what_other_commands_take(
    what: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["list", what]) == 0
    assert expected in capsys.readouterr().out


def test_list_sites_knows_a_pruned_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "sites", "--rung", "cpu-pruned", *TINY]) == 0
    assert "w1@1" in capsys.readouterr().out


def test_doctor_names_the_command_that_mends(env: dict[str, str]) -> None:
    done = gputop(env, "doctor")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^ok +numpy +\d", done.stdout, re.MULTILINE)
    assert "pip install gputop\n" not in done.stdout
    for line in done.stdout.splitlines():
        if line.startswith("missing"):
            assert f"{line}\n{' ' * 8}" in done.stdout
    assert "backends: cpu" in done.stdout


def test_the_version_is_told_without_loading_anything_heavy(env: dict[str, str]) -> None:
    done = subprocess.run(
        (sys.executable, "-X", "importtime", "-m", "gputop", "--version"),
        env=env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == f"gputop {__version__}\n"
    assert not re.search(r"\| +(numpy|textual|msgspec|gputop\.phases)$", done.stderr, re.MULTILINE)


@pytest.mark.parametrize("name", [command.name for command in COMMANDS])
def test_every_command_explains_itself_with_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        main([name, "--help"])
    assert leaving.value.code == 0
    assert re.search(rf"examples?:\n  .*gputop {name}", capsys.readouterr().out)


def test_the_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out
    assert all(f"  {command.name} " in out for command in COMMANDS)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("rnu",), "Did you mean 'run'?"),
        (("search",), "Unknown command 'search'"),
        (("run", "--bacth", "4"), "Did you mean --batch?"),
        (("run", "extra"), "Unexpected argument 'extra'"),
        (("--workload", "tiny", "run"), "Unexpected argument 'run'"),
        (("run", "--backend", "cdua"), "Did you mean 'cuda'?"),
        (("run", "--batch", "0"), "--batch: 0 is too small"),
        (("run", "--batch", "two"), "'two' is not a whole number"),
        (("run", "--windows", "-3"), "-3 is too small"),
        (("run", "--seconds", "nan"), "no length for a window"),
        (("run", "--seconds", "0"), "no length for a window"),
        (("run", "--set", "fold"), "not of the form TOGGLE=VALUE"),
        (("run", "--use", "=x"), "not of the form SITE=KERNEL"),
        (("run", "--csv"), "--csv: expected one argument"),
        (("run", "--csv", "-", "--json", "-"), "can't both go to stdout"),
        (("run", "--workload", "tinny"), "Did you mean 'tiny'?"),
        (("run", "--workload", "no-such.toml"), "no-such.toml"),
        (("run", "--kernels", "no-such-folder"), "no such folder"),
        (("run", "--remote", "-oProxyCommand=x"), "expected one argument"),
        (("run", "--remote=-oProxyCommand=x"), "no ssh destination"),
        (("compare",), "required: A"),
        (("compare", "cpu-blas"), "two plans, or one and --aa"),
        (("compare", "cpu-blas", "cpu-loops", "--aa"), "give one plan"),
        (("compare", "=", "cpu-loops"), "RUNG[,TOGGLE=VALUE...]"),
        (("compare", "cpu-blas", "cpu-blas,fold"), "neither TOGGLE=VALUE nor SITE:KERNEL"),
        (("list", "rugns"), "Did you mean 'rungs'?"),
        (("list", "sites", "--rung", "cpu-bals"), "Did you mean 'cpu-blas'?"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_a_mistake_is_answered_by_a_sentence(
    words: tuple[str, ...], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert expected in refusal(capsys, *words)


TOML = {"layers": 2, "d_model": 64, "heads": 4, "d_ff": 256, "seq": 16, "vocab": 256}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"sequence": 16}, "unknown key 'sequence'"),
        ({"heads": "4"}, "heads must be a whole number"),
        ({"heads": 5}, "does not divide d_model"),
        ({"layers": 0}, "layers must be at least 1"),
        ({"seq": -16}, "seq must be at least 1"),
        ({"d_ff": 10**12}, "d_ff"),
    ],
    ids=["key", "type", "heads", "zero", "negative", "absurd"],
)
def test_a_workload_that_is_no_model_is_refused(
    change: dict[str, object], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.toml"
    path.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in {**TOML, **change}.items()))
    message = refusal(capsys, "run", "--workload", str(path))
    assert expected in message
    assert "model.toml" in message


def test_an_unwritable_path_is_refused_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for command in (("run",), ("ladder",), ("calibrate",), ("compare", "cpu-loops", "cpu-blas")):
        assert "there is no folder" in refusal(capsys, *command, "--csv", str(tmp_path / "none" / "t.csv"))
    assert "folder" in refusal(capsys, "run", "--json", str(tmp_path))
    assert list(tmp_path.iterdir()) == [], "a worker would have left its log here"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--rung", "cpu-bals"), "Did you mean 'cpu-blas'?"),
        (("--rung", "naive"), "runs on cuda, not on cpu"),
        (("--set", "fodl=on"), "Did you mean 'fold'?"),
        (("--set", "fold=maybe"), "fold is one of on, off"),
        (("--set", "graph=on"), "graph exists on cuda only"),
        (("--use", "w3=cpu_blas_gemm"), "Did you mean 'w"),
        (("--use", "w2=cpu_blas_gem"), "Did you mean 'cpu_blas_gemm'?"),
        (("--use", "w2=cpu_embed"), "can't serve w2"),
        (("--device", "7"), "7"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_a_plan_that_can_not_be_is_refused_with_why(
    words: tuple[str, ...], expected: str, env: dict[str, str]
) -> None:
    done = gputop(env, "run", *QUICK, *words)
    assert done.returncode in (2, 3)
    assert done.returncode == (3 if "--device" in words else 2)
    assert done.stdout == ""
    assert expected in done.stderr
    assert "Traceback" not in done.stderr


def test_a_batch_beyond_memory_is_refused_before_anything_is_lost(
    env: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "long.toml"
    path.write_text("".join(f"{key} = {value}\n" for key, value in {**TOML, "seq": 32768}.items()))
    done = gputop(env, "run", "--backend", "cpu", "--workload", str(path), "--batch", "4096")
    assert done.returncode == 2, done.stderr
    assert "batch" in done.stderr
    assert done.stdout == ""


def test_cuda_where_there_is_none_is_not_here_and_says_what_mends_it(env: dict[str, str]) -> None:
    if gputop(env, "doctor", "--backend", "cuda").returncode == 0:
        pytest.skip("a GPU can be used here")
    done = gputop(env, "run", "--backend", "cuda", "--workload", "tiny")
    assert done.returncode == 3
    assert re.search(r"gputop-roofline\[cuda1[23]\]|driver", done.stderr)
    assert done.stdout == ""


def test_doctor_asked_for_cuda_fails_where_it_can_not_work(env: dict[str, str]) -> None:
    done = gputop(env, "doctor", "--backend", "cuda")
    assert done.returncode in (0, 3)
    assert (done.returncode == 3) == ("cuda does not" in done.stdout)
    if done.returncode == 3:
        assert "Mend it:" in done.stderr


def test_a_failed_gate_shows_no_time_and_exits_1(env: dict[str, str], tmp_path: Path) -> None:
    """A kernel of the cpu backend that forgets a part of its answer."""
    broken = stand_in_for_ssh(
        tmp_path,
        env,
        "from gputop.backends.cpu import kernels\n"
        "for name in [n for n in kernels.KERNELS if 'blas_gemm' in n]:\n"
        "    def spoiled(*operands, own=kernels.KERNELS[name], **options):\n"
        "        own(*operands, **options)\n"
        "        operands[-1][...] *= 1.01\n",
    )
    done = gputop(broken, "run", *QUICK, "--remote", "here", "--csv", str(tmp_path / "t.csv"))
    assert done.returncode == 1, done.stderr
    assert "gate FAIL" in done.stdout
    assert not re.search(r"\d (ms|µs|us|s)\b", done.stdout.split("gate FAIL")[0].splitlines()[-1])
    assert "Gate FAIL" in done.stderr


def test_a_worker_lost_in_a_window_costs_that_window(env: dict[str, str], tmp_path: Path) -> None:
    mortal = stand_in_for_ssh(
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
    doomed = stand_in_for_ssh(
        tmp_path, env, "Session.measure = lambda self, *plans, **options: os.kill(os.getpid(), 11)\n"
    )
    done = gputop(doomed, "run", *QUICK, "--remote", "here")
    assert done.returncode == 4
    assert done.stderr.count("SIGSEGV") == 2
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_reader_that_leaves_is_no_fault(env: dict[str, str]) -> None:
    process = subprocess.Popen(
        (*GPUTOP, "list", "columns"), env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert process.wait(timeout=60) == 0
    process.stderr.close()


def test_an_interrupt_ends_quietly_and_takes_the_worker_along(env: dict[str, str], tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    busy = stand_in_for_ssh(
        tmp_path,
        env,
        "own = Session.measure\n"
        "def measure(self, *plans, **options):\n"
        f"    fifo = os.open({str(pid_file)!r}, os.O_WRONLY)\n"
        "    os.write(fifo, str(os.getpid()).encode())\n"
        "    os.close(fifo)\n"
        "    return own(self, *plans, **options)\n"
        "Session.measure = measure\n",
    )
    os.mkfifo(pid_file)
    process = subprocess.Popen(
        (*GPUTOP, "run", *TINY, "--seconds", "600", "--remote", "here"),
        env=busy, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    worker = int(pid_file.read_text())
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (out, err) == (b"", b"")
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)


def test_a_fault_of_its_own_is_a_sentence_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gputop.cli.commands.COMMANDS", None)
    assert main(["run"]) == 70
    assert "TypeError" in capsys.readouterr().err
    monkeypatch.setenv("GPUTOP_TRACEBACK", "1")
    with pytest.raises(TypeError):
        main(["run"])
