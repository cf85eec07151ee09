"""Paired statistics: from the times of two lanes to an effect, its interval and a verdict.

An effect is log(time_a / time_b): positive means that b is faster. The unit of observation is the ABBA
block, two consecutive rounds in opposite order, in which a linear drift cancels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputop.perf.student import student
from gputop.perf.verdicts import (
    CONFIDENCE,
    LARGEST_EXPONENT,
    MIN_FLOOR,
    MIN_ROUNDS_TO_STOP,
    Paired,
    copies_known,
    exp_or_none,
    percent,
)

Samples = Sequence[float] | NDArray[np.floating[Any]]
Floats = NDArray[np.float64]

MIN_ROUNDS = 8
"""Below four blocks neither spread nor correlation can be estimated: the interval is infinite."""
ONE_PLAN_HALF_WIDTH = 0.01
"""Relative half width at which the time of a single plan is known well enough."""
STILL_ROUNDS, STILL_SPREAD = 5, 0.003
"""So many rounds all so close to each other tell a single plan's time at a glance."""

_FENCE = 3.0
"""Blocks further than this many (normalised) MADs from the median are pulled in to it."""
_NORMAL_MAD = 1.4826
"""Standard deviation of a normal distribution over its MAD."""
_MAX_CORRELATION = 0.7
"""Of neighbouring blocks; few blocks can't tell more of it from a drift."""
_PRIOR_COPIES = 2
"""Copies that the prior behind `aa_floor` weighs."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Centre and spread of one lane's samples, in their unit; None is unknown."""

    median: float | None
    mad: float | None
    """Median absolute deviation from the median, not normalised; unknown below two samples."""
    n: int


@dataclass(frozen=True, slots=True)
class PairedDiff:
    """time_b - time_a in seconds, with the ends of its interval, and both times; None is unknown."""

    delta_s: float | None
    delta_lo_s: float | None
    delta_hi_s: float | None
    a_s: float | None = None
    """Of the same pairs as the difference and the ratio, so that all of them agree."""
    b_s: float | None = None


def order(round_index: int, lanes: int) -> tuple[int, ...]:
    """The order in which `lanes` lanes are sampled in a round.

    Rounds 2k and 2k+1 are one block: the second runs the first backwards, so a linear drift cancels for
    every pair of lanes. Block k starts at the lane that is the digit sum of k in base `lanes` (generalised
    Thue-Morse): every lane comes first equally often, the drift's curvature cancels too, and no periodic
    disturbance stays in step with the blocks. Two lanes: AB BA, BA AB, BA AB, AB BA, ...
    ValueError without lanes or for a negative round.
    """
    if lanes < 1 or round_index < 0:
        raise ValueError(f"There is no round {round_index} of {lanes} lanes.")
    block, backwards = divmod(round_index, 2)
    first = _digit_sum(block, lanes) % lanes
    forward = tuple((first + i) % lanes for i in range(lanes))
    return forward[::-1] if backwards else forward


def summarize(samples: Samples) -> Summary:
    """Median and MAD; neither is known of nothing."""
    values = np.asarray(samples, dtype=np.float64)
    if values.size == 0:
        return Summary(None, None, 0)
    median = float(np.median(values))
    mad = float(np.median(np.abs(values - median))) if values.size > 1 else None
    return Summary(median, mad, int(values.size))


