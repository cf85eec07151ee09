"""Comparisons of the same two plans in several windows, as one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from gputop.perf.student import student
from gputop.perf.verdicts import CONFIDENCE, Floor, Paired, verdict
from gputop.plan.types import Verdict
from gputop.results.records import Comparison, Delta


def pool(comparisons: Sequence[Comparison]) -> Comparison:
    """One comparison with every window's evidence; at least one is needed.

    Effects log(a / b) are averaged. Windows agree where chi^2, their squared distances from the mean over the
    variances that their own intervals say, is below its 95th percentile. The mean is then weighted by those
    variances, and its interval widened by Birge's ratio, sqrt(chi^2 / (n - 1)), where that is above 1.

    Windows that disagree differ by more than any of them can say. There, and from `MANY` windows on in any
    case, weights are 1 / (variance + between) with `between` by DerSimonian and Laird (1986, Controlled
    Clinical Trials 7), and the half width is Student's t with n - 1 degrees of freedom times the standard
    error that the weighted spread gives (Hartung and Knapp 2001, Statistics in Medicine 20): 64 of them for
    two windows, 9.9 for three, 4.6 for five. It is never narrower than that of windows that agree. The
    status says where they disagree. Windows that could not tell are left out and not counted.

    At 99 % the interval holds the truth (simulated, 2, 3, 5 and 10 windows) in 99.3 % where windows differ by
    nothing else than they say; in 96, 96, 97 and 98 % where by as much again, which few windows do not show;
    in 88, 98, 99 and 99 % where by ten times as much. Birge's ratio alone would in 77, 88, 94 and 97 %.
    """
    first = comparisons[0]
    if len(comparisons) == 1:
        return first
    told = [comparison for comparison in comparisons if _tells(comparison)]
    windows = sum(comparison.windows for comparison in told or comparisons)
    deltas = _pool_each([comparison.deltas for comparison in comparisons])
    sites = _pool_each([comparison.sites for comparison in comparisons])
    return Comparison(first.plan_a, first.plan_b, windows, deltas, sites)


def turned(comparison: Comparison) -> Comparison:
    """The same comparison from the second plan to the first."""
    return Comparison(
        comparison.plan_b,
        comparison.plan_a,
        comparison.windows,
        tuple(map(_turned, comparison.deltas)),
        tuple(map(_turned, comparison.sites)),
    )


def _turned(delta: Delta) -> Delta:
    difference, ratio = delta.delta_interval_s.negated, delta.ratio_interval.inverse
    return replace(
        delta,
        a_s=delta.b_s,
        b_s=delta.a_s,
        delta_s=difference.value,
        delta_lo_s=difference.lo,
        delta_hi_s=difference.hi,
        ratio=ratio.value,
        ratio_lo=ratio.lo,
        ratio_hi=ratio.hi,
        verdict=_OPPOSITE.get(delta.verdict, delta.verdict),
    )


_OPPOSITE: Mapping[Verdict, Verdict] = {"FASTER": "SLOWER", "SLOWER": "FASTER"}


def _pool_each(windows: Sequence[Sequence[Delta]]) -> tuple[Delta, ...]:
    """Pool each phase or site over all windows."""
    found: dict[str, list[Delta]] = {}
    for deltas in windows:
        for delta in deltas:
            found.setdefault(delta.phase, []).append(delta)
    return tuple(_pool(same) for same in found.values())


def _pool(deltas: Sequence[Delta]) -> Delta:
    """One phase over all windows."""
    known = [(delta, *interval) for delta in deltas if (interval := _interval(delta)) is not None]
    if not known:
        return deltas[-1]
    effects, variances = [e for _, e, _ in known], [(h / _INTERVAL_IN_DEVIATIONS) ** 2 for _, _, h in known]
    mean = _pooled_mean(effects, variances)
    # Copies may differ by the floor in every window, so their weighted mean may by the floors' mean.
    floor = _mean([delta.aa_floor for delta, _, _ in known], mean.weights)
    alike = [(delta.same_within, weight) for (delta, _, _), weight in zip(known, mean.weights, strict=True)]
    told = [(within, weight) for within, weight in alike if within is not None]
    same = min(floor, _mean(*zip(*told, strict=True))) if told else None
    effect, half_width = mean.effect, mean.half_width
    samples = sum(delta.samples for delta, _, _ in known)
    result = Paired(effect, effect - half_width, effect + half_width, samples)
    outcome, why = verdict(result, Floor(floor, same, NO_COPIES))
    apart = f"{len(known)} windows disagree by more than their intervals" if mean.apart else ""
    level_s = _level_s([delta for delta, _, _ in known])
    return Delta(
        phase=deltas[0].phase,
        a_s=None if level_s is None else level_s * math.exp(effect / 2),
        b_s=None if level_s is None else level_s * math.exp(-effect / 2),
        delta_s=_difference_s(level_s, result.effect),
        delta_lo_s=_difference_s(level_s, result.hi),
        delta_hi_s=_difference_s(level_s, result.lo),
        ratio=result.ratio,
        ratio_lo=result.ratio_lo,
        ratio_hi=result.ratio_hi,
        samples=samples,
        aa_floor=floor,
        verdict=outcome,
        status="; ".join(part for part in (why, apart) if part),
        same_within=same,
    )


NO_COPIES = "no window knows well what copies of one plan differ by"
_INTERVAL_IN_DEVIATIONS = 2.576
"""Half width of a 99 % interval over the standard deviation of a normal distribution."""
MANY = 10
"""From so many windows on, what they differ by is taken into account whether it is plain or not."""
_95_PERCENT = 1.645
"""Standard deviations above its mean below which a normal distribution lies in 95 %."""


@dataclass(frozen=True, slots=True)
class _Mean:
    """Of several windows' effects."""

    effect: float
    half_width: float
    weights: tuple[float, ...]
    apart: bool
    """Whether the windows disagree."""


