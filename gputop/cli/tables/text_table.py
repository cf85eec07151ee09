"""Columns of text: as wide as what they hold, fewer where the terminal is narrow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from gputop.results.columns import Column
from gputop.util.printable import printable

GAP = "  "
FIRST_TO_GO = 100


@dataclass(frozen=True, slots=True)
class Heading:
    """One column of a readable table."""

    title: str
    right: bool = False
    priority: int = 0
    """0 stays at any width; the higher, the sooner a narrow terminal drops it. Equals go together."""

    @classmethod
    def of(cls, column: Column) -> Self:
        """Numbers stand to the right; what no screen shows by itself is the first to go."""
        priority = FIRST_TO_GO if column.priority is None else column.priority
        return cls(column.title, right=column.unit != "", priority=priority)


def table(headings: Sequence[Heading], rows: Iterable[Sequence[str]], width: int) -> list[str]:
    """The heading line and one line a row, in at most `width` cells where dropping columns can do it."""
    lines = [[heading.title for heading in headings], *([printable(cell) for cell in row] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(headings))]
    kept = _fitting(headings, widths, width)
    return [GAP.join(_pad(line[i], widths[i], headings[i].right) for i in kept).rstrip() for line in lines]


def _fitting(headings: Sequence[Heading], widths: Sequence[int], width: int) -> list[int]:
    kept = list(range(len(headings)))
    while sum(widths[i] for i in kept) + len(GAP) * (len(kept) - 1) > width:
        last = max(headings[i].priority for i in kept)
        if last == 0:
            break
        kept = [i for i in kept if headings[i].priority < last]
    return kept


def _pad(text: str, width: int, right: bool) -> str:
    return text.rjust(width) if right else text.ljust(width)
