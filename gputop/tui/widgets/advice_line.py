"""The one line of advice: the largest excess, and what spends less of it."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text

from gputop.tui.palette import FLOOR, TEXT
from gputop.tui.state import State
from gputop.tui.widgets.sentence import Sentence


def advice_line(state: State) -> Text:
    """Empty while the window on the screen is of another plan: its advice is not for this one."""
    if state.window is None or state.pending or not state.window.advice:
        return Text("")
    return Text.assemble(("→ ", Style(color=FLOOR, bold=True)), (state.window.advice, Style(color=TEXT)))


class AdviceLine(Sentence):
    """Says what to try next."""

    def show(self, state: State, most: int) -> None:
        self.most = most
        self.say(advice_line(state))
