"""The line with the numbers that matter: time, what the last step bought, distance to the floor, the gate."""

from __future__ import annotations

from collections.abc import Iterator

from rich.style import Style
from rich.text import Text

from gputop.results.phase_facts import totals_of
from gputop.results.records import Gate
from gputop.tui.palette import BAD, CURRENT, FAINT, GOOD, MUTED, PINNED, TEXT, VERDICTS
from gputop.tui.state import State
from gputop.tui.widgets.cached_static import CachedStatic
from gputop.util.units import ratio, ratio_within, seconds, si

GAP = "    "
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧"
TURNS_PER_S = 4


def headline(state: State, width: int, now_s: float = 0.0) -> Text:
    """Return one line of at most `width` cells: the plan and its figures, the least needed left out first.

    While a window is waited for: what goes on, how far it is, and whose figures are still shown.
    """
    lane = state.lane
    if lane is None or state.window is None or state.pending:
        line = _waiting(state, now_s)
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


def _waiting(state: State, now_s: float) -> Text:
    turn = SPINNER[int(now_s * TURNS_PER_S) % len(SPINNER)] if state.measuring else "■"
    line = Text.assemble(
        (f"{turn} ", Style(color=CURRENT)),
        (state.current_word or "no plan yet", Style(color=TEXT, bold=True)),
    )
    lane = state.lane
    if lane is None or state.window is None:
        return line.append(f"  {state.doing or 'the first window is under way'}", Style(color=MUTED))
    doing = state.doing.replace(f": {state.current_word}", "").replace(f": {state.pinned_word}", "")
    if not state.measuring:
        doing = "not measured: space goes on"
    doing = doing or ("looking it up" if state.replaying else "its window is under way")
    line.append(f"  {doing}", Style(color=CURRENT))
    return line.append(f"; below: {lane.plan}, window {state.window.number}", Style(color=PINNED))


def _parts(state: State) -> Iterator[Text]:
    """Yield what stands between the time and the gate, the most needed first."""
    lane = state.lane
    assert lane is not None
    pair = state.comparison
    delta = pair.get("device") if pair else None
    if delta is not None and delta.ratio is not None and pair is not None:
        mark = VERDICTS[delta.verdict]
        against = f"{mark.symbol} {ratio(delta.ratio)} vs {pair.plan_a}"
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
        yield Text(ratio_within(delta.ratio_interval), Style(color=FAINT))


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

    def show(self, state: State, now_s: float) -> None:
        self.put(headline(state, max(1, self.app.size.width - self.gutter.width), now_s))
