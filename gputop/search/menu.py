"""Port 1: what may be proposed. Candidates that pass the hard constraints, enumerated at resource knees.

A kernel that divides its inner axis into parts changes what the busiest SM does only when the number of its
blocks there steps. Between two steps more parts are the same work on more SMs, so the most parts before each
step stand for all of them; and the fewest, which add up least. The plan's own kernel always stays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, log10

from gputop.plan.types import KernelChoice, PlanRequest
from gputop.results.search_space import SearchSpace, SiteSpace, SpaceCandidate

Table = Mapping[str, KernelChoice]
"""Site -> kernel."""
Cell = tuple[str, KernelChoice]
"""A kernel at a site."""


@dataclass(frozen=True, slots=True)
class Menu:
    """What a search chooses from, and what was left out on the way."""

    plan: str
    request: PlanRequest
    sites: tuple[SiteSpace, ...]
    """In pass order, each with the candidates at its knees."""
    able: Mapping[str, int]
    """Site -> candidates that passed the hard constraints, before the knees."""

    @property
    def start(self) -> dict[str, KernelChoice]:
        """The plan's own table."""
        return {site.site: site.own for site in self.sites}

    def at(self, site: str) -> SiteSpace:
        return next(space for space in self.sites if space.site == site)

    def candidate(self, cell: Cell) -> SpaceCandidate:
        return next(found for found in self.at(cell[0]).candidates if found.choice == cell[1])

    def cells(self) -> tuple[Cell, ...]:
        """Every candidate but the plan's own, in pass order."""
        return tuple(
            (site.site, candidate.choice)
            for site in self.sites
            for candidate in site.candidates
            if candidate.choice != site.own
        )

    def asking(self, table: Table) -> PlanRequest:
        """The plan with a table. Every site is named: a phase's entry would serve its other sites too."""
        uses = tuple((site.site, table[site.site]) for site in self.sites)
        named = {name for site in self.sites for name in (site.site, site.phase)}
        others = tuple(use for use in self.request.uses if use[0] not in named)
        return replace(self.request, uses=(*others, *uses))

    @property
    def digest(self) -> str:
        """Names the menu: a search goes on only with the one that it began with."""
        cells = ";".join(f"{site}:{choice}" for site, choice in self.cells())
        return hashlib.sha256(f"{self.plan}|{cells}".encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class JointSpace:
    """How many tables there are, as powers of ten: they are far too many to count."""

    offered: float
    """Of all kernels in all numbers of parts."""
    able: float
    """Of those that the hard constraints let stand."""
    left: float
    """Of those at knees."""
    most_of_a_site: int


def menu_of(space: SearchSpace, sm_count: int | None) -> Menu:
    """Return a space's candidates at their knees. Without a number of SMs all of them are kept."""
    sites = tuple(replace(site, candidates=at_knees(site, sm_count)) for site in space.sites)
    able = {site.site: len(site.candidates) for site in space.sites}
    return Menu(space.plan, space.request, sites, able)


def at_knees(site: SiteSpace, sm_count: int | None) -> tuple[SpaceCandidate, ...]:
    """Return the candidates of a site where a resource steps, in their order."""
    by_kernel: dict[str, list[SpaceCandidate]] = {}
    for candidate in site.candidates:
        by_kernel.setdefault(candidate.choice.kernel, []).append(candidate)
    kept = {
        candidate.choice for candidates in by_kernel.values() for candidate in _knees(candidates, sm_count)
    }
    return tuple(found for found in site.candidates if found.choice in kept or found.choice == site.own)


def joint_space(menu: Menu) -> JointSpace:
    """Return the size of the space before the constraints, after them, and at knees."""
    return JointSpace(
        _power(site.offered for site in menu.sites),
        _power(menu.able.values()),
        _power(len(site.candidates) for site in menu.sites),
        max((len(site.candidates) for site in menu.sites), default=0),
    )


def _knees(candidates: Sequence[SpaceCandidate], sm_count: int | None) -> Iterable[SpaceCandidate]:
    """Of one kernel in several numbers of parts."""
    known = all(found.blocks is not None for found in candidates)
    if len(candidates) < 3 or sm_count is None or not known:
        return candidates
    ordered = sorted(candidates, key=lambda found: found.choice.splits or 1)
    fullest: dict[int, SpaceCandidate] = {}
    for found in ordered:
        fullest[ceil((found.blocks or 0) / sm_count)] = found
    return {ordered[0].choice: ordered[0], **{found.choice: found for found in fullest.values()}}.values()


def _power(sizes: Iterable[int]) -> float:
    return sum(log10(size) for size in sizes if size)
