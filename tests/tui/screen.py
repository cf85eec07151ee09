"""Driving the app in a test: wait on a condition, read the screen as text."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from textual.pilot import Pilot

from gputop.tui.app import GputopApp
from gputop.tui.widgets.keyed_table import KeyedTable

PATIENCE_S = 20.0
POLL_S = 0.03

Driver = Pilot[int]


def text_of(app: GputopApp) -> str:
    """What the screen shows, a line a row."""
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips)


async def until(pilot: Driver, condition: Callable[[], bool], what: str = "") -> None:
    """Let the app run until the condition holds."""
    deadline = monotonic() + PATIENCE_S
    while not condition():
        assert monotonic() < deadline, f"never came: {what or condition}\n{_screen(pilot)}"
        await pilot.pause(POLL_S)


async def until_shown(pilot: Driver, words: str) -> str:
    """Wait until these words are on the screen; returns all of it."""
    app = pilot.app
    assert isinstance(app, GputopApp)
    await until(pilot, lambda: words in text_of(app), f"{words!r} on the screen")
    return text_of(app)


async def click_on(pilot: Driver, words: str) -> None:
    """Click where these words stand."""
    for y, line in enumerate((await until_shown(pilot, words)).splitlines()):
        if words in line:
            await pilot.click(offset=(line.index(words), y))
            return


def table(app: GputopApp, name: str) -> KeyedTable:
    return app.screen.query_one(f"#{name}", KeyedTable)


def cell(app: GputopApp, name: str, row: str, column: str) -> str:
    """The text of one cell."""
    return table(app, name).get_cell(row, column).plain.strip()


def _screen(pilot: Driver) -> str:
    return text_of(pilot.app) if isinstance(pilot.app, GputopApp) else ""
