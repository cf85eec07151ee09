"""The command line where nothing is measured: mistakes, names, help, and what is refused beforehand."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gputop import __version__
from gputop.backends.cpu.machine import processor
from gputop.cli import main
from gputop.cli.command_table import COMMANDS
from gputop.cli.commands.ladder import chosen
from gputop.cli.terminal import why_no_screen
from gputop.phases import rungs
from gputop.plan.choices import RungView
from gputop.results.host_words import cores_words
from gputop.util.errors import UsageError
from gputop.util.host_cpu import usable_cores

GPUTOP = (sys.executable, "-m", "gputop")


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a worker's log would appear."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The sentence of a bad input."""
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("gputop: ")
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("rnu",), "Did you mean 'run'?"),
        (("tune",), "Unknown command 'tune'"),
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
        (("run", "--rung", "graph,math"), "neither TOGGLE=VALUE nor SITE:KERNEL"),
        (("run", "--rung", "math=fp32"), "A plan begins with a rung"),
        (("run", "--csv"), "--csv: expected one argument"),
        (("run", "--csv", "-", "--json", "-"), "can't both go to stdout"),
        (("run", "--csv", "a.csv", "--json", "./a.csv"), "can't both go to the same file"),
        (("run", "--workload", "tinny"), "Did you mean 'tiny'?"),
        (("run", "--workload", "no-such.toml"), "no-such.toml"),
        (
            ("run", "--kernels", "no-such-folder"),
            "Can't read the folder of kernels (--kernels) 'no-such-folder'",
        ),
        (
            ("run", "--kernels", "no-such-folder", "--backend", "cpu"),
            "Can't read the folder of kernels (--kernels) 'no-such-folder'",
        ),
        (("list", "kernels", "--kernels", ".", "--backend", "cpu"), "would change nothing"),
        (("run", "--rung", "cpu-blas,batch=2,batch=4"), "batch is asked to be 2 and 4"),
        (("compare", "cpu-blas", "cpu-blas,w1:a,fold=on,w1:b"), "w1 is asked to be a and b"),
        (("run", "--remote=-oProxyCommand=x"), "no ssh destination"),
        (("compare",), "required: A"),
        (("compare", "cpu-blas"), "two plans, or one and --aa"),
        (("compare", "cpu-blas", "cpu-loops", "--aa"), "give one plan"),
        (("compare", "=", "cpu-loops"), "RUNG[,TOGGLE=VALUE...]"),
        (("compare", "cpu-blas", "cpu-blas,fold"), "neither TOGGLE=VALUE nor SITE:KERNEL"),
        (("list", "rugns"), "Did you mean 'rungs'?"),
        (("list", "sites", "--rung", "cpu-bals"), "Did you mean 'cpu-blas'?"),
        (("list", "sites", "--rung", "naive", "--backend", "cpu"), "runs on cuda, not on cpu"),
        (("worker", "--log"), "Allowed: --help"),
        (("list", "rungs", "--csv", "-"), "Unknown option --csv. Allowed"),
        (("replay", "h20"), "Did you mean 'h200'?"),
        (("run", "--backend", "cpu", "--replay", "h200"), "leave --backend and --device out"),
        (("ladder", "--batches", "1,2", "--set", "batch=4"), "leave --batch and every batch=N out"),
        (("ladder", "--batches", "1,2", "--rung", "cpu-blas,batch=4"), "leave --batch and every batch=N out"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_mistake_is_answered_by_a_sentence(
    words: tuple[str, ...], expected: str, capsys: pytest.CaptureFixture[str], state_home: Path
) -> None:
    assert expected in refusal(capsys, *words)
    assert not state_home.exists(), "a worker was started for it"


def test_a_recording_is_named_by_one_option_or_by_two(capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for named in (("--replay", "h200"), ("--backend", "replay", "--device", "h200")):
        assert main(["compare", "graph", "hopper", *named, "--csv", "-"]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    assert "FASTER" in said[0]


def test_no_screen_is_drawn_into_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would run unseen behind a blank terminal: `gputop 2>log`."""
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr(sys.__stderr__, "isatty", lambda: False)
    assert "stderr goes to a file" in why_no_screen()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--rung", "cpu-bals"), "Did you mean 'cpu-blas'?"),
        (("--rung", "naive", "--backend", "cpu"), "runs on cuda, not on cpu"),
        (("--rung", "cpu-blas", "--set", "flod=on"), "Did you mean 'fold'?"),
        (("--rung", "cpu-blas", "--use", "w1=no-such"), "no-such"),
        (("--workload", "tinny"), "Did you mean 'tiny'?"),
        (("--windows", "1"), "gputop run --windows N"),
        (("--csv", "a.csv"), "gputop run --csv FILE"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_no_screen_can_show_is_refused_before_it_opens(
    words: tuple[str, ...],
    expected: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    state_home: Path,
) -> None:
    for stream in (sys.stdin, sys.stdout, sys.__stderr__):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    assert expected in refusal(capsys, *words)
    assert not state_home.exists(), "a worker was started for it"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ((), "nothing at a path of ours"),
        (("notes.txt",), "nothing at a path of ours"),
        (("measure/blocker.cu",), "kernels that measure, and those are gputop's own"),
        (("01_naiv.cu",), "01_naiv.cu: it has no record"),
        (("09_wmma.cu",), "as 'gemm/09_wmma.cu'"),
    ],
    ids=["empty", "no source", "none that is run", "no such kernel", "outside its family"],
)
def test_a_kernels_folder_that_would_be_passed_over_is_refused(
    files: tuple[str, ...],
    expected: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    state_home: Path,
) -> None:
    folder = tmp_path / "own"
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    folder.mkdir(exist_ok=True)
    assert expected in refusal(capsys, "run", "--kernels", str(folder))
    assert not state_home.exists(), "a worker was started for it"


def test_a_kernels_folder_may_hold_headers_of_its_own(tmp_path: Path) -> None:
    for name in ("gemm/01_naive.cu", "include/mine.cuh"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("")
    assert main(["list", "kernels", "--kernels", str(tmp_path)]) == 0


MODEL = {"layers": 2, "d_model": 64, "heads": 4, "d_ff": 256, "seq": 16, "vocab": 256}


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
    change: dict[str, object],
    expected: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    state_home: Path,
) -> None:
    path = tmp_path / "model.toml"
    path.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in {**MODEL, **change}.items()))
    message = refusal(capsys, "run", "--workload", str(path))
    assert expected in message
    assert "model.toml" in message
    assert not state_home.exists()


def test_an_unwritable_path_is_refused_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], state_home: Path
) -> None:
    for command in (("run",), ("ladder",), ("calibrate",), ("compare", "cpu-loops", "cpu-blas")):
        assert "there is no folder" in refusal(capsys, *command, "--csv", str(tmp_path / "none" / "t.csv"))
    assert "folder" in refusal(capsys, "run", "--json", str(tmp_path))
    assert not state_home.exists()


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


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--batch", "2", "--set", "batch=4"), "batch is asked to be 4 and 2"),
        (("--use", "w1=cpu_blas_gemm", "--use", "w1=cpu_loops_gemm"), "w1 is asked to be"),
        (("--rung", "cpu-blas,batch=2", "--batch", "4"), "batch is asked to be 2 and 4"),
        (("--rung", "cpu-blas,fold=on", "--set", "fold=off"), "fold is asked to be on and off"),
    ],
)
def test_one_name_with_two_values_is_refused(
    words: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert why in refusal(capsys, "list", "sites", "--backend", "cpu", *words)
    assert main(["list", "sites", "--backend", "cpu", *words[:2], *words[:2]]) == 0


def test_list_devices_names_the_processor_as_every_table_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "devices"]) == 0
    shown = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("cpu"))
    assert processor() in shown
    assert cores_words(usable_cores()) in shown


def test_list_keeps_to_the_backend_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "rungs", "--backend", "cpu"]) == 0
    ids = [line.split()[1] for line in capsys.readouterr().out.splitlines()[1:]]
    assert ids
    assert ids == [rung.id for rung in rungs() if rung.backend == "cpu"]


def test_list_sites_knows_a_pruned_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "sites", "--rung", "cpu-pruned", "--workload", "tiny"]) == 0
    assert "w1@1" in capsys.readouterr().out


RUNGS = (
    RungView("a", 0, "ladder", ""),
    RungView("b", 1, "ladder", "", before="a"),
    RungView("null", 1, "ladder", "", before="a"),
    RungView("oracle", 1, "oracle", "", before="b"),
    RungView("c", 2, "ladder", "", before="b"),
    RungView("d", 3, "ladder", "", refused="it needs a GPU.", before="c"),
    RungView("peer", 3, "peer", "", before="c"),
    RungView("slow", 3, "peer", "", before="c", on_request=True),
)


@pytest.mark.parametrize(
    ("listed", "span", "expected"),
    [
        (None, None, ["a", "b", "null", "oracle", "c", "peer"]),
        ("b,slow", None, ["b", "slow"]),
        ("c,oracle,c", None, ["c", "oracle"]),
        (None, "a..c", ["a", "b", "c"]),
        (None, "b..c", ["b", "c"]),
    ],
)
def test_a_ladder_is_of_the_rungs_asked_for(
    listed: str | None, span: str | None, expected: list[str]
) -> None:
    assert chosen(RUNGS, listed, span) == expected


@pytest.mark.parametrize(
    ("listed", "span", "why"),
    [
        ("a,e", None, "Unknown rung 'e'"),
        ("a,d", None, "d can't run here: it needs a GPU"),
        (",", None, "--rungs needs names"),
        (None, "a", "no span of rungs"),
        (None, "c..a", "a does not build on c, but on nothing"),
        (None, "null..c", "c does not build on null, but on a -> b"),
        (None, "b..b", "b does not build on b"),
        (None, "a..d", "d can't run here: it needs a GPU"),
        (None, "a..oracle", "Unknown rung 'oracle'"),
    ],
)
def test_a_ladder_that_can_not_be_is_refused(listed: str | None, span: str | None, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        chosen(RUNGS, listed, span)


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


def test_the_version_is_told_without_loading_anything_heavy() -> None:
    command = (sys.executable, "-X", "importtime", "-m", "gputop", "--version")
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"gputop {__version__}\n"
    assert not re.search(r"\| +(numpy|textual|msgspec|gputop\.phases)$", done.stderr, re.MULTILINE)


def test_a_reader_that_leaves_is_no_fault() -> None:
    process = subprocess.Popen((*GPUTOP, "list", "columns"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert process.wait(timeout=60) == 0
    process.stderr.close()


def test_a_fault_of_its_own_is_a_sentence_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gputop.cli.command_table.COMMANDS", None)
    assert main(["run"]) == 70
    assert "TypeError" in capsys.readouterr().err
    monkeypatch.setenv("GPUTOP_TRACEBACK", "1")
    with pytest.raises(TypeError):
        main(["run"])


def test_loops_without_a_compiler_name_the_extra_that_needs_no_device() -> None:
    code = (
        "import sys; sys.modules['cuda.bindings'] = None\n"
        "from gputop.cli import main; sys.exit(main(['list', 'loops']))"
    )
    done = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "cuda-bindings is not installed" in done.stderr
    assert re.search(r"\[compile\]|EXTRAS=compile", done.stderr)
