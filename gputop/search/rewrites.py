"""Port 5: what no setting contains. A hook that is left empty.

Folding a layernorm into the next weights, attention that never stores its scores, a pass captured as a graph,
a launch that begins before the one ahead of it ends: these change what a program means, and no menu of
settings holds them. They are left to people. Whoever has an idea that a program can try puts it into
`REWRITES`: the search offers it nothing, and asks only what it makes of a plan.

The ladder's rungs are the rewrites that people found. `owned` says how much of the way to a champion is
theirs, and how much the search's parameters went.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Protocol

from gputop.plan.types import PlanRequest


class Rewrite(Protocol):
    """An idea that turns one plan into another that means the same."""

    name: str

    def propose(self, request: PlanRequest) -> PlanRequest | None:
        """Return the plan rewritten, or None if the idea does not apply to it."""


REWRITES: tuple[Rewrite, ...] = ()
"""Empty on purpose: how far do settings alone go?"""


@dataclass(frozen=True, slots=True)
class Owned:
    """The way from the start to a champion, in logarithms of time: the two parts add up to the whole."""

    found: float
    """Time of the start / time with the found table, paired in one window."""
    champion: float
    """Time of the start / time of the champion, paired in one window."""

    @property
    def parameters(self) -> float | None:
        """Share of the way that the search went; None if the champion is no faster than the start."""
        return log(self.found) / log(self.champion) if self.champion > 1 else None

    @property
    def rewrites(self) -> float | None:
        """Share of the way that is left to rewrites; below 0 if the found table is faster."""
        return None if self.parameters is None else 1 - self.parameters
