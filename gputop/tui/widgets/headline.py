"""The line with the numbers that matter: time, what the last step bought, distance to the floor, the gate."""

from __future__ import annotations

from collections.abc import Iterator

from rich.style import Style
from rich.text import Text

from gputop.results.phase_facts import totals_of
from gputop.results.records import Gate
from gputop.tui.palette import BAD, FAINT, GOOD, MUTED, PINNED, TEXT, VERDICTS
from gputop.tui.state import State
from gputop.tui.widgets.cached_static import CachedStatic
from gputop.util.units import ratio, ratio_within, seconds, si

GAP = "    "


def headline(state: State, width: int) -> Text:
    """Return one line of at most `width` cells: the plan and its figures, the least needed left out first."""
    lane = state.lane
    if lane is None or state.window is None:
        wait = state.doing or "the first window is under way"
        return Text.assemble(
            (state.current_word or "no plan yet", Style(color=TEXT, bold=True)),
            (f"  {wait}", Style(color=MUTED)),
        )
    if state.pending:
        doing = state.doing or ("looking it up" if state.replaying else "measuring it")
        line = Text.assemble(
            (state.current_word or "", Style(color=TEXT, bold=True)),
            (f"  {doing}; below: {lane.plan}, window {state.window.number}", Style(color=PINNED)),
        )
        line.truncate(width, overflow="ellipsis")
        return line
    line = Text.assemble((lane.plan, Style(color=TEXT, bold=True)))
    if lane.device_s is not None:
        line.append(f"  {seconds(lane.device_s)}", Style(color=TEXT, bold=True))
    gate = gate_text(lane.gate)
    for part in _parts(state):
        if line.cell_len + len(GAP) + part.cell_len + len(GAP) + gate.cell_len <= width:
            line = Text.assemble(line, GAP, part)
    return Text.assemble(line, GAP, gate)


def _parts(state: State) -> Iterator[Text]:
    """Yield what stands between the time and the gate, the most needed first."""
    lane, window = state.lane, state.window
    assert lane is not None
    delta = window.comparison.get("device") if window and window.comparison else None
    if delta is not None and delta.ratio is not None and window and window.comparison:
        mark = VERDICTS[delta.verdict]
        against = f"{mark.symbol} {ratio(delta.ratio)} vs {window.comparison.plan_a}"
        yield Text(against, Style(color=mark.color, bold=True))
    totals = totals_of(lane)
    device = totals.get("device")
    if device is not None and device.floor_s and device.time_s:
        over = device.time_s / device.floor_s
        yield Text(f"{ratio(over)} its floor of {seconds(device.floor_s)}", Style(color=MUTED))
    first = ladder_first_ratio(state, lane.plan)
    if first is not None:
        yield Text(f"{ratio(first[1])} vs {first[0]}", Style(color=MUTED))
    if device is not None and device.tokens_per_s:
        yield Text(f"{si(device.tokens_per_s, '')} tokens/s", Style(color=FAINT))
    if lane.host_bound:
        yield Text("host bound", Style(color=PINNED))
    if delta is not None and delta.ratio is not None:
        yield Text(ratio_within(delta.ratio, delta.ratio_lo, delta.ratio_hi), Style(color=FAINT))


def ladder_first_ratio(state: State, word: str) -> tuple[str, float] | None:
    """Return (first rung, its time / this plan's), of one sequence, if the recorded ladder has both."""
    entry = state.ladder.get(word)
    first = next(iter(state.ladder.values()), None)
    if entry is None or first is None or entry is first or not entry.ratio_first:
        return None
    return first.rung, entry.ratio_first


def gate_text(gate: Gate) -> Text:
    """Return how the plan passed: the error, and what is allowed."""
    text = Text.assemble((gate.status, Style(color=GOOD if gate.ok else BAD, bold=True)))
    if gate.pass_error is not None:
        text.append(f" {gate.pass_error:.1e} of {gate.tolerance:.0e}", Style(color=MUTED))
    return text


class Headline(CachedStatic):
    """One line below the device."""

    def show(self, state: State) -> None:
        self.put(headline(state, max(1, self.app.size.width - self.gutter.width)))