def _pooled_mean(effects: Sequence[float], variances: Sequence[float]) -> _Mean:
    """See `pool`."""
    degrees = len(effects) - 1
    weights = tuple(1.0 / variance for variance in variances)
    effect = _mean(effects, weights)
    squares = [(e - effect) ** 2 for e in effects]
    chi2 = sum(w * square for w, square in zip(weights, squares, strict=True))
    agree = degrees == 0 or chi2 <= _chi_squared_95(degrees)
    if agree and len(effects) < MANY:
        birge = math.sqrt(max(1.0, chi2 / degrees)) if degrees else 1.0
        return _Mean(effect, _INTERVAL_IN_DEVIATIONS / math.sqrt(sum(weights)) * birge, weights, False)
    narrowest = _INTERVAL_IN_DEVIATIONS / math.sqrt(sum(weights))
    excess = max(0.0, chi2 - degrees)
    between = excess * sum(weights) / (sum(weights) ** 2 - sum(weight**2 for weight in weights))
    weights = tuple(1.0 / (variance + between) for variance in variances)
    effect = _mean(effects, weights)
    variance = _mean([(e - effect) ** 2 for e in effects], weights) / degrees
    half_width = student(CONFIDENCE, degrees) * math.sqrt(variance)
    return _Mean(effect, max(half_width, narrowest), weights, not agree)


def _chi_squared_95(degrees: int) -> float:
    """95th percentile (Wilson and Hilferty 1931, PNAS 17); 2 % low for one degree, less for more."""
    part = 2.0 / (9.0 * degrees)
    return degrees * (1.0 - part + _95_PERCENT * math.sqrt(part)) ** 3


def _mean(values: Sequence[float], weights: Sequence[float]) -> float:
    return sum(w * value for w, value in zip(weights, values, strict=True)) / sum(weights)


def _tells(comparison: Comparison) -> bool:
    """Whether it says anything of the whole pass."""
    device = comparison.get("device")
    return device is not None and _interval(device) is not None


def _interval(delta: Delta) -> tuple[float, float] | None:
    """Effect and half width, or None where the window could not tell."""
    if delta.ratio is None or not delta.ratio_lo or delta.ratio_hi is None:
        return None
    half_width = (math.log(delta.ratio_hi) - math.log(delta.ratio_lo)) / 2
    return (math.log(delta.ratio), half_width) if half_width > 0 else None


def _level_s(deltas: Sequence[Delta]) -> float | None:
    """Typical geometric mean of the two times."""
    levels = [math.sqrt(d.a_s * d.b_s) for d in deltas if d.a_s is not None and d.b_s is not None]
    return median(levels) if levels else None


def _difference_s(level_s: float | None, effect: float | None) -> float | None:
    """b - a of two times with this geometric mean and this log ratio."""
    return None if level_s is None or effect is None else -2 * level_s * math.sinh(effect / 2)
