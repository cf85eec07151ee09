"""Static text that costs nothing while it stays the same."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.widgets import Static

from gputop.tui.format import same


class CachedStatic(Static):
    """Drawn anew only when its text differs, and laid out anew only when its number of lines does."""

    fills: ClassVar[bool] = False
    """Whether its height is given, whatever it holds."""
    _shown: Text | None = None

    def put(self, text: Text) -> None:
        before = self._shown
        if before is not None and same(text, before):
            return
        self._shown = text
        grown = before is None or text.plain.count("\n") != before.plain.count("\n")
        self.update(text, layout=grown and not self.fills)
