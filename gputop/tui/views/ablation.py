"""Every change of the current plan on one axis: what was measured as whiskers, what is forecast as dots."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, log

from rich.style import Style
from rich.text import Text

from gputop.tui.forecast import forecasts_of, ratio_words
from gputop.tui.format import middle_cut, text_of_cells
from gputop.tui.palette import FAINT, MUTED, TEXT, VERDICTS
from gputop.tui.state import State
from gputop.tui.steps import Step, measured_steps, same_question
from gputop.util.interval import Interval
from gputop.util.units import ratio_within

NAME_WIDTH = 24
FIGURES_WIDTH = 31
LEAST_ROOM = 20
FARTHEST = log(4)
"""Ratios beyond 4 either way stand at the edge."""
LEAST_REACH = 0.05


@dataclass(frozen=True, slots=True)
class Axis:
    """Ratios on a logarithmic axis, 1 in its middle."""

    reach: float
    """|log ratio| at its ends."""
    room: int
    """Cells."""

    @classmethod
    def around(cls, ratios: list[float], room: int) -> Axis:
        reach = max([LEAST_REACH, *(abs(log(value)) for value in ratios)])
        return cls(min(FARTHEST, 1.1 * reach), room)

    def column(self, value: float) -> int:
        share = (max(-self.reach, min(self.reach, log(value))) + self.reach) / (2 * self.reach)
        return round(share * (self.room - 1))

    def scale(self) -> str:
        cells = [" "] * self.room
        for value in (exp(-self.reach), 1.0, exp(self.reach)):
            label = f"{value:.2g}×"
            at = max(0, min(self.room - len(label), self.column(value) - len(label) // 2))
            cells[at : at + len(label)] = label
        return "".join(cells)


def ablation_text(state: State, width: int) -> Text:
    """Return a line for each change, the fastest first; empty if nothing is known of any."""
    steps, forecasts = same_question(state, measured_steps(state)), forecasts_of(state)
    if not steps and not forecasts:
        return Text("")
    room = max(LEAST_ROOM, width - NAME_WIDTH - FIGURES_WIDTH - 4)
    ends = [value for step in steps for value in (step.gain.value, step.gain.lo, step.gain.hi) if value]
    axis = Axis.around(ends or [item.ratio for item in forecasts], room)
    lines = [
        Text.assemble(
            (f"changes of {state.current_word}", Style(color=TEXT, bold=True)),
            ("   right of 1 is faster; ▒ what copies of one plan differ by", Style(color=MUTED)),
        ),
        Text(" " * (NAME_WIDTH + FIGURES_WIDTH + 3) + axis.scale(), Style(color=FAINT)),
        *_measured_lines(steps, axis),
    ]
    if forecasts:
        found = state.forecasts.get(state.current_word or "")
        heading = "not recorded: ≈ forecast by the model, not measured"
        if found and forecasts[0].lo is not None:
            heading += f"; four of five of {found.steps} recorded steps lay in such an interval"
        lines.append(Text(heading, Style(color=FAINT, italic=True)))
        for item in forecasts:
            line = _line(f"○ {item.flip}", ratio_words(item), FAINT, FAINT)
            lines.append(line.append_text(_whisker(axis, item.ratio_interval, None, FAINT, ("○", "╌"))))
    for line in lines:
        line.no_wrap = True
        line.truncate(width, overflow="ellipsis")
    return Text("\n").join(lines)


def _measured_lines(steps: tuple[Step, ...], axis: Axis) -> Iterator[Text]:
    for step in steps:
        mark = VERDICTS.get(step.verdict) or VERDICTS["FASTER" if step.ratio > 1 else "SLOWER"]
        line = _line(f"{mark.symbol} {step.plan}", ratio_within(step.gain), TEXT, mark.color)
        whisker = _whisker(axis, step.gain, step.aa_floor, mark.color, ("●", "─"))
        yield line.append_text(whisker)


def _line(name: str, figures: str, name_color: str, color: str) -> Text:
    line = Text(f"{middle_cut(name, NAME_WIDTH + 2):<{NAME_WIDTH + 2}} ", Style(color=name_color))
    return line.append(f"{figures:<{FIGURES_WIDTH}}", Style(color=color))


def _whisker(axis: Axis, gain: Interval, aa_floor: float | None, color: str, cells: tuple[str, str]) -> Text:
    """Return the point, its interval and the A/A band. `cells`: the point and the interval's line."""
    point, bar = cells
    drawn, colors = [" "] * axis.room, [FAINT] * axis.room
    if aa_floor:
        for at in range(axis.column(exp(-aa_floor)), axis.column(exp(aa_floor)) + 1):
            drawn[at] = "▒"
    drawn[axis.column(1.0)] = "│"
    if gain.lo and gain.hi:
        first, last = axis.column(gain.lo), axis.column(gain.hi)
        for at in range(first, last + 1):
            drawn[at], colors[at] = bar, color
        drawn[first], drawn[last] = "├", "┤"
    at = axis.column(gain.value or 1.0)
    drawn[at], colors[at] = point, color
    return text_of_cells(zip(drawn, colors, strict=True))
