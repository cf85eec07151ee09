"""Every key, column, mark and colour, made from the tables that the screen itself uses."""

from __future__ import annotations

from typing import ClassVar

from rich.style import Style
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from gputop.tui.actions import ACTIONS, MOVING
from gputop.tui.palette import CURRENT, MUTED, TERMS, TEXT, VERDICTS
from gputop.tui.widgets import dispatch_table, ladder_table, phase_table, toggle_table

VERDICT_MEANINGS = {
    "FASTER": "the 99 % interval of the paired ratio lies beyond what two copies of one plan reach",
    "SLOWER": "the same, the other way",
    "SAME": "the interval lies within it",
    "UNRESOLVED": "neither; the verdict says why",
}
NOTES = (
    ("–", "unknown here; never shown as 0"),
    (">112%", "over floor; what is said of the row names the cause"),
    ("~", "too short for its timer: unresolved"),
    ("≥27.7", "in the totals: the floor"),
)


class HelpScreen(ModalScreen[None]):
    """Scrolls; escape, ? or q closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q", "dismiss", "close", key_display="esc")
    ]

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog wide"):
            yield Static(_section("Keys", [(a.shown, a.doc) for a in ACTIONS] + list(MOVING)))
            yield Static(_section("Ladder", [(c.label.strip(), c.doc) for c in ladder_table.COLUMNS]))
            yield Static(_section("Phases", [(c.label, c.doc) for c in phase_table.COLUMNS]))
            yield Static(_section("Toggles", [(c.label, c.doc) for c in toggle_table.COLUMNS]))
            yield Static(_section("Dispatch", [(c.label, c.doc) for c in dispatch_table.COLUMNS]))
            yield Static(_terms())
            yield Static(_verdicts())
            yield Static(_section("Marks", list(NOTES)))


def _grid(title: str) -> Table:
    table = Table(box=None, show_header=False, title=title, title_justify="left", expand=True, padding=(0, 1))
    table.title_style = Style(color=CURRENT, bold=True)
    table.add_column(width=16, no_wrap=True)
    table.add_column(ratio=1)
    return table


def _section(title: str, rows: list[tuple[str, str]]) -> Table:
    table = _grid(title)
    for name, doc in rows:
        table.add_row(Text(name, Style(color=TEXT)), Text(doc, Style(color=MUTED)))
    return table


def _terms() -> Table:
    table = _grid("What binds")
    for mark in TERMS:
        table.add_row(Text(f"{mark.letter} {mark.term}", Style(color=mark.color)), Text(mark.meaning, MUTED))
    return table


def _verdicts() -> Table:
    table = _grid("Verdicts")
    for verdict, mark in VERDICTS.items():
        name = Text(f"{mark.symbol} {verdict}", Style(color=mark.color))
        table.add_row(name, Text(VERDICT_MEANINGS[verdict], MUTED))
    return table
