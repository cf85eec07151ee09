"""Ceilings by name, and which of them a plan's math and launches may use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, Protocol

from gputop.plan.types import Math

Mode = Literal["stream", "graph", "pdl", "call"]
"""How launches reach the device; `call` is a function call of the cpu backend."""

PIPES: Mapping[Math, tuple[str, ...]] = {
    "fp32": ("fp32",),
    "tf32": ("tf32_mma", "tf32_wgmma", "tf32_tcgen05", "fp32"),
    "bf16": ("bf16_mma", "bf16_wgmma", "bf16_tcgen05", "tf32_mma", "tf32_wgmma", "tf32_tcgen05", "fp32"),
}
"""Ceilings that each math permits: a plan may always compute more exactly than it has to."""

WEIGHT_SHARE: Mapping[Math, float] = {"fp32": 1.0, "tf32": 1.0, "bf16": 0.5}
"""Stored weight bytes over those that `Work` counts in 4-byte words."""

LAUNCH_COSTS: Mapping[Mode, tuple[str, ...]] = {
    "stream": ("launch_queued", "launch_stream"),
    "graph": ("launch_dependent", "launch_graph"),
    "pdl": ("launch_pdl",),
    "call": ("call",),
}
"""Ceilings that price one launch; the first that was measured counts. The launches of a pass depend on
each other, so a dependent one is nearer to the truth than an empty one; and phases are timed with all of a
pass enqueued before it starts, so what the host takes to enqueue a launch is no part of their time."""


class Rates(Protocol):
    """Ceilings in B/s, FLOP/s or s: measured (`results.Ceilings`) or a datasheet's (`device.GpuModel`)."""

    def get(self, name: str, /) -> float | None: ...


def best_pipe(rates: Rates, math: Math) -> str | None:
    """Name of the fastest known pipe that `math` permits; None where none is known."""
    known = {pipe: rate for pipe in PIPES[math] if (rate := rates.get(pipe)) is not None}
    return max(known, key=lambda pipe: known[pipe], default=None)


def first_known(rates: Rates, names: Iterable[str]) -> float | None:
    """The first of `names` that is known."""
    return next((rate for name in names if (rate := rates.get(name)) is not None), None)


def over(amount: float | None, rate: float | None) -> float | None:
    """Seconds for `amount` at `rate`. Nothing takes no time, at whatever rate."""
    if amount == 0:
        return 0.0
    return None if amount is None or rate is None else amount / rate


def largest(*values: float | None) -> float | None:
    """The largest known value; None where none is known."""
    return max((value for value in values if value is not None), default=None)


def total(values: Iterable[float | None]) -> float | None:
    """The sum; None where one of them is unknown."""
    added = 0.0
    for value in values:
        if value is None:
            return None
        added += value
    return added
