"""The verdict in words, or what to do to get one."""

from __future__ import annotations

from dataclasses import dataclass

from rich.style import Style
from rich.text import Text

from gputop.tui.palette import BAD, CURRENT, MUTED, PINNED, TEXT, VERDICTS
from gputop.tui.state import State
from gputop.tui.widgets.sentence import Sentence


@dataclass(frozen=True, slots=True)
class Words:
    """What is said before there is a verdict."""

    next: str
    stopped: str
    how_to_pair: str
    pin_stays: str


LIVE = Words(
    "Next window",
    "Stopped; press space to measure",
    "Choose a rung or flip a toggle: the next window pairs it with this plan.",
    "is pinned: choose another rung or flip a toggle, and the next window pairs the two.",
)
REPLAYED = Words(
    "Looked up",
    "Not shown; space tries again",
    "Choose a rung: it is shown as it was recorded, beside this plan where the two were paired.",
    "is pinned: choose another rung, and the two are shown as they were recorded.",
)
NO_TIME = "No verdict: a wrong answer gets no time. Flip back what was changed last."


def verdict_line(state: State) -> Text:
    window, words = state.window, REPLAYED if state.replaying else LIVE
    if state.pending:
        against = f" against {state.pinned_word}" if state.pair and state.pair.pinned else ""
        verb = words.next if state.measuring else words.stopped
        doing = f" ({state.doing})" if state.doing and state.measuring else ""
        return Text(f"… {verb}: {state.current_word}{against}{doing}.{_rows_of(state)}", Style(color=CURRENT))
    if window is None:
        return Text("")
    if state.lane is not None and not state.lane.gate.ok:
        return Text.assemble(("✖ FAIL ", Style(color=BAD, bold=True)), (NO_TIME, Style(color=TEXT)))
    delta = window.comparison.get("device") if window.comparison else None
    if delta is not None:
        mark = VERDICTS[delta.verdict]
        line = Text.assemble((f"{mark.symbol} ", Style(color=mark.color, bold=True)))
        said = window.verdict or delta.verdict
        before, word, after = said.partition(delta.verdict)
        line.append(before, Style(color=TEXT))
        line.append(word, Style(color=mark.color, bold=True))
        return line.append(after, Style(color=TEXT))
    if state.pinned_word is not None and state.pinned_word == state.current_word:
        return Text(f"◈ {state.current_word} {words.pin_stays}", Style(color=PINNED))
    if window.lane("pinned") is not None or (window.device.recording and window.verdict):
        return Text(window.verdict, Style(color=TEXT))
    return Text(words.how_to_pair, Style(color=MUTED))


def _rows_of(state: State) -> str:
    """Whose rows the table still shows."""
    if state.lane is None or state.window is None:
        return ""
    return f" The rows are of {state.lane.plan}, window {state.window.number}."


class VerdictLine(Sentence):
    """Says whether the change is real."""

    def show(self, state: State) -> int:
        """Returns the lines it takes."""
        return self.say(verdict_line(state))
