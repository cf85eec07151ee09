"""What goes wrong, and how the screen says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.color import Color
from textual.widgets import Input

from gputop.plan.types import KernelChoice, PlanRequest
from gputop.results.export import read_phase_csv
from gputop.tui.app import GputopApp
from gputop.tui.options import Options
from gputop.util.errors import Unavailable
from tests.tui.conftest import Running
from tests.tui.fake.client import ReplayedClient
from tests.tui.fake.records import WORKLOAD, WRONG_KERNEL
from tests.tui.screen import cell, text_of, until, until_shown

BLACK = Color(0, 0, 0)
WRONG = PlanRequest("cpu-blas", (), (("w1", KernelChoice(WRONG_KERNEL)),))


async def test_a_wrong_answer_shows_where_and_by_how_much_and_no_time(running: Running) -> None:
    async with running(size=(140, 45), request=WRONG) as (app, pilot, client):
        shown = await until_shown(pilot, "gives a wrong answer, so it gets no time.")
        assert "w1 in layer 3: row 17 is off by 4.2e-02, allowed 1.0e-05." in shown
        assert "■ gate FAIL" in shown
        assert "excess ▾" not in shown
        assert cell(app, "ladder", f"+cpu-blas,w1:{WRONG_KERNEL}", "ratio") == "FAIL"
        assert client.windows == 1
        await pilot.press("e")
        await until_shown(pilot, "Nothing to export")


async def test_after_a_wrong_answer_another_choice_measures_again(running: Running) -> None:
    async with running(request=WRONG) as (_, pilot, client):
        await pilot.press("p", "p", "g", "up", "enter")
        await until(pilot, lambda: client.windows == 2, "the next window")


async def test_the_workers_death_costs_one_window(running: Running) -> None:
    async with running(size=(140, 45), own=True) as (app, pilot, client):
        client.die_next = True
        client.may_restart.clear()
        client.release()
        await until_shown(pilot, "A window is lost; a new worker is starting. The worker died during measure")
        client.may_restart.set()
        await until(pilot, lambda: "a new worker is starting" not in text_of(app), "nothing that is over")
        await until(pilot, lambda: app.state.worker == "ready" and client.windows == 2, "the next window")
        assert "restart" in client.calls
        assert app.state.current == PlanRequest("cpu-blas")


async def test_a_worker_that_keeps_dying_is_left_until_asked(running: Running) -> None:
    async with running(own=True) as (_app, pilot, client):
        client.die_always = True
        client.release()
        await until_shown(pilot, "✖ worker lost")
        assert client.calls.count("restart") == 2
        client.die_always = False
        await pilot.press("space")
        await until(pilot, lambda: client.windows == 2, "the next window")
        await until_shown(pilot, "● measuring")


async def test_a_device_that_is_not_here_ends_with_its_exit_code(tmp_path: Path) -> None:
    class NoDevice(ReplayedClient):
        def start(self) -> None:
            raise Unavailable("No NVIDIA driver here.")

    app = GputopApp(Options("cuda", WORKLOAD), NoDevice(tmp_path))
    async with app.run_test() as pilot:
        await until(pilot, lambda: not app.is_running, "the end")
    assert app.return_code == 3


async def test_export_writes_what_the_command_line_writes(running: Running, tmp_path: Path) -> None:
    target = tmp_path / "phases.csv"
    async with running() as (app, pilot, client):
        await pilot.press("e")
        await until_shown(pilot, "phase table as CSV")
        answer = app.screen.query_one(Input)
        assert answer.value.startswith("gputop-cpu-blas-")
        assert answer.value.endswith(".csv")
        answer.value = str(target)
        await pilot.press("enter")
        await until(pilot, target.exists, "the file")
        assert "check cpu-blas" in client.calls
    data = target.read_bytes()
    assert b"\r" not in data
    rows = read_phase_csv(data.decode("utf-8"))
    assert [row.phase for row in rows][-5:] == ["sum", "gaps", "device", "wall", "residual"]
    assert {row.gate for row in rows} == {"PASS"}


async def test_an_unwritable_file_is_refused_and_the_name_kept(running: Running, tmp_path: Path) -> None:
    async with running() as (app, pilot, client):
        await pilot.press("e")
        await until_shown(pilot, "phase table as CSV")
        wrong = str(tmp_path / "nowhere" / "phases.csv")
        app.screen.query_one(Input).value = wrong
        await pilot.press("enter")
        await until_shown(pilot, "there is no folder")
        assert app.screen.query_one(Input).value == wrong
        await pilot.press("escape")
        await until(pilot, lambda: "13.400" in text_of(app), "the table, nothing lost")
        assert not any(call.startswith("check") for call in client.calls)


async def test_a_gate_that_fails_at_export_writes_nothing(running: Running, tmp_path: Path) -> None:
    async with running(size=(140, 45)) as (app, pilot, client):
        client.check_fails = True
        await pilot.press("e")
        await until_shown(pilot, "phase table as CSV")
        app.screen.query_one(Input).value = str(tmp_path / "phases.csv")
        await pilot.press("enter")
        await until_shown(pilot, "Not exported, the gate failed: w1 in layer 3")
    assert not (tmp_path / "phases.csv").exists()


async def test_without_colour_marks_still_tell(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with running(size=(140, 45), own=True) as (app, pilot, _):
        await pilot.press("g", "down", "enter")
        shown = await until_shown(pilot, "▲ cpu-blas → cpu-threads")
        for mark in ("▸ cpu-threads", "◆ cpu-blas", "× torch-eager", "dram", "compute", "▲", "█"):
            assert mark in shown
        colors = {
            tuple(segment.style.color.triplet)
            for strip in app.screen._compositor.render_strips()
            for segment in strip.apply_filter(app._filters[-1], BLACK)
            if segment.style and segment.style.color and segment.style.color.triplet
        }
        assert colors
        assert all(red == green == blue for red, green, blue in colors)
