"""Policies compared on sweeps that were recorded, and the sweeps against their recordings."""

from __future__ import annotations

import pytest

from gputop.results.recorded_sweep import read_sweep, shipped
from gputop.search.policy_trials import needed, recorded_menu, recorded_times
from gputop.session.recorded_cells import gathered


@pytest.mark.parametrize("name", shipped())
def test_a_sweep_holds_what_the_recordings_say_and_whence(name: str) -> None:
    """`make sweeps` writes them anew."""
    sweep = read_sweep(name)
    now = gathered(sweep.math)
    assert sweep.sources == now.sources
    assert sweep.cells == now.cells
    assert sweep.window_spread == now.window_spread


@pytest.mark.parametrize("name", shipped())
def test_a_simulated_device_has_a_time_for_each_cell_of_the_menu_and_for_no_other(name: str) -> None:
    sweep = read_sweep(name)
    menu = recorded_menu(sweep)
    assert {*menu.cells(), *menu.start.items()} == set(recorded_times(sweep))


@pytest.mark.parametrize("name", shipped())
def test_the_search_needs_fewer_measurements_than_greedy_and_than_chance(name: str) -> None:
    sweep = read_sweep(name)
    counts = {policy: needed(sweep, policy, range(1)).median for policy in ("search", "greedy", "random")}
    assert counts["search"] < counts["greedy"]
    assert counts["search"] < counts["random"]
