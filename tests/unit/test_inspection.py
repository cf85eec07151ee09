"""`gputop inspect` and the screen's inspector: one phase taken apart, in the same words."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gputop.cli import main
from gputop.cli.kernel_code import entry_line
from gputop.ipc.process import WorkerProcess
from gputop.ipc.protocol import Opened
from gputop.perf.loop_mix import LoopMix, opcode_mix
from gputop.plan.types import PlanRequest
from gputop.planner.registry import Registry
from gputop.results.kernel_code import KernelCode, code_lines, known_code
from gputop.results.recording import locate, read
from gputop.session.replay import Replay
from gputop.tui import state_events, state_keys
from gputop.tui.options import Options
from gputop.tui.state import PlanPair, State, TimedWindow
from gputop.tui.views.inspector import inspector_text

WIDTH = 120


@pytest.fixture(autouse=True)
def nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a worker was started")

    monkeypatch.setattr(WorkerProcess, "__init__", refuse)


@pytest.fixture(scope="module")
def h200() -> Replay:
    return Replay.open("h200")


def on_screen(replay: Replay, plan: str, site: str, width: int = WIDTH) -> str:
    """The inspector's text of one phase, as if the recording were on the screen."""
    request = PlanRequest(plan)
    opened = Opened(
        id=1, device=replay.facts, workload=replay.workload, rungs=replay.rung_views(), default_rung=plan
    )
    state = state_events.device_ready(State(), opened, Options("replay", replay.workload))
    windows = read(locate("h200")).windows
    state = state_events.recording_ready(state, windows, replay.calibrate(), replay.batches)
    state = state_events.ladder_ready(state, replay.measure_ladder(()))
    state = state_keys.choose_rung(state, plan)
    window = replay.first_window(request)
    state = state_events.window_ready(state, TimedWindow(PlanPair(request), window, 0.0))
    return inspector_text(replace(state, site=site), width).plain


def test_a_wide_screen_has_two_columns_with_the_same_lines(h200: Replay) -> None:
    """All but the bars of the ladder, which are as long as their column is wide, and the terms beside it."""
    one, two = (on_screen(h200, "graph", "w2", width) for width in (WIDTH, 137))
    assert "on the ladder" in two.splitlines()[0]
    told = one[one.index("\nlaunch\n") :].splitlines()
    missing = [line for line in told if line.strip() not in two and "━" not in line]
    assert missing == []
    assert max(map(len, two.splitlines())) <= 137
    assert two.count("\n") < one.count("\n")


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["inspect", *words]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(("plan", "site"), [("graph", "w2"), ("naive", "attention"), ("oracle-fp32", "qkv")])
def test_the_command_says_what_the_screen_says(
    plan: str, site: str, h200: Replay, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    screen = on_screen(h200, plan, site)
    command = printed(capsys, plan, "--replay", "h200", "--site", site)
    _, *sections = screen.split("\n\n")
    assert {section.splitlines()[0] for section in sections} >= {
        "launch",
        "rates",
        "on the ladder",
        "checked",
    }
    for line in (line.strip() for section in sections for line in section.splitlines()):
        assert line in command


def test_occupancy_is_told_with_its_limit_and_what_would_lift_it(
    h200: Replay, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = printed(capsys, "graph", "--replay", "h200", "--site", "w2")
    assert "112 of 132, 20 idle" in shown
    assert "12.5 %, limited by shared memory" in shown
    assert "blocks an SM: 1, as the limits allow warps 8, blocks 32, registers 4, shared memory 1" in shown
    assert "shared memory: 2 blocks an SM from 116 kB down" in shown
    assert "not counted" in shown


def test_json_holds_raw_figures_and_marks_the_unknown(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "w2.json"
    shown = printed(capsys, "graph", "--replay", "h200", "--site", "w2", "--json", str(file))
    assert shown.startswith("w2 ")
    found = json.loads(file.read_text())
    assert found["schema"] == "gputop.inspect/1"
    (row,) = found["rows"]
    assert row["phase_columns"]["phase"] == "w2"
    assert row["terms"][0]["term"] == row["phase_columns"]["binds"]
    assert row["terms"][0]["share"] == row["terms"][0]["value_s"] / row["phase_columns"]["time_s"]
    assert row["occupancy"]["counted"] is None
    assert row["occupancy"]["blocks_by_limit"]["shared memory"] == 1
    assert row["history_s"]["graph"] == row["phase_columns"]["time_s"]
    assert printed(capsys, "graph", "--replay", "h200", "--site", "w2", "--json", "-") == file.read_text()


def test_only_passes_of_as_many_sequences_are_set_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = json.loads(printed(capsys, "graph", "--replay", "h200", "--site", "w2", "--json", "-"))["rows"]
    assert "graph" in row["history_s"]
    assert "batch" not in row["history_s"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("graph", "--replay", "h200", "--site", "w3"), "Unknown site 'w3'."),
        (("grph",), "Unknown rung or kernel 'grph'. Did you mean 'graph'?"),
        (("grph", "--replay", "h200"), "Did you mean 'graph'?"),
        (("gemm_warpgroup_56", "--site", "w2"), "--counters belong to a plan"),
        (("cublas",), "there is no source of ours to look at"),
    ],
)
def test_what_can_not_be_inspected_is_refused(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", *words]) == 2
    assert said in capsys.readouterr().err


def test_opcodes_are_counted_without_their_modifiers_and_products_come_first() -> None:
    mix = opcode_mix({"LDG.E.128": 3, "LDG.E": 2, "HMMA.1684.F32.TF32": 4, "BRA": 1})
    assert mix == (("LDG", 5), ("HMMA", 4), ("BRA", 1))
    code = KernelCode("k", "sm_90", "kernels/gemm/k.cu:7", "abc", 60, 0, 0, 900, (LoopMix(0, 9, mix),))
    lines = list(code_lines(code))
    assert "kernels/gemm/k.cu:7" in lines[0]
    assert "spilled none" in lines[1]
    assert lines[2] == "  loop of 10 instructions: HMMA 40 %  LDG 50 %  BRA 10 %"


def test_the_code_of_our_kernels_is_what_is_shipped_and_needs_no_compiler(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["inspect", "hopper", "--replay", "h200", "--site", "wo"]) == 0
    said = capsys.readouterr().out
    (code,) = known_code("sm_90", "gemm_warpgroup_56")
    for line in code_lines(code):
        assert line.strip() in said
    assert "as shipped" in said
    assert "HGMMA" in said


def test_each_entry_is_found_in_its_source() -> None:
    registry = Registry.load()
    own = [kernel for kernel in registry.kernels.values() if kernel.source]
    found = {
        (kernel.source, entry): entry_line((registry.kernels_dir / kernel.source).read_text(), entry)
        for kernel in own
        for entry in kernel.entries
    }
    assert {place for place, line in found.items() if line is None} == set()
