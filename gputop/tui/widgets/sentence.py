"""A sentence across the screen that never takes more than its lines."""

from __future__ import annotations

from rich.text import Text

from gputop.tui.format import in_lines
from gputop.tui.widgets.cached_static import CachedStatic


class Sentence(CachedStatic):
    """Wraps its text in `most` lines; what does not fit ends in an ellipsis."""

    most = 1

    def say(self, text: Text) -> int:
        """Returns the lines it takes."""
        # The terminal's width, not its own: one that was hidden until here has no size yet.
        lines = in_lines(text, self.app.size.width - self.gutter.width, self.most)
        self.put(lines)
        return lines.plain.count("\n") + 1
