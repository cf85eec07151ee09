"""Ceilings by name, and which of them a plan's math and launches may use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from gputop.plan.types import Math

PIPES: Mapping[Math, tuple[str, ...]] = {
    "fp32": ("fp32",),
    "tf32": ("tf32_mma", "tf32_wgmma", "tf32_tcgen05", "fp32"),
    "bf16": ("bf16_mma", "bf16_wgmma", "bf16_tcgen05", "tf32_mma", "tf32_wgmma", "tf32_tcgen05", "fp32"),
}
"""Ceilings that each math permits: a plan may always compute more exactly than it has to."""

STORED_SHARE: Mapping[Math, float] = {"fp32": 1.0, "tf32": 1.0, "bf16": 0.5}
"""Bytes of weights and activations as stored over those that `Work` counts in 4-byte words."""


class Rates(Protocol):
    """Ceilings in B/s, FLOP/s or s: measured (`results.Ceilings`) or a datasheet's (`device.GpuModel`)."""

    def get(self, name: str, /) -> float | None: ...


@dataclass(frozen=True, slots=True)
class RatesAtClock:
    """Ceilings of arithmetic as they are at another clock than the one that they were measured at."""

    rates: Rates
    clock_hz: Mapping[str, float]
    """Of each ceiling in FLOP/s whose clock is known: power may have held it below that of a short pass."""
    now_hz: float

    def get(self, name: str, /) -> float | None:
        value, then_hz = self.rates.get(name), self.clock_hz.get(name)
        return value if value is None or not then_hz else value * self.now_hz / then_hz


def best_pipe(rates: Rates, math: Math) -> str | None:
    """Name of the fastest known pipe that `math` permits; None where none is known."""
    known = {pipe: rate for pipe in PIPES[math] if (rate := rates.get(pipe)) is not None}
    return max(known, key=lambda pipe: known[pipe], default=None)


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
