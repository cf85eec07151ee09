"""Recordings: made of a real run, the same numbers when shown, and never taken for a measurement."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from hatchling.builders.wheel import WheelBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from gputop.cli import main
from gputop.cli.commands.record import chosen
from gputop.ipc.connection import Connection
from gputop.ipc.recorder import Recorder, RecordingSettings
from gputop.model.workloads import WORKLOADS, parse_workload
from gputop.plan.choices import PlanView, RungView
from gputop.plan.types import PlanRequest
from gputop.results import export, recording
from gputop.results.recorded_plan import recorded
from gputop.results.recording import (
    BatchesLine,
    EndLine,
    GateLine,
    Header,
    LadderLine,
    PlanLine,
    Recording,
    RefusalLine,
    WindowLine,
    encode,
    parse,
)
from gputop.results.records import Gate
from gputop.session.replay import Replay
from gputop.util.errors import UsageError
from gputop.util.output_file import LineFile
from tests.homes import homes_in
from tests.unit.test_protocol import values

if TYPE_CHECKING:
    from gputop.ipc.opened_worker import OpenedWorker

ROOT = Path(__file__).resolve().parents[2]
GPUTOP = (sys.executable, "-m", "gputop")
RUNGS = ("cpu-loops", "cpu-blas", "cpu-pruned")
RECORD = ("--workload", "tiny", "--backend", "cpu", "--seconds", "0.2")


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory, calibrated: Path) -> dict[str, str]:
    """A user's home of these tests' own; ceilings are measured once in it."""
    home = tmp_path_factory.mktemp("home")
    return {**os.environ, **homes_in(home, calibrated), "PYTHONPATH": str(ROOT)}


@pytest.fixture(autouse=True)
def same_home(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, folder in env.items():
        if name.startswith("XDG_"):
            monkeypatch.setenv(name, folder)


def record(env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        (*GPUTOP, "record", *words), env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture(scope="module")
def file(env: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three rungs at `tiny`, by a real worker."""
    path = tmp_path_factory.mktemp("recordings") / "tiny.jsonl"
    done = record(env, str(path), *RECORD, "--rungs", ",".join(RUNGS), "--batches", "1,2")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "2 of 3: cpu-blas" in done.stderr
    assert list(path.parent.iterdir()) == [path], "something was left beside the file"
    return path


@pytest.fixture(scope="module")
def kept(file: Path) -> Recording:
    return recording.read(file)


@pytest.fixture(scope="module")
def client(file: Path) -> Iterator[Connection]:
    """A conversation with the recording."""
    with Connection() as client:
        client.open("replay", WORKLOADS[0], device=str(file))
        yield client


def pairs(kept: Recording) -> list[tuple[str, ...]]:
    return [tuple(lane.plan for lane in window.lanes) for window in kept.windows]


# What is recorded


def test_every_rung_is_gated_and_paired_with_the_one_before_and_the_one_the_screen_opens_on(
    kept: Recording,
) -> None:
    assert kept.whole
    assert kept.header.workload == parse_workload("tiny")
    assert kept.header.ceilings.items
    assert tuple(plan.word for plan in kept.plans) == ("cpu-blas", "cpu-loops", "cpu-pruned")
    assert {word: gate.status for word, gate in kept.gates.items()} == dict.fromkeys(RUNGS, "PASS")
    assert all(gate.checks for gate in kept.gates.values()), "the phases were not checked"
    assert pairs(kept) == [("cpu-loops", "cpu-blas"), ("cpu-blas", "cpu-loops"), ("cpu-pruned", "cpu-blas")]
    assert kept.ladder is not None
    assert tuple(entry.rung for entry in kept.ladder.entries) == RUNGS
    assert kept.batches is not None
    assert [entry.batch for entry in kept.batches.entries] == [1, 2]


