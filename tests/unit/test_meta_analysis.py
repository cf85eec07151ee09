"""Several windows of one comparison as one: the truth found, and no more certainty than there is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputop.perf.student import student
from gputop.results.meta_analysis import pool
from gputop.results.records import Comparison, Delta


def window(
    effect: float, half_width: float, *, phase: str = "device", floor: float = 0.003, known: bool = True
) -> Comparison:
    """A window in which a took exp(effect) times as long as b, both around 1 ms."""
    a_s, b_s = 1e-3 * math.exp(effect / 2), 1e-3 * math.exp(-effect / 2)
    delta = Delta(
        phase, a_s, b_s, b_s - a_s, None, None,
        math.exp(effect), math.exp(effect - half_width), math.exp(effect + half_width),
        20, floor, "UNRESOLVED", same_within=floor if known else None,
    )  # fmt: skip
    return Comparison("a", "b", 1, (delta,))


def unknown() -> Comparison:
    delta = Delta("device", None, None, None, None, None, None, None, None, 0, 0.003, "UNRESOLVED", "too few")
    return Comparison("a", "b", 1, (delta,))


def pooled(*windows: Comparison) -> Delta:
    delta = pool(windows).get("device")
    assert delta is not None
    return delta


def test_one_window_is_left_as_it_is() -> None:
    alone = window(0.1, 0.01)
    assert pool([alone]) is alone


def test_windows_that_agree_narrow_the_interval() -> None:
    together = pooled(*(window(0.01, 0.01) for _ in range(4)))
    assert together.ratio == pytest.approx(math.exp(0.01))
    assert together.ratio_lo == pytest.approx(math.exp(0.005))
    assert together.verdict == "FASTER"
    assert together.samples == 80


def test_windows_that_disagree_are_not_more_certain_together() -> None:
    together = pooled(window(0.1, 0.01), window(-0.1, 0.01))
    assert together.verdict == "UNRESOLVED"
    assert "2 windows disagree" in together.status
    assert together.ratio_lo is not None
    assert together.ratio_lo < math.exp(-0.1)


def test_a_window_that_could_not_tell_is_left_out() -> None:
    assert pooled(unknown(), window(0.1, 0.01)).ratio == pytest.approx(math.exp(0.1))
    together = pool([unknown(), window(0.1, 0.01), window(0.1, 0.01), unknown()])
    assert together.windows == 2, "so many does the interval rest on"
    assert together.deltas[0].samples == 40
    nothing = pooled(unknown(), unknown())
    assert (nothing.ratio, nothing.verdict, nothing.status) == (None, "UNRESOLVED", "too few")


def test_a_window_counts_for_the_noise_floor_as_much_as_for_the_effect() -> None:
    assert pooled(window(0.05, 0.001), window(0.05, 0.001, floor=0.15)).aa_floor == pytest.approx(0.0765)
    assert pooled(window(0.05, 0.001), window(0.05, 0.001, floor=0.15)).verdict == "SAME"
    assert pooled(window(0.05, 0.001), window(0.05, 0.1, floor=0.2)).verdict == "FASTER"


def test_windows_that_do_not_know_their_copies_call_nothing_the_same() -> None:
    told = pooled(window(0.001, 0.001), window(0.001, 0.001, known=False))
    assert (told.verdict, told.same_within) == ("SAME", 0.003), "one of them knows"
    untold = pooled(*(window(0.001, 0.001, known=False) for _ in range(2)))
    assert untold.verdict == "UNRESOLVED"
    assert "no window knows well" in untold.status


@given(st.lists(st.tuples(st.floats(-0.5, 0.5), st.floats(1e-4, 0.3)), min_size=2, max_size=6))
def test_the_pooled_effect_lies_among_the_windows_and_its_interval_round_it(
    figures: list[tuple[float, float]],
) -> None:
    together = pooled(*(window(effect, half_width) for effect, half_width in figures))
    effects = [effect for effect, _ in figures]
    assert together.ratio is not None
    assert min(effects) - 1e-9 <= math.log(together.ratio) <= max(effects) + 1e-9
    assert together.ratio_lo is not None
    assert together.ratio_hi is not None
    assert together.ratio_lo <= together.ratio <= together.ratio_hi
    assert together.delta_s is not None
    assert (together.delta_s < 0) == (together.ratio > 1) or math.isclose(together.ratio, 1.0)


@given(st.lists(st.floats(-0.5, 0.5), min_size=2, max_size=8), st.floats(1e-4, 0.3))
def test_the_spread_of_windows_that_disagree_is_held_to_students_t(
    effects: list[float], half_width: float
) -> None:
    together = pooled(*(window(effect, half_width) for effect in effects))
    assert together.ratio_lo is not None
    assert together.ratio_hi is not None
    found = (math.log(together.ratio_hi) - math.log(together.ratio_lo)) / 2
    few = len(effects)
    assert found >= half_width / math.sqrt(few) * (1 - 1e-9), "never surer than so many windows that agree"
    if "disagree" in together.status:
        by_spread = student(0.99, few - 1) * float(np.std(effects, ddof=1)) / math.sqrt(few)
        assert found == pytest.approx(by_spread)


def held(few: int, differ: float, trials: int = 600) -> float:
    """Share of intervals that hold the truth where windows differ by so many of their own deviations."""
    generator = np.random.default_rng(few)
    truth, deviation, inside = 0.02, 0.0004, 0
    for _ in range(trials):
        effects = generator.normal(truth, deviation * math.hypot(1.0, differ), size=few)
        together = pooled(*(window(float(effect), 2.576 * deviation) for effect in effects))
        assert together.ratio_lo is not None
        assert together.ratio_hi is not None
        inside += together.ratio_lo <= math.exp(truth) <= together.ratio_hi
    return inside / trials


@pytest.mark.parametrize("few", [2, 3, 5, 10])
def test_windows_that_differ_by_no_more_than_they_say_hold_the_truth_as_often_as_they_say(few: int) -> None:
    assert held(few, 0.0) >= 0.98


@pytest.mark.parametrize("few", [3, 5, 10])
def test_so_do_those_that_differ_by_far_more(few: int) -> None:
    assert held(few, 10.0) >= 0.96


def test_two_windows_that_agree_are_surer_than_one() -> None:
    """What a window more is asked for."""
    alone, both = pooled(window(0.01, 0.006)), pooled(window(0.01, 0.006), window(0.012, 0.006))
    assert (alone.verdict, both.verdict) == ("UNRESOLVED", "FASTER")
    assert both.status == ""


def test_a_narrow_window_does_not_outweigh_those_that_it_disagrees_with() -> None:
    """Where windows differ by far more than any of them says, each counts as much."""
    together = pooled(window(0.1, 0.001), window(-0.1, 0.01), window(-0.1, 0.01))
    assert together.ratio is not None
    assert math.log(together.ratio) == pytest.approx(-0.1 / 3, abs=0.005)