def undisturbed(passes: Samples) -> float:
    """The lower quartile of some passes' times: what interrupts a pass can only lengthen it."""
    ordered = sorted(float(time_s) for time_s in passes)
    return ordered[(len(ordered) - 1) // 4]


def paired(a: Samples, b: Samples, confidence: float = CONFIDENCE) -> Paired:
    """The effect of two lanes whose times in round i, in the order that `order` gives, are a[i] and b[i].

    Rounds that only one lane finished and the last round of an unfinished block are left out of the estimate.
    Never raises for what a window can hold: too few rounds or a time that is not positive give an infinite
    interval and the reason.
    """
    times_a, times_b = _rounds(a, b)
    rounds = len(times_a)
    if not (_all_positive(times_a) and _all_positive(times_b)):
        return Paired(None, -math.inf, math.inf, rounds, "a time is not a positive number")
    effects = np.log(times_a) - np.log(times_b)
    if rounds < MIN_ROUNDS:
        effect = float(np.median(effects)) if rounds else None
        reason = f"too few rounds: {rounds} of at least {MIN_ROUNDS}"
        return Paired(effect, -math.inf, math.inf, rounds, reason)
    effect, half_width = _interval(_pairs(effects), confidence)
    return Paired(effect, effect - half_width, effect + half_width, rounds)


def paired_difference(a: Samples, b: Samples, confidence: float = CONFIDENCE) -> PairedDiff:
    """b - a in seconds at the window's typical time, with the interval of `paired`.

    With g the median geometric mean of a round's two times, a = g exp(effect / 2), b = g exp(-effect / 2)
    and b - a = -2 g sinh(effect / 2): its sign, and whether its interval holds 0, agree with the effect's.
    """
    result = paired(a, b, confidence)
    if result.effect is None:
        return PairedDiff(None, None, None)
    times_a, times_b = _rounds(a, b)
    level_s = math.exp(float(np.median(np.log(times_a) + np.log(times_b))) / 2)
    ratio = exp_or_none(result.effect / 2)
    return PairedDiff(
        _difference(level_s, result.effect),
        _difference(level_s, result.hi),
        _difference(level_s, result.lo),
        level_s * ratio if ratio else None,
        level_s / ratio if ratio else None,
    )


def aa_floor(copies: Sequence[Paired], minimum: float) -> float:
    """The |log ratio| that independently prepared copies of one plan reach: no effect below it is real.

    The 99th percentile of |effect| between copies, which one to three copies can't show, so the largest of
    - `minimum` and 0.3 %;
    - the percentile of the effects seen;
    - the median upper end, |effect| + half width: what a typical pair of copies may have differed by;
    - a 99 % prediction of the next copy's |effect|. Placement effects are taken as normal with unknown
      variance, and `minimum` as the prediction before any copy was seen, a prior that weighs two copies
      (scaled inverse chi-squared). N copies then predict t sqrt((2 s^2 + sum of effect^2) / (2 + N)) with
      Student's t at 99 % and 2 + N degrees of freedom (Gelman et al., Bayesian Data Analysis, 2.6):
      3.4 |effect| for one loud copy, 2.6 times their root mean square for many. Without a prior one copy
      would ask for 64 |effect| and resolve nothing.
    With noise well below placement (simulated, floor 0.3 %): where 99 % of copies lie within 0.3 %, two
    copies of one plan are told apart in fewer than 1 % of windows from one copy on; where they spread over
    eight times that, in 13 % with one copy known, 4 % with three, 2 % with five, 1.2 % with twenty.
    Copies whose interval is infinite say nothing and are left out.
    """
    known = [(abs(c.effect), c.half_width) for c in copies if c.effect is not None and not c.reason]
    least = max(minimum, MIN_FLOOR)
    if not known:
        return least
    effects, half_widths = np.array(known).T
    prior_scale = least / student(0.99, _PRIOR_COPIES)
    weight = _PRIOR_COPIES + len(known)
    scale = math.sqrt((_PRIOR_COPIES * prior_scale**2 + float(np.sum(effects**2))) / weight)
    predicted = student(0.99, weight) * scale
    return max(least, float(np.quantile(effects, 0.99)), float(np.median(effects + half_widths)), predicted)


def same_within(copies: Sequence[Paired], minimum: float) -> tuple[float | None, str]:
    """The |log ratio| within which two plans of a window are the same, or None and why it is not known.

    `copies`: only those of this window. It is their `aa_floor`, if each was sampled for at least
    `MIN_ROUNDS_TO_STOP` rounds and is known to `COPIES_KNOWN`, or to half of `minimum`. Otherwise their noise
    would widen it, and a noisy window would call plans the same that are not.
    """
    known = [copy for copy in copies if copy.effect is not None and not copy.reason]
    if not known:
        return None, "no copy of a plan was measured in this window"
    rounds, half_width = min(copy.n for copy in known), max(copy.half_width for copy in known)
    if rounds < MIN_ROUNDS_TO_STOP:
        return None, f"copies were measured for {rounds} of at least {MIN_ROUNDS_TO_STOP} rounds"
    if half_width > copies_known(minimum):
        return None, f"what copies differ by is known to +-{percent(half_width)} only"
    return aa_floor(known, minimum), ""


def enough_for_one(samples: Samples) -> bool:
    """Whether the typical time of a single plan is known to 1 %, drift and correlation included.

    No verdict hangs on it: it may be asked from the first round that has an interval, and a device whose
    first rounds lie this close together needs none.
    """
    times = np.asarray(samples, dtype=np.float64)
    if not _all_positive(times):
        return False
    if len(times) >= STILL_ROUNDS and times.max() <= times.min() * (1 + STILL_SPREAD):
        return True
    if len(times) < MIN_ROUNDS:
        return False
    _, half_width = _interval(_pairs(np.log(times)), CONFIDENCE)
    return half_width <= ONE_PLAN_HALF_WIDTH


def _interval(blocks: Floats, confidence: float) -> tuple[float, float]:
    """Robust mean of a stationary series in time order, and the half width of its interval.

    Location: Huber's one-step winsorised mean, blocks clipped at 3 normalised MADs from the median.
    Spread: the clipped deviations over the unclipped share (the estimator's influence function), and of
    those the long-run variance, because n correlated blocks tell less than n independent ones: the mean
    square of the lowest cosine transforms, with Student's t at as many degrees of freedom (Mueller 2007;
    Lazarus, Lewis, Stock and Watson 2018), divided by the share that an AR(1) leaves in those frequencies
    of its spectrum at 0. Never less than independent blocks would have: few frequencies are small by
    chance often enough to be found by whoever looks after every round.
    Missed at 99 % (simulated): white noise 0.2 %; looked at after every round until narrow, 0.5 %; rounds
    with an autocorrelation of 0.5 or 0.7, 1.2 % and 2 %, in 40 rounds without stopping 0.8 % and 1.3 %.
    """
    n = len(blocks)
    centre = float(np.median(blocks))
    reach = _FENCE * _NORMAL_MAD * (1 + 1 / n) * float(np.median(np.abs(blocks - centre)))
    if reach == 0.0:
        # More than half of the blocks are equal: the MAD says nothing, so nothing is clipped.
        reach = math.inf
    clipped = np.clip(blocks, centre - reach, centre + reach)
    location = math.fsum(clipped) / n
    inside = int(np.count_nonzero(np.abs(blocks - centre) <= reach))
    deviations = (clipped - location) * (n / inside)

    frequencies = min(n // 2, math.isqrt(4 * n))
    slow = float(np.mean((_cosines(n, frequencies) @ deviations) ** 2))
    independent = float(deviations @ deviations) / (n - 1)
    share = _low_frequency_share(_correlation(deviations), n, frequencies)
    variance = max(slow, independent) / share
    return location, student(confidence, frequencies) * math.sqrt(variance / n)


@lru_cache(maxsize=4)
def _cosines(n: int, frequencies: int) -> Floats:
    """The lowest cosines of the DCT-II of n values, orthonormal, without the constant: [frequencies, n]."""
    j = np.arange(1, frequencies + 1)
    t = np.arange(n) + 0.5
    return np.cos(np.outer(j, t) * (math.pi / n)) * math.sqrt(2 / n)


def _correlation(deviations: Floats) -> float:
    """Between neighbours: what was seen, plus the bias 1/n of white noise, plus one standard error."""
    n = len(deviations)
    power = float(deviations @ deviations)
    if power == 0.0:
        return 0.0
    seen = float(deviations[1:] @ deviations[:-1]) / power
    return min(max(seen + 1 / n + 1 / math.sqrt(n), 0.0), _MAX_CORRELATION)


def _low_frequency_share(correlation: float, n: int, frequencies: int) -> float:
    """Mean spectrum of an AR(1) at the cosines' frequencies over its spectrum at 0; in (0, 1]."""
    angles = np.arange(1, frequencies + 1) * (math.pi / n)
    spectrum = 1 / (1 - 2 * correlation * np.cos(angles) + correlation**2)
    return float(np.mean(spectrum)) * (1 - correlation) ** 2


def _digit_sum(number: int, base: int) -> int:
    """0 in base 1, which has no digits but zeros."""
    total = 0
    while number and base > 1:
        number, digit = divmod(number, base)
        total += digit
    return total


def _rounds(a: Samples, b: Samples) -> tuple[Floats, Floats]:
    """The times of the rounds that both lanes finished."""
    rounds = min(len(a), len(b))
    return np.asarray(a, dtype=np.float64)[:rounds], np.asarray(b, dtype=np.float64)[:rounds]


def _pairs(rounds: Floats) -> Floats:
    """Means of consecutive pairs: [n] -> [n // 2]."""
    whole = len(rounds) // 2 * 2
    return (rounds[0:whole:2] + rounds[1:whole:2]) / 2


def _all_positive(times: Floats) -> bool:
    return bool(np.all(np.isfinite(times) & (times > 0)))


def _difference(level_s: float, effect: float) -> float | None:
    return -2 * level_s * math.sinh(effect / 2) if abs(effect) < LARGEST_EXPONENT else None
