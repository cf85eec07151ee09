"""What the worker says on stderr."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.widgets import RichLog


class LogPane(RichLog):
    """The tail of the worker's log; opened and closed by a key."""

    def __init__(self) -> None:
        super().__init__(id="log", wrap=True, highlight=False, markup=False)
        self.border_title = "worker log"
        self._shown: tuple[str, ...] = ()

    def show(self, lines: Sequence[str]) -> None:
        """Write what is new; start afresh when the tail moved past what is shown."""
        tail = tuple(lines)
        if tail == self._shown and tail:
            return
        grown = tail[: len(self._shown)] == self._shown
        if not grown or not self._shown:
            self.clear()
        for line in tail[len(self._shown) :] if grown else tail:
            self.write(Text(line))
        if not tail:
            self.write(Text("The worker has said nothing so far."))
        self._shown = tail
