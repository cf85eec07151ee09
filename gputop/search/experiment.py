"""Port 4: which experiment is next. What could still win counts, and what is uncertain could.

A candidate's worth is what trying it is expected to gain: it is taken only if it wins, so that a wide
forecast is worth more than a narrow one of the same mean. What is slower than the incumbent even at its best
is pruned before the stopwatch; it comes back if what is learnt later speaks for it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gputop.search.menu import Cell, Table
from gputop.search.prediction import Forecast

HOPELESS_SDS = 2.6
"""Standard deviations by which a candidate may be better than forecast: 1 in 200 is better still."""


@dataclass(frozen=True, slots=True)
class Option:
    """A candidate that may be tried, and what that is expected to save of the pass."""

    cell: Cell
    forecast: Forecast
    gain_s: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """What could be tried next, the best first, and what not to try."""

    options: tuple[Option, ...]
    pruned: tuple[Cell, ...]

    @property
    def gain_s(self) -> float:
        """What the best experiment is expected to save; infinitely little if all are pruned."""
        return self.options[0].gain_s if self.options else -math.inf


def ranking(
    left: Iterable[Cell],
    forecasts: Mapping[Cell, Forecast],
    table: Table,
    times_s: Mapping[str, float],
    rng: random.Random,
) -> Ranking:
    """Rank what is left against the incumbent table, whose sites take `times_s`. `rng` orders equals."""
    options: list[Option] = []
    pruned: list[Cell] = []
    for cell in left:
        site = cell[0]
        incumbent_s = times_s.get(site) or forecasts[site, table[site]].time_s
        forecast = forecasts[cell]
        if forecast.hopeless(incumbent_s, HOPELESS_SDS):
            pruned.append(cell)
        else:
            options.append(Option(cell, forecast, forecast.expected_gain(incumbent_s)))
    rng.shuffle(options)
    options.sort(key=lambda option: -option.gain_s)
    return Ranking(tuple(options), tuple(pruned))


def batches(options: Sequence[Option], width: int, together: int, most: int) -> list[list[Option]]:
    """Share the best options out among `width` windows, up to `together` sites in each and `most` in all.

    A window has one candidate a site, and no cell is in two.
    """
    windows: list[list[Option]] = [[] for _ in range(max(1, width))]
    placed = 0
    for option in options:
        if placed == most:
            break
        room = (
            window
            for window in windows
            if len(window) < together and all(option.cell[0] != other.cell[0] for other in window)
        )
        # The emptiest window first: each device gets something to do.
        window = min(room, key=len, default=None)
        if window is not None:
            window.append(option)
            placed += 1
    return [window for window in windows if window]
