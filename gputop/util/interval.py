"""A figure with the ends of its interval: what is shown, turned round and composed as one."""

from __future__ import annotations

from dataclasses import dataclass

FARTHEST = 1e3
"""An end that is farther from its ratio than this factor says nothing."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A ratio or a difference, and the ends of its interval; None is unknown."""

    value: float | None
    lo: float | None = None
    hi: float | None = None

    @property
    def is_known(self) -> bool:
        """Whether it has both ends."""
        return self.lo is not None and self.hi is not None

    @property
    def is_uninformative(self) -> bool:
        """Whether an end of a ratio lies farther from it than `FARTHEST`."""
        if self.value is None or self.lo is None or self.hi is None:
            return False
        return self.value > self.lo * FARTHEST or self.hi > self.value * FARTHEST

    @property
    def inverse(self) -> Interval:
        """The ratio the other way round."""
        return Interval(_inverse(self.value), _inverse(self.hi), _inverse(self.lo))

    @property
    def negated(self) -> Interval:
        """The difference the other way round."""
        return Interval(_negated(self.value), _negated(self.hi), _negated(self.lo))

    def over(self, other: Interval) -> Interval:
        """This ratio over another: as wide as both allow, and without ends if one of the four is unknown."""
        value = self.value / other.value if self.value is not None and other.value else None
        if self.lo is None or self.hi is None or not other.lo or not other.hi:
            return Interval(value)
        return Interval(value, self.lo / other.hi, self.hi / other.lo)


def _inverse(value: float | None) -> float | None:
    return 1 / value if value else None


def _negated(value: float | None) -> float | None:
    return None if value is None else -value
