"""Terminals of several sizes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from textual.events import Resize

from gputop.results.records import Health
from gputop.tui.app import GputopApp
from gputop.tui.palette import TERMS
from gputop.tui.widgets.device_line import second_line
from gputop.tui.widgets.pane import Pane
from gputop.tui.widgets.terms import TermsView, terms_text
from tests.tui.conftest import Running
from tests.tui.screen import table, text_of, until, until_shown
from tests.tui.test_state import measured, started

ALWAYS = ("phase", "time_s")
SITES = ("embed", "ln1", "qkv", "attention", "wo", "ln2", "w1", "w2", "lnf", "head")
LETTERS = {mark.letter for mark in TERMS}
TOTALS = ("sum", "gaps", "device", "wall", "residual")


def is_wide(app: GputopApp, width: int) -> bool:
    return app.screen.size.width == width


async def test_nothing_is_wider_than_the_terminal(running: Running) -> None:
    async with running(size=(240, 70)) as (app, pilot, _):
        for width, height in ((240, 70), (140, 45), (100, 30), (80, 24), (60, 15)):
            await pilot.resize_terminal(width, height)
            await until(pilot, partial(is_wide, app, width), "the new size")
            await pilot.pause()
            for name in ("ladder", "phases", "totals"):
                shown = table(app, name)
                widths = shown.widths
                assert sum(widths.values()) + len(widths) - 1 <= shown.size.width
            assert set(ALWAYS) <= set(table(app, "phases").widths)
            assert table(app, "totals").widths == table(app, "phases").widths


async def test_80x24_shows_every_phase_and_every_total(running: Running) -> None:
    async with running(size=(80, 24)) as (app, pilot, _):
        await until(pilot, lambda: all(name in text_of(app) for name in (*SITES, *TOTALS)), "every row")
        assert {"bar", "efficiency", "binds", "delta_s"} <= set(table(app, "phases").widths)


async def test_how_the_gate_was_passed_is_shown_beside_any_health(running: Running) -> None:
    healths = (
        Health(sm_clock_hz=1.98e9, power_w=175.0, temperature_c=41.0, throttle=(), others=()),
        Health(
            sm_clock_hz=1.98e9,
            power_w=700.0,
            temperature_c=80.0,
            throttle=("sw-power-cap", "hw-thermal-slowdown"),
            others=("1234 train",),
        ),
    )
    async with running() as (app, _, _):
        shot = app.state.shot
        assert shot is not None
        for health in healths:
            state = replace(app.state, latest=replace(shot, window=replace(shot.window, health=health)))
            for width in (60, 78, 80, 100):
                line = second_line(state, width, gate=True)
                assert "PASS" in line.plain
                assert line.cell_len <= width


async def test_a_table_that_does_not_fit_says_how_many_rows_it_shows(running: Running) -> None:
    async with running(size=(60, 15)) as (app, pilot, _):
        await until_shown(pilot, "of 10 rows")
        shown = text_of(app)
        for name in TOTALS:
            assert name in shown
        await pilot.press("tab", "end")
        await until(pilot, lambda: "head" in text_of(app), "the last row by scrolling")


async def test_the_highlighted_row_stays_in_view_when_its_pane_shrinks(running: Running) -> None:
    """As the ladder's does when the toggles below it come."""
    async with running(size=(140, 45)) as (app, pilot, _):
        ladder = table(app, "ladder")
        await until(pilot, lambda: 1 < ladder.row_count < ladder.size.height, "all the rungs")
        await pilot.press("end")
        app.screen.query_one("#ladder-pane").styles.height = 6
        await until(pilot, lambda: ladder.size.height < ladder.row_count, "a pane with fewer rows")
        await until(pilot, lambda: ladder.scroll_offset.y == ladder.max_scroll_y > 0, "its last row")


async def test_columns_come_and_go_with_the_width(running: Running) -> None:
    async with running(size=(140, 45)) as (app, pilot, _):
        wide = set(table(app, "phases").widths)
        assert {"kernel", "count", "occupancy_theoretical", "delta_s"} <= wide
        await pilot.resize_terminal(70, 24)
        await until(pilot, lambda: len(table(app, "phases").widths) < len(wide), "fewer columns")
        assert set(ALWAYS) <= set(table(app, "phases").widths)
        await pilot.resize_terminal(140, 45)
        await until(pilot, lambda: set(table(app, "phases").widths) == wide, "the columns back")


