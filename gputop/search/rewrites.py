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
    """The way from the start to the champion, in logarithms of time: both parts add up to the whole."""

    start_s: float
    found_s: float
    champion_s: float

    @property
    def parameters(self) -> float | None:
        """Share of the way that the search went; None if the champion is no faster than the start."""
        return self._share(self.start_s, self.found_s)

    @property
    def rewrites(self) -> float | None:
        """Share of the way that is left to rewrites."""
        return self._share(self.found_s, self.champion_s)

    def _share(self, before_s: float, after_s: float) -> float | None:
        whole = log(self.start_s / self.champion_s)
        return log(before_s / after_s) / whole if whole > 0 else None
