"""How far a search is, as its journal tells it: the same lines always give the same progress."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from gputop.plan.types import KernelChoice
from gputop.search.journal import CellResult, Ended, Line, Measured, Returned, Struck
from gputop.search.menu import Cell, Menu


@dataclass(slots=True)
class Progress:
    """What is known so far. `take` adds a line."""

    menu: Menu
    table: dict[str, KernelChoice] = field(init=False)
    """The incumbents."""
    times_s: dict[str, float] = field(default_factory=dict)
    """Site -> time of the incumbent in the newest window."""
    first_s: dict[str, float] = field(default_factory=dict)
    """Site -> time of the plan's own kernel in the first window."""
    log_ratio: dict[Cell, float] = field(default_factory=dict)
    """Cell -> log(its time / that of the plan's own kernel), along the pairs that lead to it."""
    results: list[tuple[Measured, CellResult]] = field(default_factory=list)
    """Every candidate's, in order."""
    windows: list[Measured] = field(default_factory=list)
    struck: dict[Cell, str] = field(default_factory=dict)
    returned: list[Returned] = field(default_factory=list)
    trials: int = 0
    ended: Ended | None = None

    def __post_init__(self) -> None:
        self.table = self.menu.start
        self.log_ratio = dict.fromkeys(self.table.items(), 0.0)

    @property
    def measured(self) -> int:
        """Paired measurements of the search itself: candidates, each beside an incumbent."""
        return sum(window.stage == "search" for window, _ in self.results)

    @property
    def left(self) -> list[Cell]:
        """Candidates neither measured nor struck."""
        return [cell for cell in self.menu.cells() if cell not in self.log_ratio and cell not in self.struck]

    @property
    def cells_s(self) -> dict[Cell, float]:
        """Cell -> its time, as if measured in the first window."""
        return {
            cell: self.first_s[cell[0]] * math.exp(effect)
            for cell, effect in self.log_ratio.items()
            if cell[0] in self.first_s
        }

    @property
    def changed(self) -> dict[str, KernelChoice]:
        """Site -> kernel, of the cells that are not the plan's own."""
        start = self.menu.start
        return {site: choice for site, choice in self.table.items() if choice != start[site]}

    def take(self, line: Line) -> None:
        """Add what a line of the journal says."""
        match line:
            case Measured():
                self._measured(line)
            case Struck():
                self.struck[line.site, line.kernel] = line.reason
                self.trials = max(self.trials, line.trial)
            case Returned():
                self.table[line.site] = line.own
                self.returned.append(line)
            case Ended():
                self.ended = line
            case _:
                self.ended = None

    def take_all(self, lines: Iterable[Line]) -> None:
        for line in lines:
            self.take(line)

    def _measured(self, window: Measured) -> None:
        self.trials = max(self.trials, window.trial)
        self.windows.append(window)
        if window.stage not in ("search", "finals"):
            return
        for site, time_s in window.incumbent_s.items():
            if self.table[site] == self.menu.start[site]:
                self.first_s.setdefault(site, time_s)
            self.times_s[site] = time_s
        for result in window.cells:
            self.results.append((window, result))
            delta, site = result.delta, result.site
            if delta.ratio:
                before = self.log_ratio.get((site, result.incumbent), 0.0)
                self.log_ratio[site, result.kernel] = before - math.log(delta.ratio)
            if result.accepted:
                self.table[site] = result.kernel
                if delta.b_s is not None:
                    self.times_s[site] = delta.b_s
