"""A sentence that never takes more than its lines."""

from __future__ import annotations

from rich.text import Text
from textual.widgets import Static

from gputop.tui.format import in_lines


class Sentence(Static):
    """Wraps its text in `most` lines; what does not fit ends in an ellipsis."""

    most = 1

    def say(self, text: Text) -> None:
        self.update(in_lines(text, self.content_size.width, self.most))
