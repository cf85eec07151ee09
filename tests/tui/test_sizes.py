"""Terminals of several sizes."""

from __future__ import annotations

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from gputop.tui.app import GputopApp
from gputop.tui.widgets.detail import detail_text
from gputop.tui.widgets.headline import headline
from gputop.tui.widgets.pane import Pane
from tests.tui.conftest import Running
from tests.tui.screen import table, text_of, until, until_shown
from tests.tui.test_state import measured, started

ALWAYS = ("phase", "time_s")
SITES = ("embed", "ln1", "qkv", "attention", "wo", "ln2", "w1", "w2", "lnf", "head")
TOTALS = ("phases", "gaps", "device", "wall", "residual")


def is_wide(app: GputopApp, width: int) -> bool:
    return app.screen.size.width == width


async def test_nothing_is_wider_than_the_terminal(running: Running) -> None:
    async with running(size=(240, 70)) as (app, pilot, _):
        for width, height in ((240, 70), (140, 45), (100, 30), (80, 24), (60, 15)):
            await pilot.resize_terminal(width, height)
            await until(pilot, partial(is_wide, app, width), "the new size")
            await pilot.pause()
            for name in ("ladder", "phases"):
                shown = table(app, name)
                if not shown.size.width:
                    continue
                widths = shown.widths
                assert sum(widths.values()) + len(widths) - 1 <= shown.size.width
            assert set(ALWAYS) <= set(table(app, "phases").widths)


async def test_80x24_shows_every_phase_the_totals_and_the_ladder(running: Running) -> None:
    async with running(size=(80, 24)) as (app, pilot, _):
        await until(pilot, lambda: all(name in text_of(app) for name in (*SITES, *TOTALS)), "every row")
        assert {"bar", "over", "binds"} <= set(table(app, "phases").widths)
        assert "▸cpu-blas" in text_of(app)


async def test_how_the_gate_was_passed_is_in_the_headline_at_any_width(running: Running) -> None:
    async with running() as (app, _, _):
        for width in (60, 78, 80, 100, 140, 200):
            line = headline(app.state, width)
            assert "PASS" in line.plain
            assert line.cell_len <= width


async def test_a_table_that_does_not_fit_says_how_many_rows_it_shows(running: Running) -> None:
    async with running(size=(60, 15)) as (app, pilot, _):
        await until_shown(pilot, "of 10 rows")
        shown = text_of(app)
        assert "device" in shown
        await pilot.press("end")
        await until(pilot, lambda: "head" in text_of(app), "the last row by scrolling")


async def test_the_highlighted_row_stays_in_view_when_its_pane_shrinks(running: Running) -> None:
    """As the ladder's does when the toggles below it come."""
    async with running(size=(140, 45)) as (app, pilot, _):
        ladder = table(app, "ladder")
        await until(pilot, lambda: 1 < ladder.row_count < ladder.size.height, "all the rungs")
        await pilot.press("g", "end")
        app.screen.query_one("#ladder-pane").styles.height = 6
        await until(pilot, lambda: ladder.size.height < ladder.row_count, "a pane with fewer rows")
        await until(pilot, lambda: ladder.scroll_offset.y == ladder.max_scroll_y > 0, "its last row")


async def test_columns_come_and_go_with_the_width(running: Running) -> None:
    async with running(size=(140, 45)) as (app, pilot, _):
        wide = set(table(app, "phases").widths)
        assert {"count", "bar", "over", "binds"} <= wide
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


async def test_the_selected_phase_is_taken_apart_below_the_table(running: Running) -> None:
    async with running(size=(140, 45)) as (_, pilot, _):
        shown = await until_shown(pilot, "w2 · gemm-blas")
        assert "unexplained" in shown
        assert "dispatch" in shown or "gemm-blas" in shown
        await pilot.press("down")
        await until_shown(pilot, "attention · attention-numpy")


@given(lines=st.integers(-2, 30), width=st.integers(1, 200))
def test_a_phase_taken_apart_fits_its_room(lines: int, width: int) -> None:
    state = measured(started())
    text = detail_text(state, width, lines).plain
    shown = text.splitlines() if text else []
    assert len(shown) <= max(0, lines)
    assert width < 60 or all(len(line.rstrip()) <= width for line in shown)


def test_the_smallest_terms_are_left_out_first() -> None:
    state = measured(started())
    lines = detail_text(state, 90, 5).plain.splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["measured", "dram", "compute", "unexplained"]


async def test_where_one_line_is_left_it_is_a_rows(running: Running) -> None:
    async with running() as (app, pilot, _):
        pane = app.screen.query_one("#toggles-pane", Pane)
        await until(pilot, lambda: pane.table.row_count > 1, "its rows")
        pane.styles.height = 2
        await until(pilot, lambda: pane.content_size.height == 2, "its heading and one line")
        await pilot.pause()
        assert not pane.query_one(".more").display
        pane.styles.height = 3
        await until(pilot, lambda: pane.content_size.height == 3, "its heading and two lines")
        await until_shown(pilot, f"1 of {pane.table.row_count} rows")


async def test_the_row_of_a_plan_chosen_elsewhere_comes_into_view(running: Running) -> None:
    async with running(size=(80, 15)) as (app, pilot, _):
        ladder = table(app, "ladder")
        await until(pilot, lambda: ladder.highlighted_key == "cpu-blas", "the rung")
        seen = ladder.scrollable_content_region.height
        assert seen < ladder.row_count
        await pilot.press("g", "end", "t", "enter", "g")
        await until(pilot, lambda: (ladder.highlighted_key or "").startswith("+cpu-blas,"), "the plan's row")
        await until_shown(pilot, "└")
