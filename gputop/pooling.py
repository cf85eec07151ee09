"""Comparisons of the same two plans in several windows, as one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from gputop.results import Comparison, Delta
from gputop.stats import Paired, verdict


def pool(comparisons: Sequence[Comparison]) -> Comparison:
    """One comparison with every window's evidence; at least one is needed.

    Effects log(a / b) are averaged with weights 1 / half_width^2. Where the windows disagree by more than
    their intervals allow, the pooled interval grows by Birge's ratio, sqrt(chi^2 / (n - 1)) (Particle Data
    Group, Review of Particle Physics, section 5.2.2). Windows that could not tell are left out.
    """
    first = comparisons[0]
    if len(comparisons) == 1:
        return first
    windows = sum(comparison.windows for comparison in comparisons)
    deltas = _pool_each([comparison.deltas for comparison in comparisons])
    sites = _pool_each([comparison.sites for comparison in comparisons])
    return Comparison(first.plan_a, first.plan_b, windows, deltas, sites)


def _pool_each(windows: Sequence[Sequence[Delta]]) -> tuple[Delta, ...]:
    """Each phase or site over all windows."""
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
    weights = [1.0 / half_width**2 for _, _, half_width in known]
    # Copies may differ by the floor in every window, so their weighted mean may by the floors' mean.
    floor = sum(w * d.aa_floor for w, (d, _, _) in zip(weights, known, strict=True)) / sum(weights)
    effect = sum(w * e for w, (_, e, _) in zip(weights, known, strict=True)) / sum(weights)
    half_width = 1.0 / math.sqrt(sum(weights))
    if len(known) > 1:
        spread = sum(((e - effect) / h) ** 2 for _, e, h in known) * _INTERVAL_IN_DEVIATIONS**2
        half_width *= max(1.0, math.sqrt(spread / (len(known) - 1)))
    samples = sum(delta.samples for delta in deltas)
    result = Paired(effect, effect - half_width, effect + half_width, samples)
    outcome, why = verdict(result, floor)
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
        status=why,
    )


_INTERVAL_IN_DEVIATIONS = 2.576
"""Half width of a 99 % interval over the standard deviation of a normal distribution."""


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
