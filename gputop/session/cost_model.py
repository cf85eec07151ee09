"""What physics asks of each site of a plan, and what the term model says its kernel takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from gputop.perf import roofline
from gputop.perf.roofline import Floor, Mode, Terms
from gputop.plan.traffic import NOTHING, Traffic, Work
from gputop.plan.types import Dims, Kernel, KernelChoice, KernelKind, LaunchInfo, Plan, Site, Step
from gputop.planner.kernel_calls import traffic_of
from gputop.results import breakdown
from gputop.results.records import Ceilings, DeviceFacts
from gputop.util.errors import UsageError

if TYPE_CHECKING:
    from gputop.planner.resolver import Resolver

ONE_CORE_BANDWIDTH = {"fp32_1": "dram_read_1"}
"""Pipes that use one core of several, and the bandwidth that core has for itself."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The device as the model sees it."""

    facts: DeviceFacts
    ceilings: Ceilings
    clock_hz: float | None


@dataclass(frozen=True, slots=True)
class SiteModel:
    """One row of the phase table before it is timed: all instances of a step site in one pass."""

    name: str
    """`w1`, `w1@1`, `ln2+w1`."""
    phases: tuple[str, ...]
    kind: KernelKind
    kernel: Kernel
    choice: KernelChoice
    count: int
    work: Work
    traffic: Traffic | None
    """Of one instance."""
    dram_bytes: float
    floor: Floor
    terms: Terms
    note: str = ""
    """Why no traffic is known of the kernel, if its record is broken."""


def site_models(
    catalog: Resolver,
    plan: Plan,
    dims: Dims,
    steps: Iterable[Step],
    machine: Machine,
    facts: Mapping[str, LaunchInfo],
) -> tuple[SiteModel, ...]:
    """One for each step site, in pass order. `facts` by step site may lack what is not prepared."""
    by_site: dict[str, list[Step]] = {}
    for step in (part for whole in steps for part in whole.apart()):
        by_site.setdefault(step.site, []).append(step)
    return tuple(
        _site_model(catalog, plan, dims, tuple(same), machine, facts.get(name))
        for name, same in by_site.items()
    )


def question_floors(catalog: Resolver, plan: Plan, dims: Dims, machine: Machine) -> dict[str, Floor]:
    """Phase -> floor of what is asked of it, whatever the plan computes besides: only the last token.

    A gain and a shift are not: weights can hold them before anything is asked.
    """
    sites: dict[str, list[Site]] = {}
    for site in catalog.sites(dims, pruned=True, folded=True):
        sites.setdefault(site.phase, []).append(site)
    return {
        phase: _floor(catalog.work(same, dims), sum(site.count for site in same), plan, machine)
        for phase, same in sites.items()
    }


def plan_floors(catalog: Resolver, plan: Plan, dims: Dims, machine: Machine) -> tuple[Floor, ...]:
    """Floor of each of the plan's sites, also where it has no steps of ours (peers)."""
    return tuple(
        _floor(catalog.work((site,), dims), site.count, plan, machine)
        for site in catalog.sites(dims, plan.prune, plan.fold)
    )


def _site_model(
    catalog: Resolver,
    plan: Plan,
    dims: Dims,
    steps: tuple[Step, ...],
    machine: Machine,
    facts: LaunchInfo | None,
) -> SiteModel:
    kernel, tasks, count = steps[0].kernel, steps[0].tasks, len(steps)
    one = reduce(add, (catalog.phase(task.site.phase).work(task.site, dims) for task in tasks), NOTHING)
    work = one.times(count)
    traffic, note = None, ""
    try:
        traffic = traffic_of(kernel, tasks, plan, dims)
    except UsageError as error:
        note = str(error).rstrip(".")
    device, output = machine.facts, tasks[-1].site
    terms = roofline.terms(
        work,
        traffic,
        facts,
        machine.ceilings,
        count=count,
        launches=facts.launches if facts else None,
        mode=launch_mode(plan),
        l2_bytes=device.l2_bytes,
        sm_count=device.sm_count,
        arch=device.arch,
        clock_hz=machine.clock_hz,
        # A library may use whichever pipe it likes: what is sure is the time on the fastest.
        pipe=roofline.best_pipe(machine.ceilings, plan.math) if kernel.library else None,
        math=plan.math,
        rows=output.rows,
        columns=output.columns,
        bandwidth=ONE_CORE_BANDWIDTH.get((traffic and traffic.pipe) or "", "dram_read"),
    )
    compulsory = roofline.compulsory_bytes(work, device.l2_bytes, count=count, math=plan.math)
    declared = count * traffic.dram_bytes if traffic and traffic.dram_bytes is not None else 0.0
    return SiteModel(
        name=steps[0].site,
        phases=tuple(dict.fromkeys(task.site.phase for task in tasks)),
        kind=breakdown.kind_of(catalog.phase(task.site.phase).kind for task in tasks),
        kernel=kernel,
        choice=steps[0].choice,
        count=count,
        work=work,
        traffic=traffic,
        dram_bytes=max(compulsory, declared),
        floor=_floor(work, count, plan, machine),
        terms=terms,
        note=note,
    )


def modelled_s(sites: Iterable[SiteModel]) -> float | None:
    """The pass by the model alone: each site's largest term. None without sites, or where one has none."""
    times = [roofline.modelled_s(site.terms) for site in sites]
    known = [time_s for time_s in times if time_s is not None]
    return sum(known) if known and len(known) == len(times) else None


def launch_mode(plan: Plan) -> Mode:
    """How the plan's launches reach the device."""
    if plan.backend == "cpu":
        return "call"
    if plan.pdl:
        return "pdl"
    return "graph" if plan.graph else "stream"


def _floor(work: Work, count: int, plan: Plan, machine: Machine) -> Floor:
    return roofline.floor(work, machine.ceilings, plan.math, machine.facts.l2_bytes, count=count)
