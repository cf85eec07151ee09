"""A table with what a narrow terminal must not hide: how many of its rows can be seen."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widget import Widget

from gputop.tui.widgets.cached_static import CachedStatic
from gputop.tui.widgets.keyed_table import KeyedTable


class Pane(Vertical):
    """Holds one table, and below it `8 of 22 rows` where they don't all fit."""

    def __init__(
        self, table: KeyedTable, title: str, *, above: Sequence[Widget] = (), below: Sequence[Widget] = ()
    ) -> None:
        super().__init__(id=f"{table.id}-pane", classes="pane")
        self.table = table
        self.border_title = title
        self._above = tuple(above)
        self._below = tuple(below)
        self._more = CachedStatic(classes="more")

    def compose(self) -> ComposeResult:
        yield from self._above
        yield self.table
        yield self._more
        yield from self._below

    @property
    def _beside_rows(self) -> int:
        """Height of everything but the table's rows."""
        beside = (*self._above, *self._below)
        header = self.table.header_height if self.table.show_header else 0
        return header + sum(widget.outer_size.height for widget in beside if widget.display)

    def wanted_height(self) -> int:
        """Height to show everything, the frame included."""
        return self.table.row_count + self._beside_rows + self.gutter.height

    def count_rows(self) -> None:
        """Show or hide the count of rows, by the room there is."""
        if not self.content_size.height:
            # Hidden: what stood there stands there again when it is shown.
            return
        room = self.content_size.height - self._beside_rows
        rows = self.table.row_count
        # In the only line there is, a row says more than a count.
        self._more.display = self.table.display and 1 < room < rows
        self._more.put(Text(f"{room - 1} of {rows} rows"))

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
