"""The residual report: what is mispriced is named with its size, and nothing else is."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gputop.results.recorded_sweep import read_sweep
from gputop.search.loop import Search
from gputop.search.menu import Cell, Menu
from gputop.search.policy_trials import InMemory, recorded_menu, recorded_times
from gputop.search.residual import residuals
from gputop.search.score import StopRules
from gputop.search.simulated import CellTime, SimulatedDevice
from tests.unit.search_menus import menu as made_up

SWEEPS = ("h200-fp32", "h200-tf32")
SWEEP = read_sweep("h200-fp32")
MENU = recorded_menu(SWEEP)
PLANTED = -0.14
"""Of a doubling of the parts."""


def planted(menu: Menu, spreads: dict[Cell, CellTime], coefficient: float) -> dict[Cell, CellTime]:
    """A device that takes what the model says, but for what parts cost; its noise is as recorded."""
    times = {}
    for cell, recorded in spreads.items():
        found = menu.candidate(cell)
        assert found.model_s is not None
        doublings = math.log2(found.features.splits or 1)
        times[cell] = CellTime(found.model_s * math.exp(coefficient * doublings), recorded.spread)
    return times


@pytest.mark.parametrize("name", SWEEPS)
def test_a_mispricing_planted_in_the_simulated_device_is_found_named_and_within_its_interval(
    name: str,
) -> None:
    sweep = read_sweep(name)
    menu = recorded_menu(sweep)
    device = SimulatedDevice(planted(menu, recorded_times(sweep), PLANTED), seed=1, window_spread=0.003)
    search = Search(menu, device, InMemory(), StopRules(efficiency=9.9, least_gain=-1.0))
    search.run()
    report = residuals(menu, search.progress.cells_s)
    first = report.named[0]
    assert first.feature == "splits"
    assert first.direction == "overprices"
    assert first.lo <= PLANTED <= first.hi < 0


@pytest.mark.parametrize("name", SWEEPS)
def test_of_a_device_that_is_priced_right_none_is_named(name: str) -> None:
    sweep = read_sweep(name)
    menu = recorded_menu(sweep)
    rng = random.Random(7)
    times = planted(menu, recorded_times(sweep), 0.0)
    seen = {cell: one.time_s * math.exp(rng.gauss(0.0, 0.01)) for cell, one in times.items()}
    assert residuals(menu, seen).named == ()


@settings(max_examples=10)
@given(st.floats(-1.0, 1.0))
def test_what_is_planted_on_recorded_times_moves_the_coefficient_by_as_much(size: float) -> None:
    sweep, menu = SWEEP, MENU
    seen = {cell: one.time_s for cell, one in recorded_times(sweep).items()}
    more = {
        cell: time_s * math.exp(size * math.log2(menu.candidate(cell).features.splits or 1))
        for cell, time_s in seen.items()
    }
    before, after = residuals(menu, seen), residuals(menu, more)
    for old, new in zip(before.coefficients, after.coefficients, strict=True):
        moved = size if old.feature == "splits" else 0.0
        assert new.value - old.value == pytest.approx(moved, abs=1e-9)
        assert new.hi - new.lo == pytest.approx(old.hi - old.lo, abs=1e-9)


def test_without_features_it_says_why_there_is_no_regression() -> None:
    menu = made_up({"w1": {"own": 4e-6, "other": 2e-6}})
    report = residuals(menu, {("w1", menu.sites[0].own): 5e-6})
    assert report.coefficients == ()
    assert "no physical feature differs" in report.why
