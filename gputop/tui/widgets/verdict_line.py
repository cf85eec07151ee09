"""The verdict in words, or what to do to get one."""

from __future__ import annotations

from dataclasses import dataclass

from rich.style import Style
from rich.text import Text

from gputop.perf.verdicts import floor_words
from gputop.results.records import Comparison, Delta
from gputop.tui.palette import BAD, CURRENT, MUTED, PINNED, TEXT, VERDICTS
from gputop.tui.state import State
from gputop.tui.widgets.sentence import Sentence
from gputop.util.units import ratio, ratio_within, seconds


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
    """Return which of the two plans is faster, on the device and on the wall, and on what that rests."""
    window, words = state.window, REPLAYED if state.replaying else LIVE
    if state.pending:
        against = f" against {state.pinned_word}" if state.pair and state.pair.pinned else ""
        verb = words.next if state.measuring else words.stopped
        return Text(f"… {verb}: {state.current_word}{against}.{_rows_of(state)}", Style(color=CURRENT))
    if window is None:
        return Text("")
    if state.lane is not None and not state.lane.gate.ok:
        return Text.assemble(("✖ FAIL ", Style(color=BAD, bold=True)), (NO_TIME, Style(color=TEXT)))
    pair = state.comparison
    if pair is not None and pair.get("device") is not None:
        return _pair_line(pair, bool(window.device.recording))
    if state.pinned_word is not None and state.pinned_word == state.current_word:
        return Text(f"◈ {state.current_word} {words.pin_stays}", Style(color=PINNED))
    if window.lane("pinned") is not None or (window.device.recording and window.verdict):
        return Text(window.verdict, Style(color=TEXT))
    return Text(words.how_to_pair, Style(color=MUTED))


def _pair_line(pair: Comparison, recorded: bool) -> Text:
    device, wall = pair.get("device"), pair.get("wall")
    assert device is not None
    mark = VERDICTS[device.verdict]
    within = ratio_within(device.ratio_interval)
    line = Text.assemble((f"{mark.symbol} ", Style(color=mark.color, bold=True)), style=Style(color=TEXT))
    line.append(f"{pair.plan_a} → {pair.plan_b}: {within}, ")
    line.append(device.verdict, Style(color=mark.color, bold=True)).append(" on the device")
    if wall is not None:
        line.append("; wall ")
        line.append(_wall_words(wall), Style(color=VERDICTS[wall.verdict].color))
    line.append(".")
    if device.status:
        line.append(f" {device.status[:1].upper()}{device.status[1:]}.")
    return line.append(f" {_evidence(pair, device, recorded)}", Style(color=MUTED))


def _wall_words(wall: Delta) -> str:
    if wall.verdict in ("FASTER", "SLOWER"):
        return f"{ratio(wall.ratio)} {wall.verdict}"
    return wall.verdict


def _evidence(pair: Comparison, device: Delta, recorded: bool) -> str:
    """Return on what a ratio rests: it is of pairs, so that two medians need not have it."""
    windows = "one window" if pair.windows == 1 else f"{pair.windows} windows"
    windows += f" and {device.samples} rounds"
    medians = f"medians {seconds(device.a_s)} → {seconds(device.b_s)}"
    parts = (f"Pairs of {windows}", medians, floor_words(device.aa_floor), "recorded" if recorded else "")
    return ", ".join(part for part in parts if part) + "."


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
