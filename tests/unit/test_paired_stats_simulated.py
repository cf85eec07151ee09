"""The statistics against synthetic machines whose truth is known: rates of false verdicts, and power."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np
import pytest
from numpy.typing import NDArray

from gputop.perf.paired_stats import MIN_ROUNDS, aa_floor, order, paired, same_within
from gputop.perf.verdicts import MIN_FLOOR, Floor, Paired, narrow_enough, verdict

Floats = NDArray[np.float64]
Lanes = tuple[Floats, Floats]
"""Times of lanes a and b, each [windows, rounds]."""

ROUNDS = 40
WINDOWS = 400
FALSE_VERDICTS = ("FASTER", "SLOWER")


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
    return Counter(verdict(result, Floor(floor, floor))[0] for result in results)


def misses(results: Sequence[Paired], truth: float) -> int:
    """How many intervals do not hold the truth."""
    return sum(not result.lo <= truth <= result.hi for result in results)


def linear(total: float) -> Callable[[NDArray[np.int64], Floats], Floats]:
    return lambda place, phase: total * place / place.max()


def sine(amplitude: float, period: float) -> Callable[[NDArray[np.int64], Floats], Floats]:
    """`period` in samples; 4 is one ABBA block."""
    return lambda place, phase: amplitude * np.sin(2 * math.pi * (place / period + phase))


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


@cache
def null_results(name: str) -> list[Paired]:
    return measured(NULL_MACHINES[name]())


@pytest.mark.parametrize("name", NULL_MACHINES)
def test_without_an_effect_a_false_verdict_is_rarer_than_stated(name: str) -> None:
    counts = verdicts(null_results(name))
    assert sum(counts[told] for told in FALSE_VERDICTS) <= allowed(0.01, WINDOWS), counts


@pytest.mark.parametrize("name", NULL_MACHINES)
def test_the_interval_holds_the_truth_as_often_as_stated(name: str) -> None:
    assert misses(null_results(name), 0.0) <= allowed(0.01, WINDOWS)


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
    results = looked_at(machine(41, rho=rho, outliers=outliers, windows=150), floor)
    assert sum(result.n < ROUNDS for result in results) > 45, "too few stopped early to test anything"
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


# copies of one plan


@cache
def placed(seed: int, spread: float, noise: float = 0.002) -> list[Paired]:
    """Windows of two copies of one plan whose placement differs by a normal log ratio."""
    offsets = spread * np.random.default_rng(seed).standard_normal((WINDOWS, 1))
    a, b = machine(seed + 1, noise=noise)
    return measured((a, b * np.exp(offsets)))


def told_apart(windows: Sequence[Paired], known: int, seed: int) -> float:
    """Share of windows with a false verdict, the floor taken from `known` other windows."""
    rng = np.random.default_rng(seed)
    floors = [aa_floor([windows[i] for i in rng.integers(len(windows), size=known)], 0.003) for _ in windows]
    false = [
        verdict(w, Floor(floor, floor))[0] in FALSE_VERDICTS for w, floor in zip(windows, floors, strict=True)
    ]
    return sum(false) / len(windows)


@pytest.mark.parametrize("known", [1, 3, 20])
def test_placement_within_the_minimum_is_not_taken_for_an_effect(known: int) -> None:
    assert told_apart(placed(52, 0.001), known, 53) * WINDOWS <= allowed(0.01, WINDOWS)


def test_loud_placement_is_tamed_by_pooling_copies() -> None:
    windows = placed(54, 0.01)
    with_minimum_alone = sum(verdict(w, Floor(0.003, 0.003))[0] in FALSE_VERDICTS for w in windows) / WINDOWS
    assert with_minimum_alone > 0.5
    for known, stated in ((1, 0.13), (3, 0.04), (5, 0.02), (20, 0.012)):
        assert told_apart(windows, known, 55) * WINDOWS <= allowed(stated, WINDOWS)


@pytest.mark.parametrize("rounds", [8, 10, 12, 20, 40])
def test_noise_makes_unresolved_and_never_the_same(rounds: int) -> None:
    """A true effect of 3 % under 1 % of noise a sample, three noisy copies beside it: what a window has."""
    lanes = [machine(seed, noise=0.01, windows=WINDOWS, rounds=rounds) for seed in (61, 62)]
    (a, b), copies = lanes[0], (lanes[0][1], *lanes[1])
    told: Counter[str] = Counter()
    for window in range(WINDOWS):
        beside = [paired(a[window], copy[window]) for copy in copies]
        apart, (same, why) = aa_floor(beside, MIN_FLOOR), same_within(beside, MIN_FLOOR)
        pair = paired(a[window], b[window] * math.exp(-0.03))
        told[verdict(pair, Floor(apart, None if same is None else min(same, apart), why))[0]] += 1
    assert told["SAME"] == 0, told
    assert told["SLOWER"] == 0, told
