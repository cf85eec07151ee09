"""Where things go at a given terminal size: which columns fit a table, how the left side is divided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MIN_WIDTH = 60
MIN_HEIGHT = 15
ROOMY_WIDTH = 110
ROOMY_HEIGHT = 34
"""From here up panes have frames and titles."""
WIDE_WIDTH = 130
"""From here up a verdict fits in one line."""
TALL_HEIGHT = 28
"""From here up verdict and advice may wrap."""
NARROW_WIDTH = 100
"""Below this one pane has the screen at a time, and the ladder is a line."""
TOGGLES_WIDTH = 27
"""Cells of the toggles beside the dispatch table."""
SHORT_HEIGHT = 20
"""Below this, rows come before sentences: one line of health, verdict and advice, no explanation."""
GAP = 1
"""Cells between two columns."""


@dataclass(frozen=True, slots=True)
class LayoutColumn:
    """One column of a table on the screen."""

    key: str
    label: str
    width: int
    """The least it can do with."""
    priority: int
    """Dropped from the highest down when room is short; 0 always stays."""
    right: bool = False
    short: str = ""
    """Label where the other does not fit."""
    comfort: int = 0
    """Width it should have before any column of a higher priority is shown; 0: `width`."""
    grows_to: int = 0
    """Takes spare room up to this width; 0: keeps its own."""
    doc: str = ""
    """What it says, for the help screen."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A column with the width it was given."""

    column: LayoutColumn
    width: int

    @property
    def label(self) -> str:
        column = self.column
        return column.short if column.short and len(column.label) > self.width else column.label


def fit(columns: Sequence[LayoutColumn], width: int) -> tuple[Fitted, ...]:
    """The columns that fit in `width` cells, by priority, spare room given to those that grow."""
    kept = list(columns)
    while len(kept) > 1 and _needed(kept) > width:
        least = max(kept, key=lambda column: column.priority)
        if least.priority == 0:
            break
        kept.remove(least)
    spare = max(0, width - sum(column.width for column in kept) - GAP * (len(kept) - 1))
    widths = {column.key: column.width for column in kept}
    growing = [column for column in kept if column.grows_to > column.width]
    while spare and growing:
        for column in list(growing):
            if not spare:
                break
            widths[column.key] += 1
            spare -= 1
            if widths[column.key] == column.grows_to:
                growing.remove(column)
    return tuple(Fitted(column, widths[column.key]) for column in kept)


def _needed(columns: Sequence[LayoutColumn]) -> int:
    least = max(column.priority for column in columns)
    widths = (max(c.width, c.comfort) if c.priority < least else c.width for c in columns)
    return sum(widths) + GAP * (len(columns) - 1)


def left_width(total: int) -> int:
    """Cells for the ladder's side."""
    if total < ROOMY_WIDTH:
        return 40
    return min(76, 50 + (total - ROOMY_WIDTH) // 3)


def sentence_lines(width: int, height: int) -> tuple[int, int]:
    """The most lines for verdict and advice. Their place has a fixed height: no window moves the tables."""
    if height < TALL_HEIGHT:
        return 1, 1
    return (1, 2) if width >= WIDE_WIDTH else (2, 2)


def roomy(width: int, height: int) -> bool:
    return width >= ROOMY_WIDTH and height >= ROOMY_HEIGHT


def too_small(width: int, height: int) -> str:
    """The sentence shown instead of the screen where it can't be read; empty where it can."""
    if width >= MIN_WIDTH and height >= MIN_HEIGHT:
        return ""
    return (
        f"This terminal has {width}x{height} cells. gputop needs {MIN_WIDTH}x{MIN_HEIGHT}, "
        "and is at ease from 80x24 up: please make it larger."
    )


def ladder_height(height: int, ladder: int, plan: int) -> int:
    """Return the rows of the ladder; toggles and dispatch get the rest, beside each other.

    The ladder gets what it wants if the plan then has all of its rows, else at least three fifths.
    """
    return min(ladder, max(height - plan, height * 3 // 5))


def detail_height(height: int) -> int:
    """Return the least rows for the selected phase below a table of phases on `height` rows."""
    if height < 14:
        return 2
    return 4 if height < 26 else 10
