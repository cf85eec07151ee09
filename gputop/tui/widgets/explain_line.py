"""The line that explains: what is highlighted, or what went wrong last."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text

from gputop.tui.palette import BAD, MUTED
from gputop.tui.widgets.sentence import Sentence


class ExplainLine(Sentence):
    """One sentence about the highlighted row."""

    def show(self, said: str) -> None:
        self.say(Text(said, Style(color=MUTED)))


class TroubleLine(Sentence):
    """The last thing that went wrong, kept until it is mended or put away with escape."""

    def show(self, trouble: str) -> None:
        self.display = bool(trouble)
        self.say(Text(f"✖ {trouble}", Style(color=BAD)))
