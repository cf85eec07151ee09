"""The ladder as a chart: each rung's time on a log axis, what it gained, and what was predicted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import log10
from typing import ClassVar, Literal

from rich.style import Style
from rich.text import Text
from textual.binding import BindingType

from gputop.results import phase_facts
from gputop.results.ladder import Ladder, LadderEntry
from gputop.tui.actions import bindings_of
from gputop.tui.format import text_of_cells
from gputop.tui.palette import BAD, CURRENT, FAINT, FLOOR, GOOD, MUTED, PINNED, TEXT, VERDICTS
from gputop.tui.state import State, View
from gputop.tui.views.pane import ViewPane
from gputop.util.units import UNKNOWN, ratio, ratio_within, seconds, si

Basis = Literal["before", "first", "pinned"]
BASES: tuple[Basis, ...] = ("before", "first", "pinned")
NAME_WIDTH = 19
TIME_WIDTH = 9
GAIN_WIDTH = 10
PREDICTED_WIDTH = 27


def sequence_s(entry: LadderEntry) -> float | None:
    """Return the device time of one sequence."""
    return None if entry.device_s is None else entry.device_s / (entry.batch or 1)


def ladder_text(state: State, basis: Basis, baselines: bool, width: int) -> Text:
    """Return the chart: a line a rung, an axis above, the score of the predictions below."""
    entries = [entry for entry in state.ladder.values() if baselines or entry.kind == "ladder"]
    times = [time_s for entry in entries if (time_s := sequence_s(entry))]
    if not times:
        return Text(_nothing(state), Style(color=MUTED))
    floor_s = phase_facts.totals_of(state.lane).get("device")
    question_s = floor_s.question_floor_s or floor_s.floor_s if floor_s else None
    low = log10(min([*times, question_s or min(times)]) / 1.2)
    high = log10(max(times))
    predicted = PREDICTED_WIDTH if width >= 110 else 0
    room = max(10, width - NAME_WIDTH - TIME_WIDTH - GAIN_WIDTH - predicted - 3)

    def column(value_s: float) -> int:
        return max(0, min(room - 1, round((log10(value_s) - low) / (high - low or 1.0) * (room - 1))))

    by_rung = {entry.rung: entry for entry in state.ladder.values()}
    lines = [_axis(room, low, high, basis, predicted)]
    for entry in entries:
        lines.append(_line(state, entry, by_rung, column, room, question_s, basis, predicted))
    lines.append(Text(""))
    lines.extend(_closing(entries, question_s))
    lines.extend(_batches(state.batches, width))
    return Text("\n").join(lines)


def _axis(room: int, low: float, high: float, basis: Basis, predicted: int) -> Text:
    cells = [" "] * (room + 8)
    for decade in range(-7, 2):
        for step in (1, 3):
            value = step * 10.0**decade
            at = round((log10(value) - low) / (high - low or 1.0) * (room - 1))
            label = seconds(value)
            if (
                at >= 0
                and at + len(label) <= room
                and all(cell == " " for cell in cells[max(0, at - 1) : at + len(label)])
            ):
                cells[at : at + len(label)] = label
    line = Text(" " * NAME_WIDTH + " ", Style(color=FAINT))
    line.append("".join(cells)[:room], Style(color=FAINT))
    line.append(f"{'device':>{TIME_WIDTH}}{'vs ' + basis:>{GAIN_WIDTH}}", Style(color=MUTED))
    if predicted:
        line.append("  predicted", Style(color=MUTED))
    return line


def _line(
    state: State,
    entry: LadderEntry,
    by_rung: dict[str, LadderEntry],
    column: Callable[[float], int],
    room: int,
    question_s: float | None,
    basis: Basis,
    predicted: int,
) -> Text:
    is_current = entry.rung == state.current_word
    is_pinned = entry.rung == state.pinned_word
    color = CURRENT if is_current else PINNED if is_pinned else TEXT if entry.kind == "ladder" else MUTED
    mark = "▸" if is_current else "◆" if is_pinned else " "
    line = Text(
        f"{mark}{entry.number:>2} {entry.rung:<{NAME_WIDTH - 4}} ", Style(color=color, bold=is_current)
    )
    own_s = sequence_s(entry)
    cells = [" "] * room
    styles: dict[int, str] = {}
    if question_s is not None:
        cells[column(question_s)] = "┊"
        styles[column(question_s)] = FLOOR
    before = by_rung.get(entry.before or "")
    before_s = sequence_s(before) if before else None
    if own_s is not None:
        at = column(own_s)
        if before_s is not None and entry.kind == "ladder":
            came = column(before_s)
            for i in range(min(at, came), max(at, came) + 1):
                cells[i] = "━"
                styles[i] = FAINT
        if before_s is not None and entry.predicted_lo and entry.predicted_hi:
            for value, end in ((entry.predicted_lo, "┤"), (entry.predicted_hi, "├")):
                i = column(before_s / value)
                if i != at:
                    cells[i] = end
                    styles[i] = GOOD if entry.hit else PINNED
        slower = before_s is not None and own_s > before_s
        cells[at] = "○" if entry.kind != "ladder" else "▪" if slower else "●"
        styles[at] = color
    line.append_text(text_of_cells((cell, styles.get(i, FAINT)) for i, cell in enumerate(cells)))
    failed = not entry.gate.ok
    time = "FAIL" if failed else seconds(own_s)
    line.append(f"{time:>{TIME_WIDTH}}", Style(color=BAD if failed else TEXT))
    gain, verdict = _gain(state, entry, by_rung, basis)
    symbol = VERDICTS[verdict].symbol if verdict in VERDICTS else ""
    tint = VERDICTS[verdict].color if verdict in VERDICTS else MUTED
    line.append(f"{f'{symbol} {ratio(gain)}' if gain else '':>{GAIN_WIDTH}}", Style(color=tint))
    if predicted and entry.predicted is not None:
        said = f"  {ratio_within(entry.predicted_interval)}"
        line.append(said, Style(color=MUTED))
        hit = {True: " hit", False: " MISS", None: " ?"}[entry.hit]
        line.append(hit, Style(color=GOOD if entry.hit else PINNED))
    return line


def _gain(
    state: State, entry: LadderEntry, by_rung: dict[str, LadderEntry], basis: Basis
) -> tuple[float | None, str]:
    if basis == "before":
        value = entry.ratio_before
        return value, entry.verdict or ("FASTER" if (value or 1.0) > 1 else "SLOWER")
    if basis == "first":
        return entry.ratio_first, ""
    pinned = by_rung.get(state.pinned_word or "")
    if pinned is None or not pinned.ratio_first or not entry.ratio_first:
        return None, ""
    return entry.ratio_first / pinned.ratio_first, ""


def _closing(entries: list[LadderEntry], question_s: float | None) -> Iterator[Text]:
    judged = [entry for entry in entries if entry.predicted is not None and entry.hit is not None]
    if judged:
        held = sum(1 for entry in judged if entry.hit)
        yield Text(f"{held} of {len(judged)} predictions held", Style(color=MUTED))
    if question_s is not None:
        yield Text(
            f"┊ floor of the question: {seconds(question_s)}, which no plan changes", Style(color=FLOOR)
        )
    yield Text("● ladder   ▪ slower than the rung before   ○ baseline   ├ ┤ predicted", Style(color=FAINT))


def _batches(batches: Ladder | None, width: int) -> Iterator[Text]:
    """Yield one rung at several batches: time and rate of a sequence."""
    entries = batches.entries if batches else ()
    rates = [entry.flops / entry.device_s for entry in entries if entry.flops and entry.device_s]
    if not rates:
        return
    yield Text("")
    yield Text(f"{entries[0].rung.split(',')[0]} by batch, one window", Style(color=TEXT, bold=True))
    for entry in entries:
        rate = entry.flops / entry.device_s if entry.flops and entry.device_s else None
        bar = "━" * round((width - 60) * rate / max(rates)) if rate and width > 80 else ""
        own_s = sequence_s(entry)
        rated = si(rate, "FLOP/s") if rate else UNKNOWN
        said = f"{entry.batch or 1:>5}  {seconds(own_s):>9} a sequence  {rated:>13}  "
        line = Text(said, Style(color=MUTED))
        line.append(bar, Style(color=CURRENT))
        line.append(f" {ratio(entry.ratio_first)}", Style(color=MUTED))
        yield line


def _nothing(state: State) -> str:
    if state.replaying:
        return "This recording has no window over all rungs."
    return (
        "No ladder was measured here yet. `gputop ladder` measures all rungs in one window; "
        "h opens a recording that has one."
    )


class LadderView(ViewPane):
    """Scrolls if the terminal is short."""

    view: ClassVar[View] = "ladder"
    shows_window: ClassVar[bool] = False
    BINDINGS: ClassVar[list[BindingType]] = bindings_of("ladder")

    def __init__(self) -> None:
        super().__init__()
        self.basis: Basis = "before"
        self.baselines = True

    def draw(self, state: State, width: int, height: int) -> Text:
        return ladder_text(state, self.basis, self.baselines, width)

    def explain(self, state: State) -> str:
        return "v: against the rung before, the first, or the pinned plan; o: baselines; ← →: rungs."

    def action_basis(self) -> None:
        self.basis = BASES[(BASES.index(self.basis) + 1) % len(BASES)]
        self.show(self._state)

    def action_baselines(self) -> None:
        self.baselines = not self.baselines
        self.show(self._state)
