"""A recording on the screen: opened by a key or at the start, and named as one."""

from __future__ import annotations

from pathlib import Path

import pytest

from gputop.ipc.connection import Connection
from gputop.model.workloads import parse_workload
from gputop.plan.types import PlanRequest
from gputop.results import recorded_plan, recording
from gputop.results.ladder import Ladder, LadderEntry
from gputop.results.recording import EndLine, Header, LadderLine, Line, PlanLine, WindowLine
from gputop.results.records import Ceilings, Gate
from gputop.tui import app as app_module
from gputop.tui.app import GputopApp
from gputop.tui.options import Options
from tests.tui.fake.records import DEVICE, RUNGS, TIME_UTC, WORKLOAD, view_of, window_of
from tests.tui.screen import cell, table, text_of, until, until_shown

BLAS, THREADS, LOOPS = (PlanRequest(name) for name in ("cpu-blas", "cpu-threads", "cpu-loops"))
SHOWN = "▷ canned 2026-01-02 on AMD EPYC"
VERDICT = "cpu-blas → cpu-threads: 1.71× [1.69, 1.72], FASTER on the device"


def recorded(path: Path, time_utc: str, *more: Line) -> Path:
    """The canned run as a recording of three rungs."""
    plans = (BLAS, THREADS, LOOPS)
    lines: tuple[Line, ...] = (
        Header(
            version="0.1.0",
            time_utc=time_utc,
            device=DEVICE,
            ceilings=Ceilings(DEVICE.name, None, time_utc, ()),
            workload=WORKLOAD,
            rungs=RUNGS,
            default_rung="cpu-blas",
        ),
        *(PlanLine(view=recorded_plan.recorded(view_of(plan))) for plan in plans),
        WindowLine(window=window_of(1, BLAS, None)),
        WindowLine(window=window_of(2, THREADS, BLAS)),
        WindowLine(window=window_of(3, LOOPS, None)),
        *more,
        EndLine(),
    )
    path.write_bytes(b"".join(recording.encode(line) for line in lines))
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return recorded(tmp_path / "canned.jsonl", TIME_UTC)


def app_on(options: Options, folder: Path) -> GputopApp:
    return GputopApp(options, Connection(log_path=folder / "worker.log"), update_s=0.02)


async def test_a_recording_is_walked_as_a_device_is_and_says_what_it_is(file: Path, tmp_path: Path) -> None:
    app = app_on(Options("replay", parse_workload("tiny"), device=str(file)), tmp_path)
    async with app.run_test(size=(140, 45)) as pilot:
        shown = await until_shown(pilot, "fp32 · window 1")
        first = shown.splitlines()[0]
        assert SHOWN in first
        assert "gpt2-small" in first
        assert "measuring" not in shown
        assert "ago" not in first
        await pilot.press("g", "down", "enter")
        await until_shown(pilot, VERDICT)
        assert "fp32 · window 2" in text_of(app)
        await pilot.press("p", "up", "up", "up", "enter")
        await until_shown(pilot, "cpu-loops and cpu-threads did not run in one window of this recording.")
        # Those that were not recorded share a row below, which enter unfolds.
        await pilot.press("g", "end", "enter")
        await until_shown(pilot, "cpu-transposed")
        rows = list(table(app, "ladder")._cells)
        await pilot.press("home", *["down"] * rows.index("cpu-transposed"), "enter")
        await until_shown(pilot, "cpu-transposed can't run here")
        assert app.state.current == LOOPS


async def test_a_flip_leads_to_the_rung_that_it_was_measured_as(tmp_path: Path) -> None:
    options = Options("replay", parse_workload("tiny"), device="h200", request=PlanRequest("graph"))
    app = app_on(options, tmp_path)
    async with app.run_test(size=(140, 45)) as pilot:
        await until(pilot, lambda: app.state.lane is not None, "the first window")
        toggles = table(app, "toggles")
        await until(pilot, lambda: "pdl" in toggles._cells, "the toggles")
        await pilot.press("t", *["down"] * list(toggles._cells).index("pdl"), "enter")
        await until(pilot, lambda: app.state.current_word == "dependent", "the rung")
        await until(pilot, lambda: app.state.lane is not None and app.state.lane.plan == "dependent", "it")
        assert app.state.window is not None
        assert app.state.window.comparison is not None, "graph and dependent ran in one window"


async def test_a_flip_that_was_not_recorded_is_forecast_and_says_so(tmp_path: Path) -> None:
    options = Options("replay", parse_workload("tiny"), device="h200", request=PlanRequest("graph"))
    app = app_on(options, tmp_path)
    async with app.run_test(size=(140, 45)) as pilot:
        toggles = table(app, "toggles")
        await until(pilot, lambda: "graph" in app.state.forecasts, "the forecasts")
        await until(pilot, lambda: cell(app, "toggles", "prune", "other").startswith("≈"), "its mark")
        await pilot.press("t", *["down"] * list(toggles._cells).index("prune"), "enter")
        await until_shown(pilot, "! graph,prune=off was not recorded. ≈ Forecast by the model, not measured:")
        assert app.state.current_word == "graph"
        await pilot.press("6", "end")
        await until_shown(pilot, "not recorded: ≈ forecast by the model, not measured")
        await until_shown(pilot, "○ prune=off")


