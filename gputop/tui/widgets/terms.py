"""One phase taken apart: its time, its floor, and the time that each resource alone would take."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text
from textual.widget import Widget

from gputop.tui.format import EXCESS_CELL, SOLID, TimeUnit
from gputop.tui.palette import EXCESS, FAINT, FLOOR, MUTED, TERMS, TEXT, TermMark
from gputop.tui.state import State
from gputop.tui.widgets.cached_static import CachedStatic
from gputop.tui.widgets.phase_table import lane_unit, worst_phase

Term = tuple[TermMark, float]
"""How a term is drawn, and its seconds."""

HEADING_AND_MEASURED = 2
FEWEST_TERMS = 2
LABEL_WIDTH = 12
VALUE_WIDTH = 9


def terms_text(state: State, site: str | None, width: int, lines: int | None = None) -> Text:
    """The phase at `site`, or the one with the largest excess; empty before the first window.

    In at most so many `lines`: the smallest terms are left out first, and it is empty where fewer than
    `FEWEST_TERMS` would be left of more.
    """
    rows = state.lane.rows if state.lane else ()
    row = next((row for row in rows if row.phase == site), None) or worst_phase(state)
    if row is None or row.time_s is None or state.lane is None:
        return Text("")
    unit = lane_unit(state.lane)
    known = [(mark, getattr(row, f"{mark.term}_s", None)) for mark in TERMS]
    terms = [(mark, value_s) for mark, value_s in known if value_s is not None]
    every = len(terms)
    if lines is not None:
        # What is asked first is where the time is: the smallest terms say least of that.
        others = HEADING_AND_MEASURED + (row.floor_s is not None) + (row.unexplained_s is not None)
        terms = _largest(terms, lines - others)
        if lines < others or len(terms) < min(every, FEWEST_TERMS):
            return Text("")
    full_s = max([row.time_s, *(value_s for _, value_s in terms)])
    room = max(1, width - LABEL_WIDTH - VALUE_WIDTH - 1)
    text = Text(no_wrap=True, overflow="ellipsis")
    heading = Text.assemble(
        (row.phase, Style(color=TEXT, bold=True)),
        (
            f": the time that {_which(len(terms), every)} alone would take, and what it took",
            Style(color=MUTED),
        ),
    )
    heading.truncate(max(1, width), overflow="ellipsis")
    text.append_text(heading).append("\n")
    _line(text, "measured", row.time_s, unit, full_s, room, EXCESS, EXCESS_CELL)
    if row.floor_s is not None:
        _line(text, "floor", row.floor_s, unit, full_s, room, FLOOR, SOLID)
    for mark, value_s in terms:
        binds = mark.term == row.binds
        _line(text, f"{mark.letter} {mark.term}", value_s, unit, full_s, room, mark.color, SOLID, binds)
    if row.unexplained_s is not None:
        _line(text, "unexplained", row.unexplained_s, unit, full_s, room, MUTED, EXCESS_CELL)
    return text


def _largest(terms: list[Term], most: int) -> list[Term]:
    """The largest, in the order in which they stand."""
    kept = sorted(terms, key=lambda term: -term[1])[: max(0, most)]
    return [term for term in terms if term in kept]


def _which(shown: int, every: int) -> str:
    return "each resource" if shown == every else f"each of the {shown} slowest of {every} resources"


def _line(
    text: Text,
    label: str,
    value_s: float,
    unit: TimeUnit,
    full_s: float,
    room: int,
    color: str,
    cell: str,
    binds: bool = False,
) -> None:
    note = " binds" if binds else ""
    length = max(0, min(room - len(note), round((room - 6) * value_s / full_s)))
    text.append(f"{label:<{LABEL_WIDTH}}", Style(color=TEXT if binds else MUTED, bold=binds))
    text.append(f"{unit.write(value_s):>{VALUE_WIDTH}} ", Style(color=TEXT))
    text.append(cell * length, Style(color=color))
    text.append(f"{note}\n", Style(color=FAINT))


class TermsView(CachedStatic):
    """Fills the room that a tall terminal leaves below the phases."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._subject: tuple[State, str | None, int] = State(), None, 0

    def show(self, state: State, site: str | None, spare: int) -> None:
        """In at most `spare` rows, or not at all."""
        self._subject = state, site, spare - self.gutter.height
        self.put(text := self._text())
        self.display = bool(text)

    @property
    def _width(self) -> int:
        """That of its text: from what it stands in, as it has none of its own while it is hidden."""
        assert isinstance(self.parent, Widget)
        return self.parent.content_size.width - self.gutter.width

    def on_resize(self) -> None:
        self.put(self._text())

    def _text(self) -> Text:
        state, site, lines = self._subject
        return terms_text(state, site, self._width, lines)