async def test_too_small_asks_for_room_and_recovers(running: Running) -> None:
    async with running(size=(80, 24)) as (_, pilot, _):
        await pilot.resize_terminal(50, 12)
        await until_shown(pilot, "This terminal has 50x12 cells.")
        await pilot.resize_terminal(80, 24)
        await until_shown(pilot, "13.400")


async def test_tall_terminals_take_the_worst_phase_apart(running: Running) -> None:
    async with running(size=(140, 45)) as (_, pilot, _):
        shown = await until_shown(pilot, "w2: the time that each resource alone would take")
        assert "unexplained" in shown
        assert "dispatch" in shown
        await pilot.press("tab", "down", "down")
        await until_shown(pilot, "qkv: the time that each resource alone would take")


async def test_the_terms_have_their_bars_though_they_were_drawn_without_a_width(running: Running) -> None:
    async with running(size=(140, 45)) as (app, pilot, _):
        terms = app.screen.query_one(TermsView)
        await until(pilot, lambda: terms.display and "█" in str(terms.render()), "its bars")
        terms.put(terms_text(app.state, None, 0))
        assert "█" not in str(terms.render())
        terms.post_message(Resize(terms.size, terms.size))
        await until(pilot, lambda: "█" in str(terms.render()), "its bars again")


@pytest.mark.parametrize("lines", range(12))
def test_the_terms_fit_into_the_lines_that_there_are_the_smallest_left_out_first(lines: int) -> None:
    state = measured(started())
    whole, fitted = (terms_text(state, "w2", 90, most).plain.splitlines() for most in (None, lines))
    assert len(fitted) <= lines
    if len(whole) <= lines:
        assert fitted == whole
    elif lines == 6:
        assert [line[0] for line in fitted[3:-1]] == ["C", "D"], "without the launch"
    if fitted and len(fitted) < len(whole):
        assert "slowest of" in fitted[0]
        shown, left = set(fitted[1:]), set(whole[1:]) - set(fitted[1:])
        assert any(line.startswith("unexplained") for line in shown)
        bars = {line.count("█") for line in left}
        assert max(bars) <= min(line.count("█") for line in shown if line.split()[0] in LETTERS)


@pytest.mark.parametrize("lines", [-3, 0, 2])
def test_a_phase_without_terms_takes_no_more_lines_than_there_are_either(lines: int) -> None:
    state = measured(started())
    assert state.lane is not None
    bare = replace(state.lane.rows[7], compute_s=None, dram_s=None, launch_s=None)
    kept = (*state.lane.rows[:7], bare, *state.lane.rows[8:])
    assert state.latest is not None
    window = state.latest.window
    lanes = tuple(replace(lane, rows=kept) for lane in window.lanes)
    bared = replace(state, latest=replace(state.latest, window=replace(window, lanes=lanes)))
    assert terms_text(bared, bare.phase, 90).plain.count("\n") == 4
    assert terms_text(bared, bare.phase, 90, lines).plain == ""


def test_a_heading_that_is_too_long_takes_no_second_line() -> None:
    state = measured(started())
    heading = terms_text(state, "w2", 50).plain.splitlines()[0]
    assert len(heading) == 50
    assert heading.endswith("…")


async def test_where_one_line_is_left_it_is_a_rows(running: Running) -> None:
    async with running(size=(80, 24)) as (app, pilot, _):
        pane = app.screen.query_one("#toggles-pane", Pane)
        await until(pilot, lambda: pane.table.row_count > 1, "its rows")
        pane.styles.height = 1
        await until(pilot, lambda: pane.content_size.height == 1, "its one line")
        await pilot.pause()
        assert not pane.query_one(".more").display
        pane.styles.height = 2
        await until(pilot, lambda: pane.content_size.height == 2, "its two lines")
        await until_shown(pilot, f"1 of {pane.table.row_count} rows")


async def test_the_row_of_a_plan_chosen_elsewhere_comes_into_view(running: Running) -> None:
    async with running(size=(80, 15)) as (app, pilot, _):
        ladder = table(app, "ladder")
        await until(pilot, lambda: ladder.highlighted_key == "cpu-blas", "the rung")
        seen = ladder.scrollable_content_region.height
        assert seen < ladder.row_count
        await pilot.press("end", "t", "enter")
        await until(pilot, lambda: (ladder.highlighted_key or "").startswith("+cpu-blas,"), "the plan's row")
        await until_shown(pilot, "└")
