"""Every key, column, mark and colour, made from the tables that the screen itself uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
from gputop.tui.layout import LayoutColumn
from gputop.tui.palette import CURRENT, MUTED, TERMS, TEXT, VERDICTS
from gputop.tui.screens.glossary import GLOSSARY
from gputop.tui.state import View
from gputop.tui.widgets import dispatch_table, ladder_table, phase_table, toggle_table
from gputop.tui.widgets.view_tabs import TITLES

VERDICT_MEANINGS = {
    "FASTER": "the 99 % interval of the paired ratio lies beyond what two copies of one plan reach",
    "SLOWER": "the same, the other way",
    "SAME": "the interval lies within it",
    "UNRESOLVED": "neither; the verdict says why",
}
NOTES = (
    ("–", "unknown here; never shown as 0"),
    ("~", "too short for its timer: unresolved"),
    ("█ ░", "a bar up to the floor, and what lies above it"),
    ("!", "what to know before the numbers are believed"),
)


class HelpScreen(ModalScreen[None]):
    """Scrolls; escape, ? or q closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q", "dismiss", "close", key_display="esc")
    ]

    def __init__(self, part: str) -> None:
        """`part`: the id of a pane or a view, whose section stands first."""
        super().__init__()
        self._part = part

    def compose(self) -> ComposeResult:
        first = PARTS.get(self._part, "Keys")
        with VerticalScroll(classes="dialog wide"):
            yield Static("esc closes   ↑ ↓ scroll   / finds any word by name", classes="hint")
            for name in (first, *(name for name in SECTIONS if name != first)):
                yield Static(SECTIONS[name]())


def _keys(view: View | None) -> Table:
    title = "Keys" if view is None else f"Keys of this view: {TITLES[view]}"
    rows = [(action.shown, action.doc) for action in ACTIONS if action.view == view]
    return _section(title, rows + (list(MOVING) if view is None else []))


def _columns(title: str, table: Iterable[LayoutColumn]) -> Table:
    return _section(title, [(column.label.strip() or "mark", column.doc) for column in table])


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


SECTIONS: dict[str, Callable[[], Table]] = {
    "Keys": lambda: _keys(None),
    "Phases": lambda: _columns("Phases", phase_table.COLUMNS),
    "Ladder": lambda: _columns("Ladder", ladder_table.COLUMNS),
    "Toggles": lambda: _columns("Toggles", toggle_table.COLUMNS),
    "Dispatch": lambda: _columns("Dispatch", dispatch_table.COLUMNS),
    "Roofline": lambda: _keys("roofline"),
    "Ladder chart": lambda: _keys("ladder"),
    "What-if": lambda: _keys("whatif"),
    "Terms": _terms,
    "Verdicts": _verdicts,
    "Words": lambda: _section("Words", list(GLOSSARY)),
    "Marks": lambda: _section("Marks", list(NOTES)),
}
PARTS = {
    "phases": "Phases",
    "ladder": "Ladder",
    "toggles": "Toggles",
    "dispatch": "Dispatch",
    "view-roofline": "Roofline",
    "view-ladder": "Ladder chart",
    "view-inspect": "Terms",
    "view-whatif": "What-if",
    "view-diff": "Verdicts",
}
"""Id of a focused pane -> the section that help opens on."""
