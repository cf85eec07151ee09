"""What an export holds and how it is named."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from textual.widgets import Input

from gputop.plan.types import KernelChoice, PlanRequest
from gputop.tui import state_events, state_keys
from gputop.tui.export import FORMATS, default_file, export_text
from gputop.tui.state import PlanPair, State, TimedWindow
from tests.tui.conftest import Running
from tests.tui.fake.records import window_of
from tests.tui.screen import until, until_shown
from tests.tui.test_state import measured, resolved, started

CHANGED = PlanRequest("cpu-blas", (("layout", "transposed"), ("prune", "on")))


def shot_of(request: PlanRequest) -> TimedWindow:
    return TimedWindow(PlanPair(request), window_of(1, request, None), 0.0)


def flipped() -> State:
    return measured(resolved(state_keys.choose_rung(started(), "cpu-threads")))


def test_a_file_is_named_by_its_whole_plan() -> None:
    name = default_file(shot_of(CHANGED), "csv")
    assert name.startswith("gputop-cpu-blas,layout=transposed,prune=on-")
    assert name.endswith(".csv")
    split = PlanRequest("cpu-blas", (), (("w2", KernelChoice("gemm-loops", 4)),))
    assert "/" not in default_file(shot_of(split), "md")
    many = PlanRequest("cpu-blas", tuple((f"toggle{i}", "on") for i in range(60)))
    assert len(default_file(shot_of(many), "svg")) < 200


def test_a_verdict_in_markdown_says_what_it_rests_on() -> None:
    state = flipped()
    assert state.shot is not None
    assert state.lane is not None
    text = export_text("md", state.shot, state.comparison, state.lane.gate)
    assert text.startswith("# cpu-blas → cpu-threads on AMD EPYC 9R14\n")
    assert "▲ **FASTER** on the device, 1.71× [" in text
    assert "| device | 42.3 ms | 24.8 ms |" in text
    assert "- gate of cpu-threads: PASS" in text
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in table}) == 1


def test_one_plan_gets_its_phases_in_place_of_a_verdict() -> None:
    state = started()
    assert state.shot is not None
    assert state.lane is not None
    text = export_text("md", state.shot, None, state.lane.gate)
    assert "paired with no other: 42.3 ms on the device" in text
    assert "| w2 | 13.4 ms |" in text


def test_windows_of_one_pair_count_together() -> None:
    state = flipped()
    once = state.comparison
    state = measured(measured(state))
    assert once is not None
    assert once.windows == 1
    assert state.comparison is not None
    assert state.comparison.windows == 3


def test_a_recorded_window_counts_once_however_often_it_is_shown() -> None:
    state = flipped()
    assert state.latest is not None
    window = state.latest.window
    recorded = replace(window, device=replace(window.device, recording="recording of 2026-01-02"))
    again = state_events.window_ready(state, replace(state.latest, window=recorded))
    assert again.pooled == state.pooled


async def test_e_writes_each_format_and_names_the_file_by_it(running: Running, tmp_path: Path) -> None:
    async with running() as (app, pilot, _):
        for at, item in enumerate(FORMATS):
            await pilot.press("e")
            await until_shown(pilot, "phase table as CSV")
            await pilot.press(*["down"] * at)
            answer = app.screen.query_one(Input)
            assert answer.value.endswith(f".{item.kind}")
            answer.value = str(tmp_path / f"out.{item.kind}")
            await pilot.press("enter")
            target = tmp_path / f"out.{item.kind}"
            await until(pilot, target.exists, f"the {item.kind}")
            await until_shown(pilot, "! Written to")
    rows = json.loads((tmp_path / "out.json").read_text())
    assert {"w1", "device"} <= {row["phase"] for row in rows["rows"]}
    picture = (tmp_path / "out.svg").read_text()
    assert picture.startswith("<svg")
    assert "phase&#160;table" not in picture, "the dialog is gone before the picture is taken"


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_exported_rows_carry_the_gate_that_was_just_run(kind: str) -> None:
    state = started()
    assert state.shot is not None
    assert state.lane is not None
    gate = replace(state.lane.gate, status="PASS", pass_error=7e-8)
    assert "7e-08" in export_text("csv" if kind == "csv" else "json", state.shot, None, gate)
