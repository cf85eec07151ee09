"""Frozen records for rungs, what was predicted of them, and toggles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from gputop.util.interval import Interval


@dataclass(frozen=True, slots=True)
class Prediction:
    """A rung's gain over the rung before, written down before it was measured."""

    gain: float
    """Time before / time after, of the whole pass; of one sequence where the batch changes."""
    lo: float
    hi: float
    source: Literal["sass", "floor", "phase table", "intuition"]
    first: Prediction | None = None
    """What was written down first, if the prediction was revised later."""
    revised: str = ""
    """When that was, as in `revised when ...`."""

    @property
    def interval(self) -> Interval:
        return Interval(self.gain, self.lo, self.hi)

    def holds(self, gain: Interval) -> bool | None:
        """Return whether a measured gain is as predicted; None if its 99 % interval straddles a bound.

        Without an interval the gain alone decides; None without a gain.
        """
        low, high = (gain.value if end is None else end for end in (gain.lo, gain.hi))
        if low is None or high is None:
            return None
        if self.lo <= low and high <= self.hi:
            return True
        return False if high < self.lo or self.hi < low else None


RungKind = Literal["ladder", "oracle", "peer"]
Feature = Literal["fusion", "flash", "graph"]
"""What a framework does of its own accord: pointwise work fused, attention in one kernel, a graph a pass."""


@dataclass(frozen=True, slots=True)
class Rung:
    """A named plan, written as its change against another rung."""

    id: str
    number: int
    """Order in the ladder. A baseline shares the number of the rung that it is compared with."""
    backend: str
    idea: str
    before: str | None
    """The rung it changes; None for the first of its backend."""
    fields: tuple[tuple[str, Any], ...] = ()
    use: tuple[tuple[str, str | tuple[str, ...]], ...] = ()
    """site or phase -> kernel, or several of which the first that device, math and layout allow is taken.
    A phase's entry serves its `@1`, `kv` and `q@1` sites too."""
    kind: RungKind = "ladder"
    prediction: Prediction | None = None
    on_request: bool = False
    """Takes minutes to prepare: measured only where it is asked for by name."""
    features: tuple[Feature, ...] = ()
    """Of a peer: what its time is forecast from."""


@dataclass(frozen=True, slots=True)
class Toggle:
    """One field of the plan other than dispatch, flipped by name."""

    name: str
    field: str
    values: tuple[str, ...]
    """As written on the command line; empty: a positive integer."""
    doc: str
    backends: tuple[str, ...]
