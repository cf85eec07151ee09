"""Numbers and bars as cells of fixed width: one unit a table, points aligned, a dash for the unknown."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from operator import itemgetter

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.style import Style
from rich.text import Text

from gputop.tui.palette import EXCESS, EXCESS_GROUND, FLOOR, MUTED
from gputop.util.units import UNKNOWN

_MEASURE = Console(width=80, force_terminal=False)
"""Rich wraps text on a console; nothing is printed there."""
EIGHTHS = " ▏▎▍▌▋▊▉█"
SOLID = "█"
EXCESS_CELL = "░"
UNJUDGED_CELL = "▒"
LEAST_EIGHTHS = 8
"""A bar shorter than a cell is a sliver: too short to show its floor."""
DIGITS = 5
"""Digits that a time is written with where its table allows."""
AXIS_LABEL_CELLS = 6
"""Least cells between two labels of an axis."""
MS_FROM_S = 0.01
"""A table whose largest time is below this is written in microseconds."""


@dataclass(frozen=True, slots=True)
class TimeUnit:
    """The unit that all times of one table share."""

    name: str
    per_second: float
    decimals: int

    def write(self, value_s: float | None) -> str:
        if value_s is None or not math.isfinite(value_s):
            return UNKNOWN
        return f"{value_s * self.per_second:.{self.decimals}f}"

    def signed(self, value_s: float | None) -> str:
        """Format with the sign, a minus as wide as the plus; zero reads ±0."""
        text = self.write(value_s)
        if value_s is None or text == UNKNOWN:
            return text
        if float(text) == 0:
            return f"±{text.lstrip('-')}"
        return text.replace("-", "−") if value_s < 0 else f"+{text}"

    def for_values(self, values_s: Iterable[float]) -> TimeUnit:
        """This unit with as many decimals as these values leave room for, never more than it has."""
        largest = max(values_s, default=0.0) * self.per_second
        whole = len(f"{largest:.0f}")
        return replace(self, decimals=max(0, min(self.decimals, DIGITS - whole)))


def time_unit(values_s: Iterable[float | None]) -> TimeUnit:
    """Microseconds or milliseconds for a whole table; the largest value fits seven cells."""
    largest_s = max((value for value in values_s if value is not None), default=0.0)
    if largest_s < MS_FROM_S:
        return TimeUnit("µs", 1e6, 1)
    decimals = 3 if largest_s < 0.1 else 2 if largest_s < 1 else 1
    return TimeUnit("ms", 1e3, decimals)


Cell = tuple[str, str]
"""A character and its colour; no colour: the terminal's own."""


@lru_cache(maxsize=256)
def ink(color: str, bold: bool = False) -> Style:
    """Return the style of a colour: made once, as a chart has one for every cell."""
    return Style(color=color or None, bold=bold)


def text_of_cells(cells: Iterable[Cell]) -> Text:
    """Return cells as text, those of one colour in one piece."""
    text = Text(no_wrap=True)
    for color, run in groupby(cells, key=itemgetter(1)):
        text.append("".join(char for char, _ in run), ink(color))
    return text


def fitted(cell: str | Text, width: int, right: bool = False) -> Text:
    """Exactly `width` cells: padded, or cut with an ellipsis."""
    text = cell.copy() if isinstance(cell, Text) else Text(cell)
    text.no_wrap = True
    if text.cell_len > width:
        text.truncate(width, overflow="ellipsis")
    missing = width - text.cell_len
    if right:
        text.pad_left(missing)
    else:
        text.pad_right(missing)
    return text


def same(one: Text, other: Text) -> bool:
    """Return whether two texts look the same."""
    return one == other and one.style == other.style


def shortened(text: str, width: int) -> str:
    """Cut to at most `width` cells, with an ellipsis at the end."""
    return text if cell_len(text) <= width else set_cell_size(text, width - 1) + "…"


def in_lines(text: Text, width: int, most: int) -> Text:
    """`text` wrapped into at most `most` lines, the end given up for an ellipsis."""
    lines = text.wrap(_MEASURE, max(1, width))
    shown = lines[:most]
    if len(lines) > most and shown:
        last = shown[-1]
        last.rstrip()
        last.truncate(width - 1, overflow="crop")
        last.append("…")
    return Text("\n").join(shown)


def fraction(value: float | None) -> str:
    """Percent of a whole."""
    return UNKNOWN if value is None or not math.isfinite(value) else f"{100 * value:.0f}%"


def floor_bar(
    time_s: float | None, floor_s: float | None, largest_s: float, width: int, excess_color: str = EXCESS
) -> Text:
    """A phase's time as a bar, `largest_s` filling the width: solid up to the floor, shaded beyond it.

    The shaded part is what could be won. Without a floor the whole bar is of one other shade.
    """
    if not time_s or largest_s <= 0:
        return Text(" " * width)
    if (scale := 8 * width * time_s / largest_s) < LEAST_EIGHTHS:
        sliver = EIGHTHS[max(1, round(scale))]
        return Text.assemble((sliver, Style(color=MUTED)), " " * (width - 1))
    length = min(width, round(scale / 8))
    if floor_s is None:
        return Text.assemble((UNJUDGED_CELL * length, Style(color=MUTED)), " " * (width - length))
    eighths = min(8 * length, round(8 * length * floor_s / time_s))
    whole, part = divmod(eighths, 8)
    edge = EIGHTHS[part] if part else ""
    return Text.assemble(
        (SOLID * whole, Style(color=FLOOR)),
        (edge, Style(color=FLOOR, bgcolor=EXCESS_GROUND)),
        (EXCESS_CELL * (length - whole - len(edge)), Style(color=excess_color)),
        " " * (width - length),
    )


def middle_cut(text: str, width: int) -> str:
    """Return at most `width` cells of a name. What goes is the middle, nearer to the begin.

    The names of a family begin alike and differ at their end: tile, number of parts, toggle.
    """
    if cell_len(text) <= width:
        return text
    head = max(1, (width - 1) // 4)
    tail = width - 1 - head
    return text[:head] + "…" + (text[-tail:] if tail > 0 else "")


def axis(largest_s: float, unit: TimeUnit, width: int) -> str:
    """Return the labels of an axis from 0 to `largest_s`, `width` cells long: `0    25    50  95`."""
    largest = largest_s * unit.per_second
    if width < 6 or largest <= 0:
        return "0".ljust(width)
    step = next(
        (step for step in _nice_steps(largest) if width * step / largest >= AXIS_LABEL_CELLS), largest
    )
    cells = [" "] * width
    value = 0.0
    last = f"{largest:.3g}"
    while value < largest - 0.5 * step:
        label, at = f"{value:g}", round((width - 1) * value / largest)
        if at + len(label) < width - len(last):
            cells[at : at + len(label)] = label
        value += step
    cells[width - len(last) :] = last
    return "".join(cells)[:width]


def _nice_steps(largest: float) -> Iterable[float]:
    """Yield 1, 2, 2.5 and 5 times powers of ten, from far below `largest` up to it."""
    power = 10.0 ** (math.floor(math.log10(largest)) - 2)
    while power <= largest:
        yield from (power, 2 * power, 2.5 * power, 5 * power)
        power *= 10


def log_bar(value: float | None, least: float, most: float, width: int) -> str:
    """Return a bar whose length is the logarithm of `value` between `least` and `most`; at least one cell."""
    if not value or value <= 0 or most <= least or least <= 0:
        return ""
    share = math.log(value / least) / math.log(most / least)
    return "━" * max(1, min(width, round(width * share)))
