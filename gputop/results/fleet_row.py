"""The record behind `gputop.fleet/1`: one figure of one device of a fleet, or of all of one model."""

from __future__ import annotations

from dataclasses import dataclass

from gputop.util.interval import Interval

SCHEMA_FLEET = "gputop.fleet/1"


@dataclass(frozen=True, slots=True)
class FleetRow:
    """One figure of one device, or of all devices of one model."""

    time_utc: str
    number: int | None
    """The device's; None: pooled."""
    host: str | None
    device: str
    driver: str | None
    devices: int
    """How many the figure is of."""
    name: str
    """A rung, a ceiling, or a plan and the one that it was paired with."""
    before: str | None = None
    """What `ratio` is against."""
    value: float | None = None
    unit: str | None = None
    ratio: float | None = None
    """Time of `before` / time of this one, with its 99 % interval."""
    ratio_lo: float | None = None
    ratio_hi: float | None = None
    verdict: str | None = None
    gate: str | None = None
    gate_error: float | None = None
    status: str | None = None

    @property
    def ratio_interval(self) -> Interval:
        return Interval(self.ratio, self.ratio_lo, self.ratio_hi)
