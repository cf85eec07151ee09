"""A recording on the screen, served by a real worker: opened by a key or at the start, and named as one."""

from __future__ import annotations

from pathlib import Path

import pytest

from gputop import recording
from gputop.client import Client
from gputop.recording import EndLine, Header, Line, PlanLine, WindowLine
from gputop.results import Ceilings
from gputop.spec import PlanRequest
from gputop.tui import app as app_module
from gputop.tui.app import GputopApp
from gputop.tui.options import Options
from gputop.workloads import parse_workload
from tests.tui.fake.records import DEVICE, RUNGS, TIME_UTC, WORKLOAD, view_of, window_of
from tests.tui.screen import text_of, until, until_shown

BLAS, THREADS, LOOPS = (PlanRequest(name) for name in ("cpu-blas", "cpu-threads", "cpu-loops"))
SHOWN = "recording of 2026-01-02 on AMD EPYC"


def recorded(path: Path, time_utc: str) -> Path:
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
        *(PlanLine(view=view_of(plan)) for plan in plans),
        WindowLine(window=window_of(1, BLAS, None)),
        WindowLine(window=window_of(2, THREADS, BLAS)),
        WindowLine(window=window_of(3, LOOPS, None)),
        EndLine(),
    )
    path.write_bytes(b"".join(recording.encode(line) for line in lines))
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return recorded(tmp_path / "canned.jsonl", TIME_UTC)


def app_on(options: Options, folder: Path) -> GputopApp:
    return GputopApp(options, Client(log_path=folder / "worker.log"), update_s=0.02)


async def test_a_recording_is_walked_as_a_device_is_and_says_what_it_is(file: Path, tmp_path: Path) -> None:
    app = app_on(Options("replay", parse_workload("tiny"), device=str(file)), tmp_path)
    async with app.run_test(size=(120, 45)) as pilot:
        shown = await until_shown(pilot, "window 1 · ▷ replay")
        first = shown.splitlines()[0]
        assert SHOWN in first
        assert "gpt2-small" in first
        assert "measuring" not in shown
        assert "ago" not in first
        await pilot.press("down", "enter")
        await until_shown(pilot, "cpu-threads is FASTER than cpu-blas")
        assert "window 2 · ▷ replay" in text_of(app)
        await pilot.press("up", "up", "up", "enter")
        await until_shown(pilot, "cpu-loops and cpu-blas did not run in one window of this recording.")
        await pilot.press("down", "enter")
        await until(pilot, lambda: bool(app._notifications), "the refusal")
        assert app.state.current == LOOPS


async def test_one_key_opens_the_shipped_recording_and_goes_back(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file stands for its name: the worker is another process and knows what is shipped only."""
    other = recorded(tmp_path / "other.jsonl", "2026-05-06T07:08:09Z")
    monkeypatch.setattr(app_module, "RECORDING", str(other))
    app = app_on(Options("replay", WORKLOAD, device=str(file)), tmp_path)
    async with app.run_test(size=(120, 45)) as pilot:
        await until_shown(pilot, SHOWN)
        await pilot.press("down", "enter")
        await until_shown(pilot, "cpu-threads is FASTER than cpu-blas")
        await pilot.press("h")
        await until_shown(pilot, "recording of 2026-05-06 on AMD EPYC")
        await until(pilot, lambda: app.state.lane is not None, "its first window")
        assert (app.state.current, app.state.pinned) == (BLAS, None)
        await pilot.press("h")
        await until_shown(pilot, SHOWN)


async def test_without_that_recording_the_key_says_so_and_the_screen_goes_on(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_module, "RECORDING", "not-shipped")
    app = app_on(Options("replay", WORKLOAD, device=str(file)), tmp_path)
    async with app.run_test(size=(120, 45)) as pilot:
        await until(pilot, lambda: app.state.lane is not None, "the first window")
        await pilot.press("h")
        await until_shown(pilot, "There is no recording 'not-shipped'")
        await pilot.press("down", "enter")
        await until_shown(pilot, "cpu-threads is FASTER than cpu-blas")
