"""The selected phase taken apart: its time by term, its launch, its occupancy, and its history."""

from __future__ import annotations

from collections.abc import Iterator
from math import log
from typing import ClassVar

from rich.style import Style
from rich.text import Text

from gputop.results import phase_facts
from gputop.results.inspection import TermLine, term_lines
from gputop.results.records import Row
from gputop.tui import facts
from gputop.tui.format import EXCESS_CELL, SOLID, TimeUnit, fraction, middle_cut, time_unit
from gputop.tui.palette import EXCESS, FAINT, FLOOR, MUTED, PINNED, TEXT, term_mark
from gputop.tui.state import State
from gputop.tui.widgets.cached_static import CachedStatic
from gputop.util.units import UNKNOWN, percent, seconds, size_bytes, whole

LABEL_WIDTH = 16
VALUE_WIDTH = 9
ASIDE_WIDTH = 26
"""Cells that a term's bytes or work may take at its right."""
LEAST_BARS_WIDTH = 58
"""Cells that labels, values and bars keep before anything stands beside them."""
BARS = {
    "measured": (EXCESS, EXCESS_CELL),
    "floor": (FLOOR, SOLID),
    "reach": (FLOOR, SOLID),
    "unexplained": (MUTED, EXCESS_CELL),
}
"""Lines that are no term -> colour and cell of their bars."""
SPARK = "▁▂▃▄▅▆▇█"


def detail_text(state: State, width: int, lines: int) -> Text:
    """Return the selected phase in at most `lines` lines; the smallest terms are left out first."""
    row = facts.selected_row(state)
    if row is None or row.time_s is None or lines < 1:
        return Text("")
    heading = heading_line(state, row, width)
    if lines < 4:
        return Text("\n").join([heading, compact_terms(row, width)][:lines])
    closing = [
        line
        for line in (occupancy_line(row, state), launch_line(row), history_line(state, row, width))
        if line
    ]
    bars = list(_bars(row, width))
    room = lines - 1 - len(closing)
    if room < 3:
        closing = closing[: max(0, lines - 4)]
        room = lines - 1 - len(closing)
    shown = bars[:room] if len(bars) <= room else [*bars[: room - 1], bars[-1]]
    body = [Text(line, Style(color=MUTED)) for line in closing]
    for line in body:
        line.truncate(width, overflow="ellipsis")
    text = Text("\n").join([heading, *shown, *body])
    if state.pending:
        return Text(text.plain, Style(color=FAINT))
    return text


def heading_line(state: State, row: Row, width: int) -> Text:
    """Return `w2 · gemm_warpgroup_56/8 · kernels/gemm/…`."""
    kernel = row.kernel or "no kernel named"
    aside = facts.source_of(state, row.kernel)
    line = Text.assemble((row.phase, Style(color=TEXT, bold=True)), (f" · {kernel}", Style(color=TEXT)))
    if aside and line.cell_len + len(aside) + 3 <= width:
        line.append(f" · {aside}", Style(color=MUTED))
    stale = " (of the plan before)" if state.pending else ""
    line.append(stale, Style(color=PINNED))
    line.truncate(width, overflow="ellipsis")
    return line


def compact_terms(row: Row, width: int) -> Text:
    """Return the terms in one line, largest first."""
    unit = time_unit([row.time_s])
    text = Text(no_wrap=True)
    for item in phase_facts.term_shares(row):
        if item.value_s <= 0:
            continue
        mark = term_mark(item.term)
        said = f"{item.term} {unit.write(item.value_s)} "
        bar = SOLID * max(1, round(8 * min(1.0, item.share)))
        if text.cell_len + len(said) + len(bar) + 2 > width:
            break
        text.append(said, Style(color=MUTED)).append(bar + "  ", Style(color=mark.color))
    left = row.unexplained_s
    if left is not None and text.cell_len + 20 <= width:
        text.append(f"unexplained {unit.write(left)} {unit.name}", Style(color=MUTED))
    return text


