"""`gputop whatif`: a recorded plan with something changed, in the screen's words and without a promise."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from gputop.cli import main
from gputop.ipc.protocol import Opened
from gputop.perf.block_shape import FIGURES, KNOBS, BlockShape, next_cliff, occupancy_figures, turned
from gputop.plan.types import PlanRequest
from gputop.session.replay import Replay
from gputop.tui import state_events, state_keys
from gputop.tui.options import Options
from gputop.tui.state import PlanPair, State, TimedWindow
from gputop.tui.views.whatif import Turned, whatif_text

W2 = BlockShape(threads=256, registers=61, smem_bytes=212_000, blocks=112)


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["whatif", "graph", "--site", "w2", *words]) == 0
    return capsys.readouterr().out


def found(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    (row,) = json.loads(printed(capsys, *words, "--json", "-"))["rows"]
    assert isinstance(row, dict)
    return row


def test_less_shared_memory_than_the_cliff_lets_an_sm_hold_two_blocks() -> None:
    cliff = next_cliff(W2, "smem_bytes", "sm_90")
    assert cliff is not None
    held = [occupancy_figures(shape, "sm_90", 132)["blocks an SM"] for shape in (W2, cliff)]
    assert held == ["1", "2"]
    above = BlockShape(W2.threads, W2.registers, cliff.smem_bytes + 512, W2.blocks)
    assert occupancy_figures(above, "sm_90", 132)["blocks an SM"] == "1"


def test_the_command_says_what_view_5_says(capsys: pytest.CaptureFixture[str]) -> None:
    replay = Replay.open("h200")
    opened = Opened(
        id=1, device=replay.facts, workload=replay.workload, rungs=replay.rung_views(), default_rung="graph"
    )
    state = state_events.device_ready(State(), opened, Options("replay", replay.workload))
    request = PlanRequest("graph")
    window = replay.first_window(request)
    state = replace(state_keys.choose_rung(state, "graph"), site="w2")
    state = state_events.window_ready(state, TimedWindow(PlanPair(request), window, 0.0))
    row = next(row for row in window.lanes[0].rows if row.phase == "w2")
    shape = BlockShape(256, row.registers or 0, row.smem_bytes or 0, 112)
    knob = next(knob for knob in KNOBS if knob.field == "smem_bytes")
    less = turned(shape, knob, -100, "sm_90")
    screen = whatif_text(state, Turned(row, less), 1, 120).plain.splitlines()
    command = printed(capsys, "--smem", str(less.smem_bytes)).splitlines()
    for title in FIGURES:
        (on_screen,) = (line.split(title)[1].split() for line in screen if line.strip().startswith(title))
        (printed_one,) = (line.split(title)[1].split() for line in command if line.strip().startswith(title))
        assert on_screen == printed_one


def test_a_shape_alone_moves_no_time(capsys: pytest.CaptureFixture[str]) -> None:
    shown = printed(capsys, "--smem", "113000")
    assert "no time is forecast from occupancy" in shown
    assert "forecast  " not in shown
    assert "16 of 64" in shown


def test_parts_of_the_inner_axis_change_the_grid(capsys: pytest.CaptureFixture[str]) -> None:
    row = found(capsys, "--split", "4")
    assert row["plan"] == ["graph", "graph,w2:gemm_warpgroup_56/4"]
    assert [shape["blocks"] for shape in row["shape"]] == [112, 56]


def test_a_batch_is_priced_by_the_token_and_says_the_models_own_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = printed(capsys, "--batch", "8")
    assert "≈" in shown
    assert "gain a token ≈" in shown
    assert "of the measured time" in shown
    row = found(capsys, "--batch", "8")
    low, high = row["forecast_s"]
    assert row["measured_s"] < low <= high
    assert row["model_share"] == row["model_s"][0] / row["measured_s"]
    # The same weights serve more rows.
    assert row["floor_s"][1] < 8 * row["floor_s"][0]


def test_another_card_gets_its_data_sheets_floor_with_its_source_and_no_forecast(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = printed(capsys, "--device", "H100-PCIe")
    assert "NVIDIA H100 datasheet" in shown
    assert "no forecast" in shown
    row = found(capsys, "--device", "H100-PCIe")
    assert row["forecast_s"] is None
    assert row["floor_s"][1] == pytest.approx(row["floor_s"][0] * 4.69e12 / 2.0e12, rel=0.05)
    assert row["device_source"] == "NVIDIA H100 datasheet"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("graph", "--device", "H300"), "Unknown device model 'H300'"),
        (("graph", "--site", "w9"), "Site 'w9' is not in both plans"),
        (("graph", "--math", "fp8"), "fp8"),
        (("graph", "--replay", "h201"), "h201"),
        (("torch-eager", "--registers", "32"), "is not"),
    ],
)
def test_what_can_not_be_asked_is_refused(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["whatif", *words]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert "internal" not in err
