"""The line that explains: what is highlighted, or what went wrong last."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text

from gputop.tui.palette import BAD, MUTED, PINNED
from gputop.tui.widgets.sentence import Sentence


class ExplainLine(Sentence):
    """One sentence about the highlighted row."""

    def show(self, said: str) -> None:
        self.say(Text(said, Style(color=MUTED)))


class NoticeLine(Sentence):
    """What a key could not do, in a line of its own until the next key: it covers nothing."""

    most = 3

    def show(self, notice: str) -> None:
        self.display = bool(notice)
        self.say(Text(f"! {notice}", Style(color=PINNED)))


class TroubleLine(Sentence):
    """The last thing that went wrong, kept until it is mended or put away with escape."""

    def show(self, trouble: str) -> None:
        self.display = bool(trouble)
        self.say(Text(f"✖ {trouble}", Style(color=BAD)))
