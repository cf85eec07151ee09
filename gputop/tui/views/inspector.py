"""One phase on a screen of its own: time by term, launch, occupancy, rates, its history, its check."""

from __future__ import annotations

from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.binding import BindingType

from gputop.results.inspection import sections
from gputop.tui import facts
from gputop.tui.actions import bindings_of
from gputop.tui.palette import MUTED, TEXT
from gputop.tui.state import State, View
from gputop.tui.views.pane import ViewPane
from gputop.tui.widgets.detail import detail_text
from gputop.util.printable import printable

TERMS_LINES = 14


def inspector_text(state: State, width: int) -> Text:
    """Return everything that is known of the selected phase, as `gputop inspect` prints it."""
    row = facts.selected_row(state)
    inspection = facts.inspection(state, row) if row is not None else None
    if inspection is None:
        return Text("Nothing is measured yet.", Style(color=MUTED))
    shown = [detail_text(state, width, TERMS_LINES)]
    for section in sections(inspection, width):
        text = Text(section.title, Style(color=TEXT, bold=True))
        for line in section.lines:
            text.append(f"\n  {printable(line)}", Style(color=MUTED, bold=False))
        shown.append(text)
    return Text("\n\n").join(shown)


class InspectorView(ViewPane):
    """← and → go to the next phase, k opens its kernels."""

    view: ClassVar[View] = "inspect"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of("inspect")

    def draw(self, state: State, width: int, height: int) -> Text:
        return inspector_text(state, width)

    def explain(self, state: State) -> str:
        return "← → other phases; k chooses another kernel; ↑ ↓ scroll; esc or 1 goes back."
