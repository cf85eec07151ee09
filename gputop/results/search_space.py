"""What a search may choose from: every kernel that can serve each site of a plan, and what is known of each
before it is timed. Frozen records; None is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gputop.plan.types import KernelChoice, PlanRequest

Bound = Literal["reach", "floor"]
"""What an efficiency is of: the least time of launches that depend on each other, or physics alone."""


@dataclass(frozen=True, slots=True)
class Features:
    """What the launch that does a candidate's work looks like on this device."""

    occupancy: float | None = None
    """Warps that an SM holds of it / warps that an SM can hold."""
    waves: float | None = None
    """Blocks / blocks that the whole device holds at once."""
    tile_fill: float | None = None
    """Outputs asked for / outputs of all tiles, padding included."""
    splits: int | None = None
    """Parts into which it divides the inner axis; 1 if it divides nothing."""
    bytes_in_flight: float | None = None
    """That the whole device asks for before it waits."""


FEATURES = ("occupancy", "waves", "tile_fill", "splits", "bytes_in_flight")


@dataclass(frozen=True, slots=True)
class SpaceCandidate:
    """A kernel that the hard constraints let stand at a site."""

    choice: KernelChoice
    library: bool = False
    model_s: float | None = None
    """What the term model says of all instances of the site in a pass."""
    terms: tuple[tuple[str, float], ...] = ()
    """Term -> seconds, of the same."""
    features: Features = Features()
    blocks: int | None = None
    """Of the launch that does the work."""


@dataclass(frozen=True, slots=True)
class SiteSpace:
    """All that can stand at one site."""

    site: str
    phase: str
    count: int
    """Instances in a pass."""
    own: KernelChoice
    """The plan's."""
    candidates: tuple[SpaceCandidate, ...]
    """The plan's own among them."""
    offered: int
    """Kernels times numbers of parts, before any constraint."""
    refused: tuple[tuple[str, str], ...] = ()
    """Kernel -> why it can't serve the site, in any number of parts."""
    rewrites: tuple[str, ...] = ()
    """Kernels that would take other sites along: they change what a launch means, and are no setting."""
    bound_s: float | None = None
    """The least that all instances of the site can take."""
    bound: Bound = "floor"


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """The sites of one plan, in pass order, without those that a fused kernel serves."""

    plan: str
    """Its word."""
    request: PlanRequest
    sites: tuple[SiteSpace, ...]

    def at(self, site: str) -> SiteSpace:
        return next(space for space in self.sites if space.site == site)
