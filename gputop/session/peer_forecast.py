"""A framework's time, forecast from what it does and from our own kernels, without any time of its own.

It computes every row of every layer. Its products are the vendor library's, as ours are at the sites that
have one; attention in one kernel is like our fastest; pointwise launches are counted by what is fused, each
like a layernorm of ours; between launches lies what lies between ours, in a graph or without. What this
window did not measure of us stands at its floor, and the basis says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gputop.perf.roofline import LAUNCH_CEILINGS
from gputop.plan.rungs import Feature
from gputop.plan.types import Dims, KernelKind, Plan, Site
from gputop.planner.resolver import Resolver
from gputop.session.cost_model import Machine, SiteModel, plan_floors

POINTWISE_A_LAYER = {True: 3, False: 6}
"""Launches by whether pointwise work is fused: two layernorms and the ReLU, residual adds taken along;
else those two adds and the copy that brings the heads together come to them."""
POINTWISE_OUTSIDE = {True: 2, False: 3}
"""The lookup with its positions, and the last layernorm."""


@dataclass(frozen=True, slots=True)
class PeerForecast:
    """Device seconds of one pass, and what they rest on."""

    time_s: float
    basis: str


@dataclass(frozen=True, slots=True)
class OwnPlanTiming:
    """One plan of ours as this window measured it: seconds and launches of a pass by site."""

    plan: Plan
    sites: tuple[SiteModel, ...]
    time_s: Mapping[str, float]
    gap_s: Mapping[str, float]
    launches: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Part:
    """All instances of a site in the framework's pass."""

    kind: KernelKind
    time_s: float | None
    launches: float
    measured: bool


def peer_forecast(
    catalog: Resolver,
    plan: Plan,
    dims: Dims,
    features: Sequence[Feature],
    ours: Sequence[OwnPlanTiming],
    machine: Machine,
) -> PeerForecast | None:
    """None where neither our kernels nor the ceilings say enough."""
    alike = [other for other in ours if other.plan.batch == plan.batch]
    sites = catalog.sites(dims, False)
    floors = dict(zip((site.name for site in sites), plan_floors(catalog, plan, dims, machine), strict=True))
    parts = [
        _part(site, catalog.phase(site.phase).kind, plan, alike, floors[site.name].value_s)
        for site in sites
        if catalog.phase(site.phase).kind != "pointwise"
    ]
    parts.append(_pointwise(dims, "fusion" in features, alike))
    gap_s = _gap_s([other for other in alike if other.plan.graph == ("graph" in features)])
    apart_s = machine.ceilings.get(LAUNCH_CEILINGS["graph"]) if gap_s is None else gap_s
    times = [part.time_s for part in parts]
    if apart_s is None or any(time_s is None for time_s in times):
        return None
    launches = sum(part.launches for part in parts)
    total_s = sum(time_s for time_s in times if time_s is not None) + launches * apart_s
    return PeerForecast(total_s, _basis(parts, features, round(launches), gap_s is not None))


def _part(
    site: Site, kind: KernelKind, plan: Plan, ours: Sequence[OwnPlanTiming], floor_s: float | None
) -> _Part:
    """A product by the library's kernel there, attention by our fastest; without one, the site's floor."""
    candidates = [
        (other.time_s[model.name] / model.count, other.launches.get(model.name, model.count) / model.count)
        for other in ours
        for model in other.sites
        if model.name == site.name and model.name in other.time_s
        if kind == "attention" or (model.kernel.library and other.plan.math == plan.math)
    ]
    if not candidates:
        return _Part(kind, floor_s, site.count, measured=False)
    one_s, launches = min(candidates)
    return _Part(kind, one_s * site.count, launches * site.count, measured=True)


def _pointwise(dims: Dims, fused: bool, ours: Sequence[OwnPlanTiming]) -> _Part:
    launches = POINTWISE_A_LAYER[fused] * dims.layers + POINTWISE_OUTSIDE[fused]
    one_s = min(
        (
            other.time_s[model.name] / model.count
            for other in ours
            for model in other.sites
            if model.kind == "pointwise" and model.count > 1 and model.name in other.time_s
        ),
        default=None,
    )
    return _Part("pointwise", launches * (one_s or 0.0), launches, measured=one_s is not None)


def _gap_s(ours: Iterable[OwnPlanTiming]) -> float | None:
    """What lies between two launches, of the plan where it is least; None where no plan's gaps are known."""
    return min(
        (
            sum(other.gap_s.values()) / sum(other.launches.values())
            for other in ours
            if sum(other.gap_s.values()) > 0 and sum(other.launches.values()) > 0
        ),
        default=None,
    )


def _basis(parts: Sequence[_Part], features: Sequence[Feature], launches: int, gaps_measured: bool) -> str:
    products = [part for part in parts if part.kind == "gemm"]
    known = sum(part.measured for part in products)
    others = {part.kind: part.measured for part in parts if part.kind != "gemm"}
    measured = [kind for kind, is_measured in others.items() if is_measured] + ["gaps"] * gaps_measured
    floors = [kind for kind, is_measured in others.items() if not is_measured]
    return "; ".join(
        part
        for part in (
            f"{launches} launches, by its features: {', '.join(features) or 'none'}",
            f"{known} of {len(products)} products at the library's times here, the rest at their floors",
            f"as our kernels take it here: {', '.join(measured)}" if measured else "",
            f"at floors: {', '.join(floors)}" if floors else "",
        )
        if part
    )
