"""What holds for any times: the order of lanes, the paired interval, verdicts and the A/A floor."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gputop.perf.paired_stats import (
    MIN_ROUNDS,
    Summary,
    aa_floor,
    enough_for_one,
    order,
    paired,
    paired_difference,
    same_within,
    summarize,
)
from gputop.perf.verdicts import (
    MIN_FLOOR,
    MIN_ROUNDS_TO_STOP,
    WIDEST_SAME,
    Floor,
    Paired,
    narrow_enough,
    verdict,
)

times_s = st.floats(1e-6, 1e3)
rounds_s = st.lists(st.tuples(times_s, times_s), min_size=MIN_ROUNDS, max_size=40)


# order


@given(st.integers(0, 10_000), st.integers(1, 12))
def test_order_is_a_permutation_and_a_block_runs_it_both_ways(block: int, lanes: int) -> None:
    forward, backward = order(2 * block, lanes), order(2 * block + 1, lanes)
    assert sorted(forward) == list(range(lanes))
    assert backward == forward[::-1]


@pytest.mark.parametrize("lanes", [2, 3, 5])
def test_every_lane_comes_first_equally_often(lanes: int) -> None:
    firsts = Counter(order(i, lanes)[0] for i in range(2 * lanes * lanes))
    assert set(firsts.values()) == {2 * lanes}
    assert len(firsts) == lanes


@pytest.mark.parametrize("lanes", [2, 3, 4])
def test_every_pair_of_lanes_has_the_same_mean_place_in_a_block(lanes: int) -> None:
    for block in range(8):
        first, second = order(2 * block, lanes), order(2 * block + 1, lanes)
        places = [first.index(lane) + lanes + second.index(lane) for lane in range(lanes)]
        assert all(x == y for x, y in combinations(places, 2))


def test_two_lanes_start_as_abba() -> None:
    assert [order(i, 2) for i in range(2)] == [(0, 1), (1, 0)]


@pytest.mark.parametrize(("round_index", "lanes"), [(0, 0), (-1, 2)])
def test_no_order_without_lanes_or_rounds(round_index: int, lanes: int) -> None:
    with pytest.raises(ValueError, match="no round"):
        order(round_index, lanes)


# one lane


def test_summary_of_known_numbers_is_not_moved_by_an_outlier() -> None:
    assert summarize([1.0, 2.0, 3.0, 4.0, 500.0]) == Summary(median=3.0, mad=1.0, n=5)


def test_what_a_summary_can_not_know_is_none() -> None:
    assert summarize([]) == Summary(None, None, 0)
    assert summarize([2.5]) == Summary(2.5, None, 1)


def test_one_plan_is_known_well_enough_when_quiet_and_not_when_noisy_few_or_drifting() -> None:
    rng = np.random.default_rng(1)
    quiet = np.exp(0.005 * rng.standard_normal(60))
    assert enough_for_one(quiet)
    assert not enough_for_one(np.exp(0.2 * rng.standard_normal(60)))
    assert not enough_for_one(quiet[:4])
    assert not enough_for_one(quiet * np.linspace(1.0, 1.3, 60))
    assert not enough_for_one(np.append(quiet, 0.0))


def test_a_still_device_tells_one_plan_at_a_glance() -> None:
    still = [1.0, 1.001, 1.002, 1.0, 1.0029]
    assert enough_for_one(still)
    assert not enough_for_one(still[:4])
    assert not enough_for_one([*still[:4], 1.0031])


# properties of the paired interval


@given(rounds_s)
def test_swapping_the_lanes_mirrors_effect_interval_and_difference(rounds: list[tuple[float, float]]) -> None:
    a, b = (list(lane) for lane in zip(*rounds, strict=True))
    there, back = paired(a, b), paired(b, a)
    assert there.effect is not None
    assert back.effect is not None
    assert (back.effect, back.lo, back.hi) == pytest.approx((-there.effect, -there.hi, -there.lo), abs=1e-9)
    seconds, mirrored = paired_difference(a, b), paired_difference(b, a)
    if seconds.delta_s is not None and mirrored.delta_s is not None:
        assert mirrored.delta_s == pytest.approx(-seconds.delta_s, rel=1e-6, abs=1e-9)


@given(rounds_s, st.floats(1e-3, 1e3))
def test_the_unit_of_time_does_not_matter(rounds: list[tuple[float, float]], unit: float) -> None:
    a, b = (np.array(lane) for lane in zip(*rounds, strict=True))
    small, large = paired(a, b), paired(a * unit, b * unit)
    expected = pytest.approx((small.effect, small.lo, small.hi), rel=1e-6, abs=1e-6)
    assert (large.effect, large.lo, large.hi) == expected


@given(rounds_s, st.floats(-0.5, 0.5))
def test_the_width_does_not_depend_on_the_effect(rounds: list[tuple[float, float]], gain: float) -> None:
    a, b = (np.array(lane) for lane in zip(*rounds, strict=True))
    shifted = paired(a, b * math.exp(gain)).half_width
    assert shifted == pytest.approx(paired(a, b).half_width, rel=1e-6, abs=1e-6)


@given(rounds_s)
def test_difference_in_seconds_agrees_in_sign_with_the_effect(rounds: list[tuple[float, float]]) -> None:
    a, b = (list(lane) for lane in zip(*rounds, strict=True))
    result, difference = paired(a, b), paired_difference(a, b)
    assert result.effect is not None
    for seconds, effect in (
        (difference.delta_s, result.effect),
        (difference.delta_lo_s, result.hi),
        (difference.delta_hi_s, result.lo),
    ):
        assert seconds is None or np.sign(seconds) == -np.sign(effect)
    if difference.a_s is not None and difference.b_s is not None:
        assert difference.a_s / difference.b_s == pytest.approx(result.ratio)
        assert difference.b_s - difference.a_s == pytest.approx(
            difference.delta_s, abs=1e-9 * max(difference.a_s, difference.b_s)
        )


def test_difference_and_ratio_of_exact_times() -> None:
    difference = paired_difference([0.004] * 20, [0.003] * 20)
    assert (difference.delta_s, difference.delta_lo_s, difference.delta_hi_s) == pytest.approx((-0.001,) * 3)
    assert paired([0.004] * 20, [0.003] * 20).ratio == pytest.approx(4 / 3)


@pytest.mark.parametrize("rounds", range(MIN_ROUNDS))
def test_too_few_rounds_give_an_infinite_interval_and_say_so(rounds: int) -> None:
    result = paired([2.0] * rounds, [1.0] * rounds)
    assert (result.lo, result.hi, result.n) == (-math.inf, math.inf, rounds)
    assert f"too few rounds: {rounds}" in result.reason
    assert result.effect == (pytest.approx(math.log(2)) if rounds else None)
    assert (result.ratio_lo, result.ratio_hi) == (None, None)
    assert verdict(result, known(0.003)) == ("UNRESOLVED", result.reason)
    assert not narrow_enough(result, 10.0)
    assert paired_difference([2.0] * rounds, [1.0] * rounds).delta_lo_s is None


@pytest.mark.parametrize("broken", [0.0, -1.0, math.nan, math.inf])
def test_a_time_that_is_none_makes_nothing_known(broken: float) -> None:
    a, b = [1.0] * 20, [1.0] * 19 + [broken]
    result = paired(a, b)
    assert result.effect is None
    assert verdict(result, known(0.01))[0] == "UNRESOLVED"
    assert "positive" in result.reason
    assert paired_difference(a, b).delta_s is None


def test_a_round_that_one_lane_did_not_finish_is_left_out() -> None:
    assert paired([2.0] * 21, [1.0] * 20) == paired([2.0] * 20, [1.0] * 20)


# verdicts


def known(floor: float) -> Floor:
    """What copies differ by, as a window knows it that has had rounds enough."""
    return Floor(floor, floor)


@given(st.floats(-1, 1), st.floats(0, 1), st.floats(0, 1), st.integers(8, 16))
def test_every_interval_has_exactly_one_verdict(
    effect: float, half: float, floor: float, rounds: int
) -> None:
    result = Paired(effect, effect - half, effect + half, rounds)
    within = result.lo >= -floor and result.hi <= floor and floor <= WIDEST_SAME
    holds = {
        "FASTER": result.lo > floor,
        "SLOWER": result.hi < -floor,
        "SAME": within and rounds >= MIN_ROUNDS_TO_STOP,
    }
    told, why = verdict(result, known(floor))
    assert [name for name, held in holds.items() if held] == ([] if told == "UNRESOLVED" else [told])
    assert bool(why) == (told == "UNRESOLVED")


def test_an_unresolved_verdict_says_why() -> None:
    assert "spread too wide: +-4 %" in verdict(Paired(0.01, -0.03, 0.05, 40), known(0.003))[1]
    assert (
        "spread too wide: a factor of 3.7 either way" in verdict(Paired(0.0, -1.3, 1.3, 40), known(0.003))[1]
    )
    assert "spread too wide: a factor without end" in verdict(Paired(0.0, -900.0, 900.0, 40), known(0.003))[1]
    assert "crosses the A/A floor" in verdict(Paired(0.01, 0.001, 0.019, 40), known(0.003))[1]
    assert (
        "too restless to tell: within the A/A floor of 30 %"
        in verdict(Paired(0.1, 0.0, 0.2, 40), known(0.3))[1]
    )


@given(st.floats(-0.5, 0.5), st.floats(0, 0.1), st.floats(0.003, 0.2), st.floats(0.003, 0.2))
def test_the_noise_of_copies_makes_nothing_the_same(
    effect: float, half: float, apart: float, same: float
) -> None:
    """A floor that is less known leads from SAME to UNRESOLVED, and never the other way."""
    result, same = Paired(effect, effect - half, effect + half, 40), min(same, apart)
    narrow, wide = verdict(result, Floor(same, same))[0], verdict(result, Floor(apart, same))[0]
    unknown = verdict(result, Floor(apart, None, "why"))
    if wide == "SAME":
        assert narrow == "SAME"
    assert unknown[0] != "SAME"
    assert unknown[0] in (wide, "UNRESOLVED")


def test_copies_tell_what_is_the_same_only_if_this_window_knows_them_well() -> None:
    assert same_within([], 0.003) == (None, "no copy of a plan was measured in this window")
    few = Paired(0.0, -0.001, 0.001, 9)
    assert same_within([few], 0.003) == (None, "copies were measured for 9 of at least 12 rounds")
    assert same_within([copy(0.001, 0.027)], 0.003)[1] == "what copies differ by is known to +-2.7 % only"
    assert same_within([copy(0.001, 0.001), copy(0.001, 0.006)], 0.003)[0] is None
    assert same_within([copy(0.0005, 0.001)], 0.003) == (0.003, "")
    assert same_within([copy(0.001, 0.009)], 0.02) == (0.02, ""), "a backend's own minimum is as noisy"


@given(st.floats(-5, 5), st.floats(0, 0.1), st.floats(0, 0.1), st.integers(0, 100))
def test_stopping_never_looks_at_the_effect(effect: float, half: float, floor: float, rounds: int) -> None:
    here = Paired(0.0, -half, half, rounds)
    there = Paired(effect, effect - half, effect + half, rounds)
    if abs(here.half_width - max(floor, MIN_FLOOR) / 2) > 1e-9:
        assert narrow_enough(here, floor) == narrow_enough(there, floor)


# the A/A floor


def copy(effect: float, half: float = 0.0) -> Paired:
    return Paired(effect, effect - half, effect + half, 40)


def test_without_a_usable_copy_the_floor_is_the_minimum_but_never_below_a_third_of_a_per_cent() -> None:
    assert aa_floor([], 0.01) == 0.01
    assert aa_floor([], 0.0) == MIN_FLOOR == 0.003
    assert aa_floor([paired([1.0] * 3, [1.0] * 3)], 0.01) == 0.01


@pytest.mark.parametrize("copies", [1, 2, 3])
def test_quiet_copies_leave_the_floor_at_the_minimum(copies: int) -> None:
    assert aa_floor([copy(0.0005, 0.001)] * copies, 0.003) == 0.003


def test_one_wide_copy_raises_the_floor_to_its_upper_end_and_no_further() -> None:
    assert aa_floor([copy(0.001, 0.02)], 0.003) == pytest.approx(0.021)


@given(st.lists(st.floats(-0.1, 0.1), min_size=1, max_size=30), st.floats(0.003, 0.02))
@example([0.1] + [0.0] * 39, 0.003)
def test_the_floor_covers_what_was_seen_whatever_its_sign_and_order(
    effects: list[float], minimum: float
) -> None:
    floor = aa_floor([copy(effect) for effect in effects], minimum)
    assert floor >= minimum
    assert floor >= np.quantile(np.abs(effects), 0.99)
    assert floor == pytest.approx(aa_floor([copy(-effect) for effect in reversed(effects)], minimum))


def test_many_copies_lead_to_the_true_percentile() -> None:
    effects = 0.01 * np.random.default_rng(51).standard_normal(400)
    floor = aa_floor([copy(float(effect)) for effect in effects], 0.003)
    assert floor == pytest.approx(0.02576, rel=0.15)
