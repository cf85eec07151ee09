"""A table whose rows are known by key: columns fit the width, and an update touches changed cells only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.coordinate import Coordinate
from textual.message import Message
from textual.widgets import DataTable
from textual.widgets.data_table import ColumnKey

from gputop.tui.format import fitted, same
from gputop.tui.layout import GAP, Fitted, LayoutColumn, fit
from gputop.tui.state import State

Cells = Mapping[str, str | Text]
"""Column key -> what stands there; a column left out stays blank."""


class KeyedTable(DataTable[Text]):
    """Base of the screen's tables. One click, or enter, chooses a row."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "choose", show=True, tooltip="Choose or flip the highlighted row"),
        Binding("home", "scroll_top", "first row", show=False),
        Binding("end", "scroll_bottom", "last row", show=False),
    ]

    click_chooses: ClassVar[bool] = True
    """Whether one click chooses a row, as enter does; if not, it only highlights it."""

    class HeaderClicked(Message):
        """A column's heading was clicked."""

        def __init__(self, table: KeyedTable, column: str) -> None:
            super().__init__()
            self.table = table
            self.column = column

        @property
        def control(self) -> KeyedTable:
            return self.table

    class Fits(Message):
        """How many of the table's rows can be seen changed."""

        def __init__(self, table: KeyedTable) -> None:
            super().__init__()
            self.table = table

        @property
        def control(self) -> KeyedTable:
            return self.table

    def __init__(self, columns: Sequence[LayoutColumn], *, id: str, show_header: bool = True) -> None:
        super().__init__(
            id=id,
            cursor_type="row",
            cell_padding=0,
            show_header=show_header,
            zebra_stripes=False,
            cursor_foreground_priority="renderable",
        )
        self._declared = tuple(columns)
        self._fitted: tuple[Fitted, ...] = ()
        self._cells: dict[str, Cells] = {}
        self._drawn: dict[str, tuple[Text, ...]] = {}
        self._labels: dict[str, str] = {}
        self._looks = ("", False)
        """Theme and focus that the cells were drawn for."""
        self._width_before = 0
        self._width = 0
        self._wanted: str | None = None
        """The row under the cursor before the rows went away: the cursor returns to it with them."""

    def declare(self, columns: Sequence[LayoutColumn]) -> None:
        """Show other columns from here on."""
        if tuple(columns) != self._declared:
            self._declared = tuple(columns)
            if self._width:
                self.fit_columns(self._width)

    def show(self, state: State) -> None:
        """Draw this table's part of the state."""
        raise NotImplementedError

    def fit_columns(self, width: int) -> None:
        """Lay the columns out anew for `width` cells. A table of totals may be laid out like another."""
        self._width = width
        fitting = fit(self._declared, width)
        if fitting == self._fitted:
            return
        cursor = self.cursor_row
        self._fitted = fitting
        self._drawn = {}
        with self.app.batch_update():
            self.clear(columns=True)
            for item in fitting:
                gap = 0 if item is fitting[-1] else GAP
                self.add_column(self._label(item), key=item.column.key, width=item.width + gap)
            self._draw_all()
            if self.row_count:
                self.move_cursor(row=min(cursor, self.row_count - 1))

    @property
    def widths(self) -> dict[str, int]:
        """Cells of each column on the screen just now."""
        return {item.column.key: item.width for item in self._fitted}

    def relabel(self, labels: Mapping[str, str]) -> None:
        """Other labels for some columns: a unit that follows the values."""
        if labels == self._labels:
            return
        self._labels = dict(labels)
        for item in self._fitted:
            self.columns[ColumnKey(item.column.key)].label = self._label(item)
        self.refresh()

    def _label(self, item: Fitted) -> Text:
        label = self._labels.get(item.column.key, item.label)
        return fitted(label, item.width, item.column.right)

    def show_rows(self, rows: Mapping[str, Cells]) -> None:
        """Show exactly these rows, in this order."""
        if not self._fitted:
            self._cells = dict(rows)
            return
        with self.app.batch_update():
            if list(rows) == list(self._cells) and self._drawn:
                self._cells = dict(rows)
                for key, cells in rows.items():
                    self._update_row(key, cells)
                return
            chosen = self.highlighted_key or self._wanted
            self._wanted = chosen
            self._cells = dict(rows)
            self.clear()
            self._drawn = {}
            self._draw_all()
            if chosen in self._cells:
                self.move_cursor(row=list(self._cells).index(chosen))
        self.post_message(self.Fits(self))

    @property
    def highlighted_key(self) -> str | None:
        """Key of the row under the cursor."""
        keys = list(self._cells)
        return keys[self.cursor_row] if 0 <= self.cursor_row < len(keys) else None

    def highlight(self, key: str) -> None:
        """Move the cursor to a row, where there is such a row."""
        keys = list(self._cells)
        if key in keys:
            self.move_cursor(row=keys.index(key))

    def _draw_all(self) -> None:
        for key, cells in self._cells.items():
            drawn = self._draw(cells)
            self._drawn[key] = drawn
            self.add_row(*drawn, key=key)

    def _update_row(self, key: str, cells: Cells) -> None:
        drawn = self._draw(cells)
        for item, old, new in zip(self._fitted, self._drawn[key], drawn, strict=True):
            if not same(old, new):
                self.update_cell(key, item.column.key, new)
        self._drawn[key] = drawn

    def _draw(self, cells: Cells) -> tuple[Text, ...]:
        return tuple(
            fitted(cells.get(item.column.key, ""), item.width, item.column.right) for item in self._fitted
        )

    def notify_style_update(self) -> None:
        """Forget drawn cells for another theme or focus only, on which alone their colours depend.

        The base class forgets them whenever focus moves anywhere near, and draws every cell anew.
        """
        looks = self.app.theme, self.has_focus
        if looks != self._looks:
            self._looks = looks
            super().notify_style_update()
        else:
            super(DataTable, self).notify_style_update()

    def on_resize(self, event: events.Resize) -> None:
        if event.size.width == self._width_before:
            # The base class draws every cell anew, which another height asks of none.
            event.prevent_default()
        self._width_before = event.size.width
        self.post_message(self.Fits(self))
        if event.size.height and self.cursor_row < self.row_count:
            # A pane that shrinks cuts rows off at its end, the highlighted one among them.
            self.move_cursor(row=self.cursor_row)

    async def _on_click(self, event: events.Click) -> None:
        """The base class asks for a second click on a row before it counts as chosen."""
        row, column = event.style.meta.get("row", -1), event.style.meta.get("column", -1)
        if row == -1 and 0 <= column < len(self._fitted):
            event.stop()
            self.post_message(self.HeaderClicked(self, self._fitted[column].column.key))
            return
        if not self.click_chooses:
            event.stop()
            if 0 <= row < self.row_count:
                self.focus()
                self.cursor_coordinate = Coordinate(row, 0)
            return
        first = row != self.cursor_row and self.show_cursor
        await super()._on_click(event)
        if first and 0 <= row < self.row_count:
            self.cursor_coordinate = Coordinate(row, 0)
            self.action_select_cursor()
