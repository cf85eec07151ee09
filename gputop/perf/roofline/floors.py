"""The least time physics allows for some work, and how near a measured time comes to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from gputop.perf.roofline.peaks import STORED_SHARE, Rates, best_pipe, over, total
from gputop.plan.types import Math
from gputop.plan.work import Work
from gputop.util.units import seconds


@dataclass(frozen=True, slots=True)
class Floor:
    """The least time for some work, whatever the code."""

    compute_s: float | None
    dram_s: float | None
    value_s: float | None
    """The larger of the two; None unless both are known."""
    term: str | None
    """Which it is: `compute` or `dram`."""


class Efficiency(NamedTuple):
    """Floor over time, never clamped."""

    value: float | None
    note: str
    """Empty, or `over floor` with the likely causes."""


OVER_FLOOR = (
    "the clock was above that of the ceilings, weights stayed in the L2 cache,"
    " a ceiling was measured too low, or the work is counted too high"
)
"""What puts a floor above a time, besides what the time leaves out."""


def compulsory_bytes(work: Work, l2_bytes: int | None, *, count: int, math: Math = "fp32") -> float:
    """DRAM bytes that no kernel avoids: weights, and activations where one instance's exceed the L2.

    `work` is of all `count` instances. With `l2_bytes` unknown activations are left out: a floor
    may be too low, never too high.
    """
    weights = work.weight_bytes * STORED_SHARE[math]
    activations = (work.in_bytes + work.out_bytes) * STORED_SHARE[math]
    spilled = l2_bytes is not None and activations / max(count, 1) > l2_bytes
    return weights + (activations if spilled else 0.0)


def touched_bytes(work: Work, math: Math = "fp32") -> float:
    """Weights and activations, each byte once."""
    return (work.weight_bytes + work.in_bytes + work.out_bytes) * STORED_SHARE[math]


def floor(work: Work, rates: Rates, math: Math, l2_bytes: int | None, *, count: int) -> Floor:
    """max(compute, dram) of a phase's work, on the best pipe that `math` permits.

    `work` is of all `count` instances in one pass; `l2_bytes` is the device's last cache.
    """
    pipe = best_pipe(rates, math)
    compute_s = over(work.flops, rates.get(pipe) if pipe else None)
    dram_bytes = compulsory_bytes(work, l2_bytes, count=count, math=math)
    return _larger(compute_s, over(dram_bytes, rates.get("dram_read")))


def device_floor(floors: Iterable[Floor]) -> Floor:
    """max(sum of compute, sum of dram): what a pass could reach whose phases overlap perfectly."""
    phases = tuple(floors)
    return _larger(total(phase.compute_s for phase in phases), total(phase.dram_s for phase in phases))


def sum_floor(floors: Iterable[Floor]) -> float | None:
    """The phases' floors added, seconds: what a pass could reach one phase after the other."""
    return total(phase.value_s for phase in floors)


def efficiency(floor_s: float | None, time_s: float | None, overlap_s: float | None = None) -> Efficiency:
    """Floor over time; above 1 with a note, since then the floor or the time is not what it seems.

    `overlap_s`: what ran beside the launch before and is no part of `time_s`; None where that is not known.
    """
    if floor_s is None or not time_s:
        return Efficiency(None, "")
    value = floor_s / time_s
    return Efficiency(value, _over_floor(floor_s, time_s, overlap_s or 0.0) if value > 1 else "")


def _over_floor(floor_s: float, time_s: float, overlap_s: float) -> str:
    """The causes are guessed at only where what ran beside the launch before is not enough of one."""
    if not overlap_s:
        return f"over floor: {OVER_FLOOR}"
    beside = f"over floor: {seconds(overlap_s)} of it ran beside the launch before, no part of this time"
    return beside if floor_s <= time_s + overlap_s else f"{beside}; beyond that {OVER_FLOOR}"


def _larger(compute_s: float | None, dram_s: float | None) -> Floor:
    if compute_s is None or dram_s is None:
        return Floor(compute_s, dram_s, None, None)
    return Floor(compute_s, dram_s, max(compute_s, dram_s), "compute" if compute_s > dram_s else "dram")
