"""Two plans phase by phase, and below them every change of the current plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.binding import BindingType

from gputop.results.pooled_words import extent_words, pooled_words
from gputop.results.records import TOTAL_ROWS, Delta, Row, Window
from gputop.tui.actions import bindings_of
from gputop.tui.format import middle_cut, time_unit
from gputop.tui.palette import BAD, FAINT, GOOD, MUTED, TEXT, VERDICTS
from gputop.tui.state import State, View
from gputop.tui.views.ablation import ablation_text
from gputop.tui.views.pane import ViewPane
from gputop.util.units import ratio_within, seconds

NAME_WIDTH = 16
FIGURES_WIDTH = 44
LEAST_CHANGE_S = 5e-8
"""Smaller differences are added up in one line."""


def diff_text(state: State, width: int) -> Text:
    """Return the paired difference of the window on the screen, phase by phase, then the changes tried."""
    window = state.window
    parts = []
    if window is not None and window.comparison is not None:
        parts.append(Text("\n").join(_diff_lines(window, width)))
    else:
        parts.append(
            Text(
                "This window has one plan. Choose a rung or flip something: the next window pairs two.",
                Style(color=MUTED),
            )
        )
    changes = ablation_text(state, width)
    if changes:
        parts.append(changes)
    return Text("\n\n").join(parts)


def _diff_lines(window: Window, width: int) -> Iterator[Text]:
    comparison = window.comparison
    assert comparison is not None
    current = window.lane("current")
    rows = {row.phase: row for row in current.rows} if current else {}
    device = comparison.get("device")
    unit = time_unit([device.a_s, device.b_s] if device else ())
    yield Text.assemble(
        (f"{comparison.plan_a} ◆ → {comparison.plan_b} ▸", Style(color=TEXT, bold=True)),
        (
            f"   paired in window {window.number}, 99 %, {extent_words(comparison)}, {unit.name}",
            Style(color=MUTED),
        ),
    )
    if words := pooled_words(window.pooled):
        yield Text(f"all windows: {words}", Style(color=MUTED))
    changes = {
        row.phase: row for row in rows.values() if row.delta_s is not None and row.phase not in TOTAL_ROWS
    }
    largest = max((abs(row.delta_s or 0.0) for row in changes.values()), default=0.0)
    largest = max(largest, abs(device.delta_s) if device and device.delta_s else 0.0)
    room = max(10, width - NAME_WIDTH - FIGURES_WIDTH - 2)
    if device is not None:
        yield _change(
            "device", device.a_s, device.b_s, device.delta_s, device.verdict, largest, room, bold=True
        )
    gaps = _gap_change(window)
    if gaps is not None:
        yield _change("  gaps", *gaps, "", largest, room)
    small: list[Row] = []
    for row in sorted(changes.values(), key=lambda row: -abs(row.delta_s or 0.0)):
        if abs(row.delta_s or 0.0) < LEAST_CHANGE_S:
            small.append(row)
            continue
        before = row.time_s - row.delta_s if row.time_s is not None and row.delta_s is not None else None
        yield _change(f"  {row.phase}", before, row.time_s, row.delta_s, row.verdict or "", largest, room)
    if small:
        total = sum(row.delta_s or 0.0 for row in small)
        yield Text(f"  {len(small)} others add up to {unit.signed(total)} {unit.name}", Style(color=FAINT))
    unpaired = [name for name, row in rows.items() if name not in TOTAL_ROWS and row.delta_s is None]
    if unpaired:
        yield Text(f"  only one of the plans times {', '.join(unpaired)} alone", Style(color=FAINT))
    wall = comparison.get("wall")
    if wall is not None:
        yield _wall(wall)


def _gap_change(window: Window) -> tuple[float | None, float | None, float | None] | None:
    lanes = {lane.role: {row.phase: row.time_s for row in lane.rows} for lane in window.lanes}
    before, after = (lanes.get(role, {}).get("gaps") for role in ("pinned", "current"))
    if before is None or after is None:
        return None
    return before, after, after - before


def _change(
    name: str,
    before_s: float | None,
    after_s: float | None,
    delta_s: float | None,
    verdict: str,
    largest: float,
    room: int,
    bold: bool = False,
) -> Text:
    unit = time_unit([before_s, after_s, largest])
    mark = VERDICTS.get(verdict)
    line = Text(f"{middle_cut(name, NAME_WIDTH):<{NAME_WIDTH}}", Style(color=TEXT, bold=bold), no_wrap=True)
    line.append(
        f"{unit.write(before_s):>9} → {unit.write(after_s):>9} {unit.signed(delta_s):>10} ",
        Style(color=MUTED),
    )
    line.append(f"{mark.symbol if mark else ' '} ", Style(color=mark.color if mark else MUTED))
    half = room // 2
    if delta_s is None or largest <= 0:
        return line
    length = min(half, round(half * abs(delta_s) / largest))
    left = "█" * length if delta_s < 0 else ""
    right = "█" * length if delta_s > 0 else ""
    line.append(f"{left:>{half}}", Style(color=GOOD)).append("│", Style(color=FAINT)).append(
        right, Style(color=BAD)
    )
    return line


def _wall(wall: Delta) -> Text:
    mark = VERDICTS[wall.verdict]
    line = Text(f"{'wall':<{NAME_WIDTH}}", Style(color=TEXT))
    line.append(f"{seconds(wall.a_s)} → {seconds(wall.b_s)}  ", Style(color=MUTED))
    line.append(f"{mark.symbol} {wall.verdict}", Style(color=mark.color))
    if wall.ratio is not None and wall.verdict != "UNRESOLVED":
        line.append(f" {ratio_within(wall.ratio_interval)}", Style(color=MUTED))
    if wall.status:
        line.append(f"  {wall.status}", Style(color=MUTED))
    return line


class DiffView(ViewPane):
    """Scrolls if the terminal is short."""

    view: ClassVar[View] = "diff"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of("diff")

    def draw(self, state: State, width: int, height: int) -> Text:
        return diff_text(state, width)

    def explain(self, state: State) -> str:
        pinned = state.pinned_word
        return (
            f"Pinned: {pinned}; p pins the current plan, 1 goes back."
            if pinned
            else "p pins a plan, so that others are paired with it."
        )
