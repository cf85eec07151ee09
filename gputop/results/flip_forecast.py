"""What the model expects of changes that were not measured. An estimate: never shown without its name."""

from __future__ import annotations

from dataclasses import dataclass

from gputop.util.interval import Interval


@dataclass(frozen=True, slots=True)
class FlipForecast:
    """One change of a plan that was not measured."""

    flip: str
    """`pdl=off`"""
    plan: str
    """The plan string after it."""
    after_s: float
    """The pass after it, s on the device."""
    ratio: float
    """Time of the plan before / time after: above 1, the change wins."""
    lo: float | None = None
    hi: float | None = None
    """Where the measured ratio lay in four of five steps that the model can be held against; None if there
    are too few of those."""

    @property
    def ratio_interval(self) -> Interval:
        return Interval(self.ratio, self.lo, self.hi)


@dataclass(frozen=True, slots=True)
class FlipForecasts:
    """The changes of one plan."""

    plan: str
    items: tuple[FlipForecast, ...]
    steps: int
    """Measured steps of the same recording behind the intervals."""

    def of(self, flip: str) -> FlipForecast | None:
        return next((item for item in self.items if item.flip == flip), None)
