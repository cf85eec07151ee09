"""A comparison of two plans in one sentence."""

from __future__ import annotations

from gputop.perf import verdicts
from gputop.results.records import Comparison
from gputop.util.units import ratio_within, seconds


def sentence(comparison: Comparison) -> str:
    """The whole pass in words, always from the first plan to the second."""
    delta = comparison.get("device")
    names = f"{comparison.plan_a} -> {comparison.plan_b}"
    if delta is None or delta.ratio is None:
        return f"{names}: nothing measured of both."
    ratio = ratio_within(delta.ratio_interval)
    why = f": {delta.status}" if delta.status else ""
    floor = verdicts.floor_words(delta.aa_floor)
    aside = "" if floor in why else f" ({floor})"
    return f"{names}: {seconds(delta.a_s)} -> {seconds(delta.b_s)}, {ratio}, {delta.verdict}{why}{aside}"