def _bars(row: Row, width: int) -> Iterator[Text]:
    """Yield the measured time and each term as a bar, largest first; what is unexplained comes last."""
    unit = time_unit([row.time_s])
    lines = term_lines(row)
    full_s = max(line.value_s or 0.0 for line in lines)
    aside = max(0, min(ASIDE_WIDTH, width - LEAST_BARS_WIDTH))
    room = max(1, width - LABEL_WIDTH - VALUE_WIDTH - 1 - aside)
    for line in lines:
        color, cell = BARS.get(line.term) or (term_mark(line.term).color, SOLID)
        yield _bar(line, unit, full_s, room, color, cell, line.aside[: max(0, aside - 1)])


def _bar(
    line: TermLine,
    unit: TimeUnit,
    full_s: float,
    room: int,
    color: str,
    cell: str,
    aside: str,
) -> Text:
    text = Text(no_wrap=True)
    value_s = line.value_s
    text.append(f"{line.label:<{LABEL_WIDTH}}", Style(color=MUTED))
    text.append(f"{unit.write(value_s):>{VALUE_WIDTH}} ", Style(color=TEXT))
    length = round(room * value_s / full_s) if value_s and value_s > 0 and full_s > 0 else 0
    text.append(cell * min(room, length), Style(color=color))
    text.append(" " * (room - min(room, length)))
    if aside:
        text.append(f" {aside}"[:ASIDE_WIDTH], Style(color=FAINT))
    return text


def occupancy_line(row: Row, state: State) -> str:
    """Return how full the SMs are: what the grid gives one, the limit and its cause, what was counted."""
    if row.occupancy_theoretical is None:
        return ""
    by = f" by {row.occupancy_limiters}" if row.occupancy_limiters else ""
    given = "" if row.occupancy_grid is None else f"{fraction(row.occupancy_grid)} by its grid, "
    said = f"occupancy  {given}at most {fraction(row.occupancy_theoretical)}{by}"
    blocks, sms = phase_facts.extent_of(row.grid), facts.sm_count(state)
    if blocks is not None and sms:
        idle = max(0, sms - blocks)
        said += f"   grid {blocks} blocks on {sms} SMs" + (f", {idle} idle" if idle else "")
    if row.occupancy_achieved is not None:
        said += f"   counted {percent(row.occupancy_achieved)}"
    return said


def launch_line(row: Row) -> str:
    """Return the launch: grid, block, registers, shared memory, waves."""
    if row.grid is None and row.block is None:
        return ""
    parts = [
        f"grid {row.grid or UNKNOWN}",
        f"block {row.block or UNKNOWN}",
        f"registers {whole(row.registers)}",
    ]
    if row.smem_bytes:
        parts.append(f"shared {size_bytes(row.smem_bytes)}")
    if row.spill_bytes:
        parts.append(f"spilled {size_bytes(row.spill_bytes)}")
    if row.waves is not None:
        parts.append(f"waves {row.waves:.2g}")
    return "launch     " + "   ".join(parts)


def history_line(state: State, row: Row, width: int) -> str:
    """Return this site's time along the ladder."""
    history = facts.site_history(state, row)
    if len(history) < 2:
        return ""
    most = max(time_s for _, time_s in history)
    least = min(time_s for _, time_s in history)
    parts: list[str] = []
    for plan, time_s in history:
        share = log(time_s / least) / log(most / least) if most > least else 1.0
        parts.append(f"{middle_cut(plan, 16)} {seconds(time_s)} {SPARK[round(7 * share)]}")
    text = "ladder     "
    chosen: list[str] = []
    for part in reversed(parts):
        if len(text) + sum(len(item) + 2 for item in chosen) + len(part) > width:
            break
        chosen.insert(0, part)
    return text + "  ".join(chosen)


class DetailView(CachedStatic):
    """Fills the room below the phases."""

    fills: ClassVar[bool] = True

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._state = State()

    def show(self, state: State) -> None:
        self._state = state
        self.put(detail_text(state, self.content_size.width, self.content_size.height))

    def on_resize(self) -> None:
        self.show(self._state)