async def test_nothing_is_said_to_be_measured_in_a_recording(file: Path, tmp_path: Path) -> None:
    app = app_on(Options("replay", parse_workload("tiny"), device=str(file)), tmp_path)
    async with app.run_test(size=(140, 45)) as pilot:
        shown = await until_shown(pilot, "fp32 · window 1")
        assert "space" not in shown.splitlines()[-1]
        assert "Stop measuring" not in str([command.help for command in app.get_system_commands(app.screen)])
        await pilot.press("space")
        await until_shown(pilot, "There is nothing to stop")
        assert app.state.measuring
        await pilot.press("p")
        assert "next window" not in await until_shown(pilot, "◈ cpu-blas is pinned")
        await pilot.press("f", "g", "down", "enter")
        shown = await until_shown(pilot, "FROZEN at window 1 of the recording; window 2 was chosen last")
        assert "measuring" not in shown


async def test_the_rungs_of_a_recordings_ladder_have_their_times_before_any_is_chosen(tmp_path: Path) -> None:
    def entry(rung: str, device_s: float, ratio_first: float) -> LadderEntry:
        gate = Gate("PASS", 1e-6, 1e-5)
        return LadderEntry(rung, 1, "ladder", "", (), gate, device_s, ratio_first=ratio_first, batch=1)

    entries = (entry("cpu-loops", 9.0, 1.0), entry("cpu-blas", 0.5, 18.0), entry("cpu-threads", 0.25, 36.0))
    ladder = Ladder(TIME_UTC, DEVICE, WORKLOAD.name, entries)
    file = recorded(tmp_path / "ladder.jsonl", TIME_UTC, LadderLine(ladder=ladder))
    app = app_on(Options("replay", parse_workload("tiny"), device=str(file)), tmp_path)
    async with app.run_test(size=(140, 45)) as pilot:
        await until(pilot, lambda: len(app.state.ladder) == 3, "the ladder")
        shown = await until_shown(pilot, "9.00 s")
        assert "36" not in row_of(shown, "cpu-loops")
        await pilot.press("p")
        shown = await until_shown(pilot, "0.0556×")
        assert "9.00 s" in row_of(shown, "cpu-loops"), (
            "18 times as long as the pinned plan, in the same window"
        )
        assert "2.00×" in row_of(shown, "cpu-threads")


async def test_without_a_ladder_the_rungs_have_the_times_of_their_windows(file: Path, tmp_path: Path) -> None:
    app = app_on(Options("replay", parse_workload("tiny"), device=str(file)), tmp_path)
    async with app.run_test(size=(140, 45)) as pilot:
        await until(pilot, lambda: len(app.state.recorded) == 3, "its windows")
        shown = await until_shown(pilot, "528 ms")
        assert "528 ms" in row_of(shown, "cpu-loops")
        assert not app.state.ladder


def row_of(shown: str, rung: str) -> str:
    """The ladder's line of a rung."""
    return next(line for line in shown.splitlines()[4:] if rung in line)


async def test_one_key_opens_the_shipped_recording_and_goes_back(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = recorded(tmp_path / "other.jsonl", "2026-05-06T07:08:09Z")
    monkeypatch.setattr(app_module, "RECORDING", str(other))
    app = app_on(Options("replay", WORKLOAD, device=str(file)), tmp_path)
    async with app.run_test(size=(140, 45)) as pilot:
        await until_shown(pilot, SHOWN)
        await pilot.press("g", "down", "enter")
        await until_shown(pilot, VERDICT)
        await pilot.press("h")
        await until_shown(pilot, "▷ other 2026-05-06 on AMD EPYC")
        await until(pilot, lambda: app.state.lane is not None, "its first window")
        assert (app.state.current, app.state.pinned) == (BLAS, None)
        await pilot.press("h")
        await until_shown(pilot, SHOWN)


async def test_without_that_recording_the_key_says_so_and_the_screen_goes_on(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_module, "RECORDING", "not-shipped")
    app = app_on(Options("replay", WORKLOAD, device=str(file)), tmp_path)
    async with app.run_test(size=(140, 45)) as pilot:
        await until(pilot, lambda: app.state.lane is not None, "the first window")
        await pilot.press("h")
        await until_shown(pilot, "There is no recording 'not-shipped'")
        await pilot.press("g", "down", "enter")
        await until_shown(pilot, VERDICT)