def test_an_oracle_stands_in_where_no_step_of_the_ladder_is_above() -> None:
    oracle = RungView("oracle", 6, "oracle", "")
    step, own = (RungView(name, 9, "ladder", "", before="elsewhere") for name in ("step", "own"))
    recorder = Recorder(cast("OpenedWorker", None), RecordingSettings(PlanRequest("")))
    recorder._gates = {view.id: Gate("PASS", 1e-7, 1e-5) for view in (oracle, step, own)}
    assert recorder.partners(own, (oracle,), None) == (oracle,)
    assert recorder.partners(own, (step, oracle), None) == (step,)
    assert recorder.partners(own, (oracle,), step) == (oracle, step)
    recorder._gates.pop("oracle")
    assert recorder.partners(own, (oracle,), None) == (None,)


def test_what_can_not_be_recorded_is_kept_with_why_and_the_rest_goes_on(
    env: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A rung that kills every worker, one with a wrong answer, and one that is refused."""
    ssh = tmp_path / "ssh"
    ssh.write_text(
        f"#!{sys.executable}\n"
        "import os\n"
        "from gputop.util.errors import Unavailable\n"
        "from gputop.session.session import Session\n"
        "own = Session.check\n"
        "def check(self, request, say):\n"
        "    if request.rung == 'cpu-transposed':\n"
        "        os.kill(os.getpid(), 9)\n"
        "    if request.rung == 'cpu-threads':\n"
        "        raise Unavailable('There are no threads here.')\n"
        "    return own(self, request, say)\n"
        "Session.check = check\n"
        "import numpy as np\n"
        "from functools import partial\n"
        "from gputop.backends.cpu import kernels\n"
        "def off(a, b, out):\n"
        "    return lambda: np.multiply(np.matmul(a, b), 1.01, out=out)\n"
        "kernels.TABLE['cpu_blas_gemm'] = partial(kernels.gemm, off)\n"
        "from gputop.ipc.worker import main\n"
        "raise SystemExit(main())\n"
    )
    ssh.chmod(0o755)
    path = tmp_path / "t.jsonl"
    away = {**env, "PATH": f"{tmp_path}{os.pathsep}{env['PATH']}"}
    rungs = "cpu-loops,cpu-transposed,cpu-blas,cpu-threads"
    done = record(away, str(path), *RECORD, "--rungs", rungs, "--remote", "here")
    assert done.returncode == 1, done.stderr
    assert "Gate FAIL" in done.stderr
    assert "cpu-transposed is not recorded: The worker died" in done.stderr
    kept = recording.read(path)
    assert kept.whole
    assert "SIGKILL" in kept.refusals["cpu-transposed"]
    assert kept.refusals["cpu-threads"] == "There are no threads here."
    assert kept.header.default_rung == "cpu-blas"
    assert pairs(kept) == [("cpu-loops",), ("cpu-blas",)], "something was paired with a wrong answer"
    assert kept.ladder is not None
    assert [entry.device_s is None for entry in kept.ladder.entries] == [False, True]
    assert Replay(kept).default_rung == "cpu-loops"
    assert main(("replay", str(path), "--rung", "cpu-threads")) == 2
    assert "There are no threads here." in capsys.readouterr().err
    assert main(("replay", str(path), "--rung", "cpu-blas")) == 1
    assert "gate FAIL" in capsys.readouterr().out


def test_a_file_that_can_not_be_written_is_refused_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(("record", str(tmp_path / "none" / "t.jsonl"), *RECORD)) == 2
    assert "there is no folder" in capsys.readouterr().err


def test_rungs_are_chosen_by_name_and_kept_in_the_ladders_order(kept: Recording) -> None:
    rungs = kept.header.rungs
    assert chosen(rungs, None) == list(rungs)
    assert [rung.id for rung in chosen(rungs, "cpu-blas, cpu-loops")] == ["cpu-loops", "cpu-blas"]
    with pytest.raises(UsageError, match="Did you mean 'cpu-blas'"):
        chosen(rungs, "cpu-loops,cpu-bals")
    with pytest.raises(UsageError, match="needs names"):
        chosen(rungs, ",")


def test_a_recording_is_not_recorded_again(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy.jsonl"
    assert main(("record", str(copy), "--backend", "replay", "--device", str(file))) == 2
    assert "copy its file" in capsys.readouterr().err
    assert not copy.exists()


# The file


def test_whoever_is_stopped_leaves_what_was_measured_beside_the_file(file: Path, tmp_path: Path) -> None:
    name = tmp_path / "t.jsonl"
    name.write_text("before")
    growing = LineFile(str(name))
    for line in file.read_bytes().splitlines(keepends=True)[:6]:
        growing.add(line)
    assert name.read_text() == "before"
    partial = recording.read(tmp_path / "t.jsonl.partial")
    assert (partial.whole, len(partial.windows)) == (False, 1)
    assert "stopped before its end" in " ".join(Replay(partial).facts.notes)
    assert "holds no ladder" in Replay(partial).why_no_ladder
    growing.finish()
    assert recording.read(name) == partial
    assert list(tmp_path.iterdir()) == [name]


def test_a_dash_is_stdout_and_a_device_is_not_replaced(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    for word in ("-", os.devnull):
        lines = LineFile(word)
        lines.add(b"one\n")
        lines.finish()
    assert capfdbinary.readouterr().out == b"one\n"
    assert Path(os.devnull).is_char_device()


@pytest.mark.parametrize(
    "kind",
    [Header, GateLine, WindowLine, LadderLine, BatchesLine, RefusalLine, EndLine],
    ids=lambda kind: str(kind.__name__),
)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_a_line_reads_back_as_it_was_written(kind: Any, data: st.DataObject) -> None:
    line = data.draw(values(kind))
    text = encode(line)
    assert text.count(b"\n") == 1
    assert recording.decode(text.removesuffix(b"\n"), "t", 1) == line


def refusal_of(data: bytes) -> str:
    try:
        parse(data, "t.jsonl")
    except UsageError as error:
        return str(error)
    return "read"


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused_by_line(file: Path, data: st.DataObject) -> None:
    good = file.read_bytes()
    at = data.draw(st.integers(0, len(good) - 1))
    damaged = good[:at] + data.draw(st.binary(max_size=3)) + good[at + data.draw(st.integers(0, 400)) :]
    assert re.match(r"t\.jsonl, line \d+: |read", refusal_of(damaged))


def _header(text: str, **change: object) -> str:
    return json.dumps({**json.loads(text), **change})


DAMAGE: dict[str, tuple[Any, str]] = {
    "empty": (lambda lines: [], "line 1: this is no recording"),
    "another file": (lambda lines: ["schema,time_utc"], "line 1: this is no recording"),
    "another schema": (
        lambda lines: [_header(lines[0], schema="gputop.phases/1"), *lines[1:]],
        "line 1: this is no recording, its schema is 'gputop.phases/1'",
    ),
    "newer": (
        lambda lines: [_header(lines[0], schema="gputop.recording/2"), *lines[1:]],
        "line 1: schema gputop.recording/2 is newer than gputop.recording/1",
    ),
    "no headline": (lambda lines: lines[1:], "line 1: this is no recording"),
    "no device": (
        lambda lines: [_header(lines[0], device={"name": "X"})],
        "line 1: broken (Object missing required field `backend` - at `$.device`)",
    ),
    "two headers": (lambda lines: [lines[0], lines[0]], "line 2: the header is line 1"),
    "garbage": (lambda lines: [*lines[:2], "garbage", *lines[3:]], "line 3: broken (JSON is malformed"),
    "empty line": (lambda lines: [*lines[:2], "", *lines[2:]], "line 3: broken (Input data was truncated)"),
    "cut off": (lambda lines: [*lines[:5], lines[5][:900]], "line 6: broken ("),
    "wrong type": (
        lambda lines: [lines[0], lines[1].replace('"batch":1', '"batch":"1"')],
        "line 2: broken (Expected `int`, got `str` - at `$.view.batch`)",
    ),
    "unknown kind": (
        lambda lines: [lines[0], '{"kind":"dance"}'],
        "line 2: of kind 'dance', which a newer gputop wrote",
    ),
    "unknown kind by a newer one": (
        lambda lines: [_header(lines[0], version="99.1"), '{"kind":"dance"}'],
        "line 2: of kind 'dance', which gputop 99.1 wrote",
    ),
    "unknown value by a newer one": (
        lambda lines: [_header(lines[0], version="99.1"), lines[1].replace('"batch":1', '"batch":"1"')],
        "line 2: not understood (Expected `int`, got `str` - at `$.view.batch`), which gputop 99.1 wrote",
    ),
    "header of another kind": (
        lambda lines: [_header(lines[0], kind="end"), *lines[1:]],
        "line 1: the header is line 1, and only that",
    ),
    "nested deep": (
        lambda lines: [*lines[:2], '{"kind":"window","window":' * 100_000],
        "line 3: broken (it is nested too deep)",
    ),
    "header nested deep": (lambda lines: ["[" * 100_000], "line 1: this is no recording"),
    "behind the end": (lambda lines: [*lines, lines[1]], ": the recording ended in the line before"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_no_recording_is_refused_by_file_line_and_reason(
    damage: str, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, expected = DAMAGE[damage]
    path = tmp_path / "t.jsonl"
    path.write_text("".join(f"{line}\n" for line in change(file.read_text().splitlines())))
    assert main(("replay", str(path))) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert f"{path}, line" in err
    assert expected in err


def test_a_later_field_is_passed_over(file: Path, kept: Recording) -> None:
    first, rest = file.read_text().split("\n", 1)
    later = f"{_header(first, weather='fine')}\n{rest}"
    assert parse(later.encode(), "t") == kept


@pytest.mark.parametrize("word", ["none.jsonl", ".", ""])
def test_a_file_that_can_not_be_read_is_refused(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(("replay", word)) == 2
    assert re.search("no recording|Can't read recording", capsys.readouterr().err)


# What is shown


@pytest.mark.parametrize("rung", RUNGS)
def test_the_phases_of_a_replay_are_the_recorded_bytes(
    rung: str, file: Path, kept: Recording, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    window = next(window for window in kept.windows if window.lanes[0].plan == rung)
    rows = [row for lane in window.lanes for row in lane.rows]
    assert {row.device for row in rows} == {kept.header.device.name}
    assert main(("replay", str(file), "--rung", rung, "--csv", "-")) == 0
    assert capsysbinary.readouterr().out == export.phase_csv(rows).encode()


def test_without_a_terminal_it_prints_the_ladder_and_the_phases_and_says_what_they_are(
    file: Path, kept: Recording, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(("replay", str(file))) == 0
    out = capsys.readouterr().out
    said = recording.label(kept.header)
    assert re.fullmatch(r"recording of \d{4}-\d\d-\d\d on .+", said)
    assert out.count(f"{said}, made with gputop") == 3
    assert "by batch, in one window" in out
    assert re.search(r"^6  cpu-pruned ", out, re.MULTILINE)
    assert "plan cpu-blas" in out
    assert re.search(r"^w2 ", out, re.MULTILINE)


def test_it_answers_as_a_device_does(client: Connection, file: Path, kept: Recording) -> None:
    opened = client.open("replay", WORKLOADS[0], device=str(file))
    assert opened.workload == kept.header.workload
    assert opened.device.recording == recording.label(kept.header)
    assert opened.default_rung == "cpu-blas"
    assert {rung.id for rung in opened.rungs if not rung.refused} == set(RUNGS)
    loops, blas, pruned = map(PlanRequest, RUNGS)
    window = client.measure(blas, loops)
    as_recorded = replace(window, device=kept.header.device, verdict=kept.windows[1].verdict)
    assert as_recorded == kept.windows[1]
    assert window.device.recording
    assert client.check(blas) == kept.gates["cpu-blas"]
    assert client.calibrate() == kept.header.ceilings
    assert kept.ladder is not None
    ladder = client.measure_ladder([blas, pruned])
    assert [entry.device_s for entry in ladder.entries] == [e.device_s for e in kept.ladder.entries[1:]]
    assert (ladder.entries[0].ratio_first, ladder.entries[0].through) == (1.0, "")
    assert ladder.entries[1].through == "", "it was paired with cpu-blas"
    assert "nothing is measured here" in ladder.notes[0]


def test_a_difference_is_shown_only_where_both_ran_in_one_window(client: Connection) -> None:
    alone = client.measure(PlanRequest("cpu-pruned"), PlanRequest("cpu-loops"))
    assert [lane.plan for lane in alone.lanes] == ["cpu-pruned"]
    assert alone.comparison is None
    assert {row.delta_s for row in alone.lanes[0].rows} == {None}
    assert {row.pinned_plan for row in alone.lanes[0].rows} == {None}
    assert "did not run in one window" in alone.verdict
    with pytest.raises(UsageError, match="noise floor is not known"):
        client.measure(PlanRequest("cpu-blas"), aa=True)


def test_a_plan_that_was_not_recorded_is_refused_with_what_was(client: Connection) -> None:
    view = client.resolve(PlanRequest("cpu-blas", (("threads", "1"),)))
    assert view.word == "cpu-blas"
    threads = next(toggle for toggle in view.toggles if toggle.name == "threads")
    assert dict(threads.refused) == {"all": "not in this recording"}
    assert not any(site.others for site in view.sites)
    with pytest.raises(UsageError, match="holds: cpu-blas, cpu-loops, cpu-pruned"):
        client.resolve(PlanRequest("cpu-blas", (("threads", "all"),)))
    with pytest.raises(UsageError, match="Did you mean 'cpu-blas'"):
        client.measure(PlanRequest("cpu-bals"))
    with pytest.raises(UsageError, match="cpu-folded was not recorded: not in this recording"):
        client.measure(PlanRequest("cpu-folded"))


def test_a_recording_that_can_not_be_read_leaves_what_was_open(client: Connection, file: Path) -> None:
    with pytest.raises(UsageError, match="no recording"):
        client.open("replay", WORKLOADS[0], device="none")
    assert client.resolve(PlanRequest("cpu-blas")).word == "cpu-blas"
    restarted = client.restart()
    assert restarted is not None
    assert restarted.device.recording


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("compare", "cpu-loops", "cpu-pruned"), "did not run in one window"),
        (("run", "--windows", "2"), "no more than 1 of these windows"),
        (
            ("run", "--workload", "mini"),
            "This is a recording of tiny: leave --workload, --seq and --weights out",
        ),
        (("run", "--seq", "9"), "This is a recording of tiny: leave --workload, --seq and --weights out"),
        (("ladder", "--batches", "1,2"), "the batches that were recorded, if any: `gputop replay"),
        (("ladder", "--routing"), "no other kernels: leave --routing out"),
    ],
    ids=[
        "never paired",
        "more windows than there are",
        "another workload",
        "another length",
        "batches",
        "routing",
    ],
)
def test_a_command_can_not_get_more_from_it_than_it_holds(
    words: tuple[str, ...], expected: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main((*words, "--backend", "replay", "--device", str(file))) == 2
    err = capsys.readouterr().err
    assert expected in err
    assert re.search("recording of", err)


def test_several_windows_of_a_pair_take_turns(kept: Recording) -> None:
    last = kept.windows[-1]
    replay = Replay(replace(kept, windows=(*kept.windows, replace(last, number=9))))
    pair = PlanRequest("cpu-pruned"), PlanRequest("cpu-blas")
    assert [replay.measure(*pair).number for _ in range(3)] == [last.number, 9, last.number]


def test_the_compare_table_of_a_replay_is_the_recorded_one(
    file: Path, kept: Recording, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    words = ("compare", "cpu-loops", "cpu-blas", "--backend", "replay", "--device", str(file), "--csv", "-")
    assert main(words) == 0
    out = capsysbinary.readouterr().out
    comparison = kept.windows[1].comparison
    assert comparison is not None
    assert out == export.compare_csv(comparison).encode()
    assert next(csv.DictReader(io.StringIO(out.decode())))["plan_a"] == "cpu-loops"


# What is shipped


def test_what_is_shipped_is_found_by_its_name(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(recording, "SHIPPED", tmp_path)
    assert main(("replay", "h200")) == 2
    assert "shipped with gputop: none" in capsys.readouterr().err
    (tmp_path / "h200.jsonl").write_bytes(file.read_bytes())
    assert main(("replay", "h200", "--json", "-")) == 0
    assert json.loads(capsys.readouterr().out)["rows"]
    assert main(("list", "devices")) == 0
    assert re.search(r"^replay +h200 +recording of ", capsys.readouterr().out, re.MULTILINE)
    assert main(("list", "backends")) == 0
    assert "recordings shipped: h200" in capsys.readouterr().out


def test_the_wheel_takes_recordings_along() -> None:
    """The folder lies in the package, where checkout, editable install and wheel alike have it."""
    inside = recording.SHIPPED.relative_to(ROOT / "gputop") / f"any{recording.SUFFIX}"
    config = WheelBuilder(str(ROOT)).config
    assert config.include_path(f"gputop/{inside.as_posix()}", is_package=True)


STOPPED = ("h200-paced",)
"""Shipped as far as it came: the device was given back before its ladder."""


def test_every_shipped_recording_is_whole_and_right_or_known_to_be_stopped() -> None:
    for name, path in recording.shipped().items():
        kept = recording.read(path)
        assert kept.whole == (name not in STOPPED), name
        assert (kept.ladder is not None) == kept.whole, name
        lanes = [lane for window in kept.windows for lane in window.lanes]
        assert lanes, name
        gates = (*kept.gates.values(), *(lane.gate for lane in lanes))
        assert {gate.status for gate in gates} <= {"PASS", "PASS pass-only"}, name
        assert Replay(kept).measure(PlanRequest(Replay(kept).default_rung)).lanes


def test_a_residual_is_taken_anew_from_the_rows_that_it_is_left_over_from(kept: Recording) -> None:
    window = kept.windows[0]
    (lane, *others) = window.lanes
    wrong = tuple(replace(row, time_s=1.0) if row.phase == "residual" else row for row in lane.rows)
    line = WindowLine(window=replace(window, lanes=(replace(lane, rows=wrong), *others)))
    plans = (encode(PlanLine(view=recorded(PlanView(plan, (), ())))) for plan in kept.plans)
    read = parse(b"".join((encode(kept.header), *plans, encode(line))), "a test")
    times = {row.phase: row.time_s for row in read.windows[0].lanes[0].rows}
    assert None not in (times["device"], times["sum"], times["gaps"])
    assert times["residual"] == times["device"] - times["sum"] - times["gaps"]  # type: ignore[operator]


def test_whoever_stops_a_recording_is_told_where_it_is(env: dict[str, str], tmp_path: Path) -> None:
    name, partial = tmp_path / "t.jsonl", tmp_path / "t.jsonl.partial"
    command = (*GPUTOP, "record", str(name), *RECORD)
    with subprocess.Popen(
        command, env=env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as made:
        assert made.stderr is not None
        assert any("2 of" in line for line in made.stderr)
        made.send_signal(signal.SIGINT)
        _, said = made.communicate(timeout=60)
    assert made.returncode == 130
    assert f"what was recorded is in {partial}" in said
    assert "Traceback" not in said
    assert recording.read(partial).windows
    assert not name.exists()


def test_a_recording_that_is_stopped_before_its_first_window_leaves_nothing(
    env: dict[str, str], tmp_path: Path
) -> None:
    command = (*GPUTOP, "record", str(tmp_path / "t.jsonl"), *RECORD)
    with subprocess.Popen(
        command, env=env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as made:
        assert made.stderr is not None
        assert any("1 of" in line for line in made.stderr)
        made.send_signal(signal.SIGINT)
        _, said = made.communicate(timeout=60)
    assert made.returncode == 130
    assert "nothing was recorded" in said
    assert not list(tmp_path.iterdir())


def test_a_recording_of_rungs_that_can_not_run_is_none(env: dict[str, str], tmp_path: Path) -> None:
    done = record(env, str(tmp_path / "t.jsonl"), *RECORD, "--rungs", "cpu-loops", "--set", "layout=sideways")
    assert done.returncode == 2
    assert "cpu-loops is not recorded" in done.stderr
    assert "Nothing was recorded" in done.stderr
    assert not list(tmp_path.iterdir())
