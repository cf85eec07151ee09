"""How many measurements a policy needs on a recorded sweep: `python -m gputop.search.policy_trials`.

A trial is one search on a simulated device, one candidate a window, with noise as recorded. It ends when the
incumbent table is within 1 % of the best that the sweep holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from gputop.plan.plan_string import parse_choice
from gputop.plan.types import PlanRequest
from gputop.results.recorded_sweep import RecordedSweep, read_sweep, shipped
from gputop.results.search_space import SearchSpace
from gputop.search.journal import Line
from gputop.search.loop import Search
from gputop.search.menu import Cell, Menu, Table, menu_of
from gputop.search.policies import POLICIES
from gputop.search.score import StopRules
from gputop.search.simulated import CellTime, SimulatedDevice

WITHIN = 0.01
"""Of the best table's time."""
SEEDS = 100
UNTIL_THE_END = StopRules(efficiency=float("inf"), least_gain=float("-inf"), budget=10_000)
"""No rule but the menu stops: what a policy needs is counted, not when it would give up."""


@dataclass(frozen=True, slots=True)
class Needed:
    """Paired measurements that a policy needed, seed by seed."""

    policy: str
    counts: tuple[int, ...]

    @property
    def median(self) -> float:
        return median(self.counts)

    @property
    def worst(self) -> int:
        return max(self.counts)


class InMemory:
    """A journal that is not kept."""

    def add(self, line: Line) -> None:
        """Keep nothing."""


def recorded_menu(sweep: RecordedSweep) -> Menu:
    """Return the menu of a sweep: every cell that was recorded."""
    return menu_of(SearchSpace(sweep.start, PlanRequest(sweep.start), sweep.sites), None)


def recorded_times(sweep: RecordedSweep) -> dict[Cell, CellTime]:
    """Return what a sweep says of each cell."""
    return {
        (cell.site, parse_choice(cell.kernel)): CellTime(cell.time_s, cell.spread) for cell in sweep.cells
    }


def best_s(menu: Menu, times: Mapping[Cell, CellTime]) -> float:
    """Return the time of the best table of a menu."""
    return sum(min(times[site.site, found.choice].time_s for found in site.candidates) for site in menu.sites)


def table_s(table: Table, times: Mapping[Cell, CellTime]) -> float:
    """Return the time of a table."""
    return sum(times[cell].time_s for cell in table.items())


def needed(sweep: RecordedSweep, policy: str, seeds: Sequence[int]) -> Needed:
    """Return how many measurements a policy needs, for each seed of device and search."""
    menu, times = recorded_menu(sweep), recorded_times(sweep)
    enough_s = best_s(menu, times) * (1 + WITHIN)
    return Needed(policy, tuple(_one(sweep, menu, times, policy, enough_s, seed) for seed in seeds))


def _one(
    sweep: RecordedSweep,
    menu: Menu,
    times: Mapping[Cell, CellTime],
    policy: str,
    enough_s: float,
    seed: int,
) -> int:
    device = SimulatedDevice(times, seed=seed, window_spread=sweep.window_spread)
    search = Search(menu, device, InMemory(), UNTIL_THE_END, seed=seed, policy=POLICIES[policy](menu))
    while table_s(search.progress.table, times) > enough_s and search.step() is None:
        pass
    reached = table_s(search.progress.table, times) <= enough_s
    # A policy that gives up before has pruned what it needed.
    return search.progress.measured if reached else len(menu.cells())


def main() -> int:
    """Print the comparison on every sweep."""
    for name in shipped():
        sweep = read_sweep(name)
        menu, times = recorded_menu(sweep), recorded_times(sweep)
        start_s, least_s = table_s(menu.start, times), best_s(menu, times)
        print(f"{name}: {len(menu.cells())} candidates at {len(menu.sites)} sites, {start_s / least_s:.2f}x")
        for policy in POLICIES:
            found = needed(sweep, policy, range(SEEDS))
            print(f"  {policy:8} median {found.median:g}, worst {found.worst}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
