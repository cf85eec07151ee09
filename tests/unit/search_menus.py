"""Menus of made-up sites for tests of the search, and hypothesis strategies that draw them."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st

from gputop.plan.types import KernelChoice, PlanRequest
from gputop.results.search_space import Features, SearchSpace, SiteSpace, SpaceCandidate
from gputop.search.menu import Cell, Menu, menu_of
from gputop.search.simulated import CellTime

SMS = 132


def site_space(name: str, times_s: Mapping[str, float], bound_s: float = 1e-6) -> SiteSpace:
    """A site whose candidates are modelled as they take; the first one is the plan's own."""
    candidates = tuple(SpaceCandidate(KernelChoice(kernel), model_s=time) for kernel, time in times_s.items())
    return SiteSpace(
        site=name,
        phase=name,
        count=1,
        own=candidates[0].choice,
        candidates=candidates,
        offered=len(candidates),
        bound_s=bound_s,
    )


def menu(times_s: Mapping[str, Mapping[str, float]]) -> Menu:
    """Site -> kernel -> seconds."""
    sites = tuple(site_space(name, kernels) for name, kernels in times_s.items())
    return menu_of(SearchSpace("start", PlanRequest("start"), sites), SMS)


def cell_times(times_s: Mapping[str, Mapping[str, float]], spread: float) -> dict[Cell, CellTime]:
    """What a device takes for each cell."""
    return {
        (site, KernelChoice(kernel)): CellTime(time_s, spread)
        for site, kernels in times_s.items()
        for kernel, time_s in kernels.items()
    }


@st.composite
def spaces(draw: st.DrawFn) -> SiteSpace:
    """A site with a few kernels, some of them in several numbers of parts."""
    candidates: list[SpaceCandidate] = []
    for number in range(draw(st.integers(1, 4))):
        tiles = draw(st.none() | st.integers(1, 400))
        parts = draw(st.lists(st.integers(1, 64), min_size=1, max_size=8, unique=True))
        for splits in sorted(parts) if len(parts) > 1 else [None]:
            blocks = None if tiles is None else tiles * (splits or 1)
            choice = KernelChoice(f"kernel{number}", splits)
            candidates.append(SpaceCandidate(choice, features=Features(splits=splits), blocks=blocks))
    own = draw(st.sampled_from(candidates))
    return SiteSpace("w1", "w1", 1, own.choice, tuple(candidates), offered=len(candidates))
