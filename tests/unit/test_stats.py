"""The statistics against synthetic machines whose truth is known, and the properties that hold for any."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gputop.stats import (
    MIN_FLOOR,
    MIN_ROUNDS,
    Paired,
    Summary,
    aa_floor,
    enough_for_one,
    narrow_enough,
    order,
    paired,
    paired_difference,
    summarize,
    verdict,
)

Floats = NDArray[np.float64]
Lanes = tuple[Floats, Floats]
"""Times of lanes a and b, each [windows, rounds]."""

ROUNDS = 40
WINDOWS = 500
FALSE_VERDICTS = ("FASTER", "SLOWER")

times_s = st.floats(1e-6, 1e3)
rounds_s = st.lists(st.tuples(times_s, times_s), min_size=MIN_ROUNDS, max_size=60)


def allowed(rate: float, trials: int) -> int:
    """The count that a true rate stays at or below in 999 of 1000 runs (normal approximation, rounded up)."""
    return math.ceil(rate * trials + 3.1 * math.sqrt(rate * (1 - rate) * trials))


def positions(rounds: int) -> NDArray[np.int64]:
    """Place of each sample in machine time: [2 lanes, rounds]."""
    return np.array([[2 * i + order(i, 2).index(lane) for i in range(rounds)] for lane in (0, 1)])


def correlated(rng: np.random.Generator, shape: tuple[int, ...], rho: float) -> Floats:
    """Standard normal AR(1) along the last axis."""
    fresh = rng.standard_normal(shape)
    series = fresh.copy()
    for i in range(1, shape[-1]):
        series[..., i] = rho * series[..., i - 1] + math.sqrt(1 - rho**2) * fresh[..., i]
    return series


def machine(
    seed: int,
    *,
    gain: float = 0.0,
    noise: float = 0.02,
    rho: float = 0.0,
    outliers: float = 0.0,
    drift: Callable[[NDArray[np.int64], Floats], Floats] | None = None,
    windows: int = WINDOWS,
    rounds: int = ROUNDS,
) -> Lanes:
    """Two plans on a noisy machine; b is faster by log ratio `gain`.

    `noise` is relative, AR(1) with `rho` in each lane; `outliers` the share of samples 2 to 10 times as long;
    `drift` the log slowdown at a place in machine time, given a phase in [0, 1) for each window.
    """
    rng = np.random.default_rng(seed)
    logs = noise * correlated(rng, (windows, 2, rounds), rho)
    if outliers:
        logs += np.where(rng.random(logs.shape) < outliers, np.log(rng.uniform(2, 10, logs.shape)), 0.0)
    if drift:
        logs += drift(positions(rounds), rng.random((windows, 1, 1)))
    logs[:, 1] -= gain
    times = 0.005 * np.exp(logs)
    return times[:, 0], times[:, 1]


def measured(lanes: Lanes) -> list[Paired]:
    return [paired(a, b) for a, b in zip(*lanes, strict=True)]


def verdicts(results: Sequence[Paired], floor: float = MIN_FLOOR) -> Counter[str]:
    return Counter(verdict(result, floor)[0] for result in results)


def misses(results: Sequence[Paired], truth: float) -> int:
    """How many intervals do not hold the truth."""
    return sum(not result.lo <= truth <= result.hi for result in results)


def linear(total: float) -> Callable[[NDArray[np.int64], Floats], Floats]:
    return lambda place, _: total * place / place.max() + 0 * _


def sine(amplitude: float, period: float) -> Callable[[NDArray[np.int64], Floats], Floats]:
    """`period` in samples; 4 is one ABBA block."""
    return lambda place, phase: amplitude * np.sin(2 * math.pi * (place / period + phase))


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
    assert verdict(result, 0.003) == ("UNRESOLVED", result.reason)
    assert not narrow_enough(result, 10.0)
    assert paired_difference([2.0] * rounds, [1.0] * rounds).delta_lo_s is None


@pytest.mark.parametrize("broken", [0.0, -1.0, math.nan, math.inf])
def test_a_time_that_is_none_makes_nothing_known(broken: float) -> None:
    a, b = [1.0] * 20, [1.0] * 19 + [broken]
    result = paired(a, b)
    assert result.effect is None
    assert verdict(result, 0.01)[0] == "UNRESOLVED"
    assert "positive" in result.reason
    assert paired_difference(a, b).delta_s is None


def test_a_round_that_one_lane_did_not_finish_is_left_out() -> None:
    assert paired([2.0] * 21, [1.0] * 20) == paired([2.0] * 20, [1.0] * 20)


# verdicts


@given(st.floats(-1, 1), st.floats(0, 1), st.floats(0, 1))
def test_every_interval_has_exactly_one_verdict(effect: float, half: float, floor: float) -> None:
    result = Paired(effect, effect - half, effect + half, 40)
    holds = {
        "FASTER": result.lo > floor,
        "SLOWER": result.hi < -floor,
        "SAME": result.lo >= -floor and result.hi <= floor,
    }
    told, why = verdict(result, floor)
    assert [name for name, held in holds.items() if held] == ([] if told == "UNRESOLVED" else [told])
    assert bool(why) == (told == "UNRESOLVED")


def test_an_unresolved_verdict_says_why() -> None:
    assert "spread too wide: +-4 %" in verdict(Paired(0.01, -0.03, 0.05, 40), 0.003)[1]
    assert "crosses the A/A floor" in verdict(Paired(0.01, 0.001, 0.019, 40), 0.003)[1]


@given(st.floats(-5, 5), st.floats(0, 0.1), st.floats(0, 0.1), st.integers(0, 100))
def test_stopping_never_looks_at_the_effect(effect: float, half: float, floor: float, rounds: int) -> None:
    here = Paired(0.0, -half, half, rounds)
    there = Paired(effect, effect - half, effect + half, rounds)
    if abs(here.half_width - max(floor, MIN_FLOOR) / 2) > 1e-9:
        assert narrow_enough(here, floor) == narrow_enough(there, floor)


# known truth: no effect

NULL_MACHINES: dict[str, Callable[[], Lanes]] = {
    "white noise": partial(machine, 11),
    "little noise": partial(machine, 12, noise=0.003),
    "linear drift of 20 %": partial(machine, 13, noise=0.003, drift=linear(0.2)),
    "slow sine": partial(machine, 14, noise=0.003, drift=sine(0.05, 61.0)),
    "sine of two blocks": partial(machine, 15, noise=0.003, drift=sine(0.05, 8.0)),
    "sine of one block": partial(machine, 16, noise=0.003, drift=sine(0.05, 4.0)),
    "2 % outliers": partial(machine, 17, outliers=0.02),
    "5 % outliers": partial(machine, 18, outliers=0.05),
    "outliers over drift": partial(machine, 19, noise=0.005, outliers=0.03, drift=linear(0.1)),
    "correlated 0.4": partial(machine, 20, rho=0.4),
    "correlated 0.7": partial(machine, 21, rho=0.7),
    "correlated 0.7, with outliers": partial(machine, 22, rho=0.7, outliers=0.03),
}


@pytest.mark.parametrize("name", NULL_MACHINES)
def test_without_an_effect_a_false_verdict_is_rarer_than_stated(name: str) -> None:
    counts = verdicts(measured(NULL_MACHINES[name]()))
    assert sum(counts[told] for told in FALSE_VERDICTS) <= allowed(0.01, WINDOWS), counts


@pytest.mark.parametrize("name", NULL_MACHINES)
def test_the_interval_holds_the_truth_as_often_as_stated(name: str) -> None:
    assert misses(measured(NULL_MACHINES[name]()), 0.0) <= allowed(0.01, WINDOWS)


def test_an_unpaired_comparison_of_fixed_order_would_have_been_fooled_by_drift() -> None:
    rng = np.random.default_rng(23)
    place = np.arange(2 * ROUNDS).reshape(2, ROUNDS)
    logs = 0.003 * rng.standard_normal((WINDOWS, 2, ROUNDS)) + 0.02 * place / place.max()
    a, b = np.exp(logs).swapaxes(0, 1)
    apart = np.log(a).mean(axis=-1) - np.log(b).mean(axis=-1)
    half_width = 2.64 * np.sqrt((np.log(a).var(axis=-1) + np.log(b).var(axis=-1)) / (ROUNDS - 1))
    fooled = int(np.sum(np.abs(apart) - half_width > MIN_FLOOR))
    assert fooled > 0.9 * WINDOWS

    counts = verdicts(measured(machine(23, noise=0.003, drift=linear(0.02))))
    assert sum(counts[told] for told in FALSE_VERDICTS) <= allowed(0.01, WINDOWS)


def test_strict_alternation_would_have_been_fooled_by_a_sine_of_one_block() -> None:
    """Why `order` is no plain ABBA ABBA: it is in step with a period of four samples."""
    place = np.array([[2 * i + (lane + i) % 2 for i in range(ROUNDS)] for lane in (0, 1)])
    logs = 0.003 * np.random.default_rng(24).standard_normal((100, 2, ROUNDS))
    times = np.exp(logs + sine(0.05, 4.0)(place, np.full((100, 1, 1), 0.375)))
    counts = verdicts(measured((times[:, 0], times[:, 1])))
    assert sum(counts[told] for told in FALSE_VERDICTS) > 90


# known truth: real effects


@pytest.mark.parametrize(
    ("gain", "noise", "outliers"),
    [(0.01, 0.003, 0.0), (0.03, 0.01, 0.0), (0.03, 0.005, 0.03), (0.10, 0.02, 0.0), (0.10, 0.02, 0.03)],
)
@pytest.mark.parametrize("sign", [1, -1])
def test_a_real_effect_resolves_in_forty_rounds(
    gain: float, noise: float, outliers: float, sign: int
) -> None:
    results = measured(machine(31, gain=sign * gain, noise=noise, outliers=outliers, windows=200))
    right, wrong = ("FASTER", "SLOWER") if sign > 0 else ("SLOWER", "FASTER")
    counts = verdicts(results)
    assert counts[right] >= 0.9 * 200, counts
    assert counts[wrong] == 0
    assert misses(results, sign * gain) <= allowed(0.01, 200)


def test_ten_per_cent_at_two_per_cent_noise_resolves_even_in_twenty_rounds() -> None:
    assert verdicts(measured(machine(32, gain=0.1, windows=200, rounds=20)))["FASTER"] >= 0.95 * 200


def test_an_effect_within_the_floor_is_same_when_quiet() -> None:
    counts = verdicts(measured(machine(33, gain=0.001, noise=0.001, windows=200)))
    assert counts["SAME"] >= 0.95 * 200
    assert sum(counts[told] for told in FALSE_VERDICTS) == 0


# looking after every block


def looked_at(lanes: Lanes, floor: float) -> list[Paired]:
    """Each window as the session ends it: at the first narrow interval, or with the budget."""

    def stopped(a: Floats, b: Floats) -> Paired:
        looks = (paired(a[:n], b[:n]) for n in range(MIN_ROUNDS, len(a) + 1, 2))
        result = next(looks)
        for later in looks:
            if narrow_enough(result, floor):
                break
            result = later
        return result

    return [stopped(a, b) for a, b in zip(*lanes, strict=True)]


@pytest.mark.parametrize(
    ("floor", "rho", "outliers", "missed"),
    [(0.03, 0.0, 0.0, 0.01), (0.05, 0.0, 0.02, 0.01), (0.05, 0.4, 0.0, 0.01), (0.06, 0.7, 0.0, 0.02)],
)
def test_stopping_on_width_keeps_the_rates(floor: float, rho: float, outliers: float, missed: float) -> None:
    results = looked_at(machine(41, rho=rho, outliers=outliers, windows=300), floor)
    assert sum(result.n < ROUNDS for result in results) > 100, "too few stopped early to test anything"
    counts = verdicts(results, floor)
    assert sum(counts[told] for told in FALSE_VERDICTS) <= allowed(0.01, len(results)), counts
    assert misses(results, 0.0) <= allowed(missed, len(results))


def test_stopping_on_significance_would_have_found_effects_in_noise() -> None:
    """Why `narrow_enough` looks at the width only: a plain t interval, looked at until it excludes 0."""
    a, b = machine(44, noise=0.02, windows=300)
    effects = np.log(a) - np.log(b)
    found = np.zeros(len(a), dtype=bool)
    for n in range(MIN_ROUNDS, ROUNDS + 1, 2):
        seen = effects[:, :n]
        found |= np.abs(seen.mean(axis=1)) > 2.9 * seen.std(axis=1, ddof=1) / math.sqrt(n)
    assert found.mean() > 0.03


# the A/A floor


def copy(effect: float, half: float = 0.0) -> Paired:
    return Paired(effect, effect - half, effect + half, 40)


def placed(seed: int, spread: float, noise: float = 0.002) -> list[Paired]:
    """Windows of two copies of one plan whose placement differs by a normal log ratio."""
    offsets = spread * np.random.default_rng(seed).standard_normal((WINDOWS, 1))
    a, b = machine(seed + 1, noise=noise)
    return measured((a, b * np.exp(offsets)))


def told_apart(windows: Sequence[Paired], known: int, seed: int) -> float:
    """Share of windows with a false verdict, the floor taken from `known` other windows."""
    rng = np.random.default_rng(seed)
    floors = [aa_floor([windows[i] for i in rng.integers(len(windows), size=known)], 0.003) for _ in windows]
    false = [verdict(w, floor)[0] in FALSE_VERDICTS for w, floor in zip(windows, floors, strict=True)]
    return sum(false) / len(windows)


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


@pytest.mark.parametrize("known", [1, 3, 20])
def test_placement_within_the_minimum_is_not_taken_for_an_effect(known: int) -> None:
    assert told_apart(placed(52, 0.001), known, 53) * WINDOWS <= allowed(0.01, WINDOWS)


def test_loud_placement_is_tamed_by_pooling_copies() -> None:
    windows = placed(54, 0.01)
    with_minimum_alone = sum(verdict(w, 0.003)[0] in FALSE_VERDICTS for w in windows) / WINDOWS
    assert with_minimum_alone > 0.5
    for known, stated in ((1, 0.13), (3, 0.04), (5, 0.02), (20, 0.012)):
        assert told_apart(windows, known, 55) * WINDOWS <= allowed(stated, WINDOWS)
