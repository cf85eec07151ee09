"""Other ways to choose the next experiment, which the search is held against."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping

from gputop.search.experiment import Option, Ranking, ranking
from gputop.search.menu import Cell, Menu, Table
from gputop.search.prediction import Forecast, price_s

Policy = Callable[
    [Iterable[Cell], Mapping[Cell, Forecast], Table, Mapping[str, float], random.Random], Ranking
]
"""(cells left, forecasts, incumbents, times of their sites, chance) -> what to try next."""


def by_worth(menu: Menu) -> Policy:
    """The search's own: what trying a candidate is expected to gain, what the model is unsure of included."""
    return ranking


def by_chance(menu: Menu) -> Policy:
    """Random search: any candidate is as good as any other."""

    def policy(
        left: Iterable[Cell],
        forecasts: Mapping[Cell, Forecast],
        table: Table,
        times_s: Mapping[str, float],
        rng: random.Random,
    ) -> Ranking:
        options = [Option(cell, forecasts[cell], 0.0) for cell in left]
        rng.shuffle(options)
        return Ranking(tuple(options), ())

    return policy


def by_model(menu: Menu) -> Policy:
    """Plain greedy: the largest saving that the term model says of a candidate, and nothing is learnt."""

    def policy(
        left: Iterable[Cell],
        forecasts: Mapping[Cell, Forecast],
        table: Table,
        times_s: Mapping[str, float],
        rng: random.Random,
    ) -> Ranking:
        def saved_s(cell: Cell) -> float:
            return price_s(menu, (cell[0], table[cell[0]])) - price_s(menu, cell)

        options = [Option(cell, forecasts[cell], saved_s(cell)) for cell in left]
        rng.shuffle(options)
        options.sort(key=lambda option: -option.gain_s)
        return Ranking(tuple(options), ())

    return policy


POLICIES: Mapping[str, Callable[[Menu], Policy]] = {
    "search": by_worth,
    "greedy": by_model,
    "random": by_chance,
}
