"""A table with what a narrow terminal must not hide: how many of its rows can be seen."""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Static

from gputop.tui.widgets.keyed_table import KeyedTable


class Pane(Vertical):
    """Holds one table; below it `8 of 22 rows` where they don't all fit."""

    def __init__(self, table: KeyedTable, title: str) -> None:
        super().__init__(id=f"{table.id}-pane", classes="pane")
        self.table = table
        self.border_title = title

    def compose(self) -> ComposeResult:
        yield self.table
        yield Static(classes="more")

    @property
    def frame(self) -> int:
        """Rows, or columns, that the frame takes."""
        return self.gutter.height

    def wanted_height(self) -> int:
        """Rows to show everything."""
        return self.table.row_count + self._header + self.frame

    @property
    def _header(self) -> int:
        return self.table.header_height if self.table.show_header else 0

    def count_rows(self) -> None:
        """Show or hide the count of rows, by the room there is."""
        room = self.content_size.height - self._header
        rows = self.table.row_count
        more = self.query_one(".more", Static)
        more.display = room > 0 and rows > room
        if more.display:
            more.update(f"{max(0, room - 1)} of {rows} rows")

    def on_resize(self, event: events.Resize) -> None:
        self.count_rows()

    def on_keyed_table_fits(self, event: KeyedTable.Fits) -> None:
        self.count_rows()


class Area(Vertical):
    """A part of the screen that says when its size changed."""

    class Resized(Message):
        pass

    def on_resize(self, event: events.Resize) -> None:
        self.post_message(self.Resized())
