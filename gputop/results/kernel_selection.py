"""Which kernel is best at each site of a plan: candidates paired with the plan's own, and what follows.

A ratio is always time of the plan's own kernel over time of the candidate. Candidates of one site may come
from several windows: they are compared through the plan's own kernel, which ran in each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from gputop.plan.types import Verdict
from gputop.results.records import Delta, DeviceFacts

SCHEMA_ROUTING = "gputop.routing/1"

Standing = Literal["winner", "tie", ""]


@dataclass(frozen=True, slots=True)
class Route:
    """One kernel at one site; None is unknown."""

    site: str
    kernel: str
    library: bool
    incumbent: bool
    """Whether it is the plan's own."""
    time_s: float | None = None
    """In the pass, all instances of the site."""
    incumbent_s: float | None = None
    """The plan's own kernel in the same window."""
    ratio: float | None = None
    ratio_lo: float | None = None
    ratio_hi: float | None = None
    aa_floor: float | None = None
    verdict: Verdict | None = None
    standing: Standing = ""
    status: str = ""

    def measured(self, delta: Delta) -> Route:
        """This candidate with what its window said."""
        return replace(
            self,
            time_s=delta.b_s,
            incumbent_s=delta.a_s,
            ratio=delta.ratio,
            ratio_lo=delta.ratio_lo,
            ratio_hi=delta.ratio_hi,
            aa_floor=delta.aa_floor,
            verdict=delta.verdict,
            status=delta.status,
        )


@dataclass(frozen=True, slots=True)
class Routing:
    """Every candidate at every site of one plan."""

    time_utc: str
    device: DeviceFacts
    workload: str
    plan: str
    routes: tuple[Route, ...]
    """Site by site in pass order, the plan's own kernel first."""

    def sites(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(route.site for route in self.routes))

    def at(self, site: str) -> tuple[Route, ...]:
        return tuple(route for route in self.routes if route.site == site)


def judged(routes: Sequence[Route]) -> tuple[Route, ...]:
    """The routes of one site with their standing: the fastest that is known to beat the plan's own wins, else
    the plan's own. What differs from the winner by no more than two copies of one plan do is a tie."""
    best = max(
        (route for route in routes if route.verdict == "FASTER" and route.ratio),
        key=lambda route: route.ratio or 0.0,
        default=next((route for route in routes if route.incumbent), None),
    )
    return tuple(replace(route, standing=_standing(route, best)) for route in routes)


def headroom(routes: Sequence[Route]) -> float | None:
    """Best own time / best library time of one site: above 1 the library is faster. None without both."""
    own, library = best_of(routes, library=False), best_of(routes, library=True)
    if own is None or library is None or not own.ratio or not library.ratio:
        return None
    return library.ratio / own.ratio


def best_of(routes: Sequence[Route], *, library: bool) -> Route | None:
    """The fastest of ours, or of the library's, where one was timed."""
    timed = [route for route in routes if route.library == library and route.ratio]
    return max(timed, key=lambda route: route.ratio or 0.0, default=None)


def _standing(route: Route, best: Route | None) -> Standing:
    if route is best:
        return "winner"
    if best is None or best.incumbent:
        return "tie" if route.verdict == "SAME" else ""
    if not route.ratio or not best.ratio:
        return ""
    return "tie" if math.log(best.ratio / route.ratio) <= (best.aa_floor or 0.0) else ""
