"""The advice: what was measured faster, then the largest excess and what is forecast to spend less of it."""

from __future__ import annotations

import re

from rich.style import Style
from rich.text import Text

from gputop.tui import steps
from gputop.tui.palette import FLOOR, TEXT
from gputop.tui.state import State
from gputop.tui.widgets.sentence import Sentence
from gputop.util.units import ratio

FORECAST = r" (?:No toggle or kernel here|These would reduce it)"
"""Where the advice of a window turns from what was measured to what is forecast."""


def advice_line(state: State) -> Text:
    """Return what was measured faster, then what is forecast; empty while another plan's window is shown."""
    if state.window is None or state.pending:
        return Text("")
    step = steps.best_step(state)
    said = Text("")
    if step is not None:
        said.append("→ ", Style(color=FLOOR, bold=True))
        said.append(
            f"{step.plan} was measured {ratio(step.ratio)} faster here: a applies it.  ", Style(color=TEXT)
        )
    if state.window.advice:
        forecast = state.window.advice
        if step is not None or state.replaying:
            # What was measured says more than the forecast that was made beside it.
            forecast = re.split(FORECAST, forecast)[0]
        mark = "" if step is not None else "→ "
        said.append(mark, Style(color=FLOOR, bold=True)).append(forecast, Style(color=TEXT))
    return said


class AdviceLine(Sentence):
    """Says what to try next."""

    def show(self, state: State, most: int) -> None:
        self.most = most
        self.say(advice_line(state))
