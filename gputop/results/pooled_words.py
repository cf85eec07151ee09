"""What a pair's windows say together, in the same words on the screen and in tables."""

from __future__ import annotations

from gputop.results.records import Comparison, Pooled
from gputop.util.units import ratio_within


def pooled_words(pooled: Pooled | None) -> str:
    """Return `1.002× [1.001, 1.003], FASTER in 14 windows of 3 processes since 2026-11-30, 1204 rounds`.

    Nothing if the window on show is the only one.
    """
    if pooled is None or pooled.comparison.windows < 2:
        return ""
    device = pooled.comparison.get("device")
    if device is None or device.ratio is None:
        return ""
    ratio = ratio_within(device.ratio_interval)
    processes = f" of {pooled.units} processes" if pooled.units > 1 else " of one process"
    told = f"{ratio}, {device.verdict} in {pooled.comparison.windows} windows{processes}"
    why = f": {device.status}" if device.status else ""
    return f"{told} since {pooled.since_utc[:10]}, {device.samples} rounds{why}"


def extent_words(comparison: Comparison) -> str:
    """Return `3 windows, 120 rounds`: what an interval rests on."""
    device = comparison.get("device")
    windows = f"{comparison.windows} window{'' if comparison.windows == 1 else 's'}"
    return windows if device is None else f"{windows}, {device.samples} rounds"
