"""One phase on a screen of its own: time by term, launch, occupancy, rates, its history, its check."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.binding import BindingType

from gputop.results.inspection import Section, sections
from gputop.tui import facts
from gputop.tui.actions import bindings_of
from gputop.tui.format import fitted
from gputop.tui.palette import MUTED, TEXT
from gputop.tui.state import State, View
from gputop.tui.views.pane import ViewPane
from gputop.tui.widgets.detail import detail_text
from gputop.util.printable import printable

TERMS_LINES = 14
LEFT_WIDTH, GAP, LEAST_RIGHT_WIDTH = 88, 3, 45
"""Cells of two columns; a narrower pane has one."""
LEFT, RIGHT = ("launch", "occupancy", "rates"), ("on the ladder",)
"""Titles of the sections of each column; the others go across the pane below."""


def inspector_text(state: State, width: int) -> Text:
    """Return everything that is known of the selected phase, as `gputop inspect` prints it."""
    row = facts.selected_row(state)
    inspection = facts.inspection(state, row) if row is not None else None
    if inspection is None:
        return Text("Nothing is measured yet.", Style(color=MUTED))
    right_width = width - LEFT_WIDTH - GAP
    if right_width < LEAST_RIGHT_WIDTH:
        return _stacked([detail_text(state, width, TERMS_LINES), *map(_section, sections(inspection, width))])
    found = {section.title: _section(section) for section in sections(inspection, right_width)}
    left = [detail_text(state, LEFT_WIDTH, TERMS_LINES), *(found[title] for title in LEFT if title in found)]
    right = [found[title] for title in RIGHT if title in found]
    below = [text for title, text in found.items() if title not in (*LEFT, *RIGHT)]
    return _stacked([_beside(_stacked(left), _stacked(right), LEFT_WIDTH), *below])


def _section(section: Section) -> Text:
    text = Text(section.title, Style(color=TEXT, bold=True))
    for line in section.lines:
        text.append(f"\n  {printable(line)}", Style(color=MUTED, bold=False))
    return text


def _stacked(parts: Sequence[Text]) -> Text:
    return Text("\n\n").join(parts)


def _beside(left: Text, right: Text, width: int) -> Text:
    """Return two texts side by side, the left one in `width` cells."""
    pairs = zip_longest(left.split("\n"), right.split("\n"), fillvalue=Text())
    lines = (Text.assemble(fitted(one, width), " " * GAP, two) for one, two in pairs)
    return Text("\n").join(lines)


class InspectorView(ViewPane):
    """← and → go to the next phase, k opens its kernels."""

    view: ClassVar[View] = "inspect"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of("inspect")

    def draw(self, state: State, width: int, height: int) -> Text:
        return inspector_text(state, width)

    def explain(self, state: State) -> str:
        return "← → other phases; k chooses another kernel; ↑ ↓ scroll; esc or 1 goes back."
