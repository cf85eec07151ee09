"""What physics asks of each site of a plan, and what the model says its launches take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from math import fsum
from operator import add
from typing import TYPE_CHECKING

from gputop.perf import roofline
from gputop.perf.gpu_specs import SM_LIMITS, arch_name
from gputop.perf.kernel_facts import known_kernels
from gputop.perf.roofline import Device, Floor, Footprint, LaunchMode, LaunchTerms, Rates, SiteTerms
from gputop.perf.roofline.peaks import RatesAtClock
from gputop.plan.launch_shape import LaunchFacts, LaunchInfo, LaunchShape
from gputop.plan.types import Dims, Kernel, KernelChoice, KernelKind, Launch, Plan, Site, Step, WeightView
from gputop.plan.work import NOTHING, Work
from gputop.planner.kernel_calls import launches_of, shapes_of
from gputop.results import breakdown
from gputop.results.records import Ceilings, DeviceFacts
from gputop.session.library_shapes import least_shape, library_shapes
from gputop.util.errors import UsageError

if TYPE_CHECKING:
    from gputop.planner.resolver import Resolver

ONE_CORE_BANDWIDTH = {"fp32_1": "dram_read_1"}
"""Pipes that use one core of several, and the bandwidth that core has for itself."""
UNKNOWN = LaunchFacts()


@dataclass(frozen=True)
class Machine:
    """The device as the model sees it."""

    facts: DeviceFacts
    ceilings: Ceilings
    clock_hz: float | None

    @cached_property
    def rates(self) -> Rates:
        """The ceilings, those of arithmetic at this clock."""
        if self.clock_hz is None:
            return self.ceilings
        measured_hz = {
            item.name: item.clock_hz
            for item in self.ceilings.items
            if item.unit == "FLOP/s" and item.clock_hz
        }
        return RatesAtClock(self.ceilings, measured_hz, self.clock_hz)

    @cached_property
    def device(self) -> Device | None:
        """What a launch runs on; None on the host, and where the clock is not known."""
        sm_count, clock_hz, arch = self.facts.sm_count, self.clock_hz, self.facts.arch
        if sm_count is None or clock_hz is None:
            return None
        return Device(self.rates, sm_count, clock_hz, SM_LIMITS.get(arch_name(arch)) if arch else None)


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
    shapes: tuple[LaunchShape, ...]
    """Of the launches of one instance; empty: nobody knows them."""
    dram_bytes: float
    floor: Floor
    reach_s: float | None
    terms: SiteTerms
    note: str = ""
    """Why its launches are not known, if its record is broken."""

    @property
    def l2_bytes(self) -> float | None:
        """Asked of L2 and written to it in one pass."""
        return self.count * fsum(shape.l2_bytes for shape in self.shapes) if self.shapes else None


@dataclass(frozen=True, slots=True)
class _Launched:
    """One launch: what it asks for, and what is known of it on this device."""

    shape: LaunchShape
    facts: LaunchFacts

    @property
    def footprint(self) -> Footprint:
        smem_bytes = self.shape.smem_bytes if self.facts.smem_bytes is None else self.facts.smem_bytes
        return Footprint(self.shape.threads, self.facts.registers or 0, smem_bytes)


def site_models(
    catalog: Resolver,
    plan: Plan,
    dims: Dims,
    steps: Iterable[Step],
    machine: Machine,
    facts: Mapping[str, LaunchInfo],
    entries: Mapping[str, LaunchFacts] | None = None,
) -> tuple[SiteModel, ...]:
    """One for each step site, in pass order.

    `facts` by step site may lack what is not prepared; of those launches is known what `entries` tell of
    kernels that were loaded for other plans, else what gputop knows of its kernels on that architecture.
    """
    order = [part for whole in steps for part in whole.apart()]
    by_site: dict[str, list[Step]] = {}
    ahead: dict[str, str | None] = {}
    for index, step in enumerate(order):
        by_site.setdefault(step.site, []).append(step)
        ahead[step.site] = order[index - 1].site if index else None
    launched: dict[str, tuple[_Launched, ...]] = {}
    notes: dict[str, str] = {}
    for name, same in by_site.items():
        try:
            launched[name] = _launched(
                same[-1], plan, dims, facts.get(name), entries or {}, machine.facts.arch
            )
        except UsageError as error:
            launched[name], notes[name] = (), str(error).rstrip(".")
    fetched = {weight.tensor for site in launched.values() for one in site for weight in one.shape.ahead}
    return tuple(
        replace(
            _site_model(
                catalog, plan, dims, same, machine, launched[name], _last(launched, ahead[name]), fetched
            ),
            note=notes.get(name, ""),
        )
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


def modelled_s(sites: Iterable[SiteModel]) -> float | None:
    """The pass by the model alone. None without sites, or where nothing is known of one."""
    times = [site.terms.modelled_s for site in sites]
    known = [time_s for time_s in times if time_s is not None]
    return sum(known) if known and len(known) == len(times) else None


def launch_mode(plan: Plan) -> LaunchMode:
    """How the plan's launches reach the device."""
    if plan.backend == "cpu":
        return "call"
    if plan.pdl:
        return "pdl"
    return "graph" if plan.graph else "stream"


def _launched(
    step: Step,
    plan: Plan,
    dims: Dims,
    facts: LaunchInfo | None,
    entries: Mapping[str, LaunchFacts],
    arch: str | None,
) -> tuple[_Launched, ...]:
    """The launches of one instance; none where nobody knows them."""
    kernel, each = step.kernel, facts.each if facts else ()
    if kernel.library:
        shapes = library_shapes(step.tasks[-1], each)
        return tuple(map(_Launched, shapes, each)) if shapes else ()
    if kernel.shapes is None:
        return ()
    shapes = shapes_of(step, plan, dims)
    if not each and kernel.launches is not None and not kernel.stamped:
        each = tuple(
            entries.get(launch.entry) or shipped_facts(launch, arch)
            for launch in launches_of(step, plan, dims)
        )
    if len(each) != len(shapes):
        # A stamped kernel's tasks share one launch, and none is loaded for a host's call.
        each = (*each, *[UNKNOWN] * len(shapes))[: len(shapes)]
    return tuple(map(_Launched, shapes, each))


def shipped_facts(launch: Launch, arch: str | None) -> LaunchFacts:
    """Of a kernel that is not loaded, as far as its machine code is known without."""
    known = known_kernels(arch).entries.get(launch.entry) if arch else None
    if known is None:
        return UNKNOWN
    smem_bytes = known.smem_bytes + launch.smem_bytes
    return LaunchFacts(launch.entry, launch.grid, launch.block, known.registers, smem_bytes, code=known.code)


def _last(launched: Mapping[str, tuple[_Launched, ...]], site: str | None) -> _Launched | None:
    found = launched.get(site, ()) if site else ()
    return found[-1] if found else None


def _site_model(
    catalog: Resolver,
    plan: Plan,
    dims: Dims,
    steps: Sequence[Step],
    machine: Machine,
    launched: tuple[_Launched, ...],
    before: _Launched | None,
    fetched: set[str],
) -> SiteModel:
    """`before`: the launch ahead of the last instance; `fetched`: weights that other launches prefetch."""
    kernel, tasks, count = steps[0].kernel, steps[-1].tasks, len(steps)
    one = reduce(add, (catalog.phase(task.site.phase).work(task.site, dims) for task in tasks), NOTHING)
    work = one.times(count)
    dram_bytes = roofline.compulsory_bytes(work, machine.facts.l2_bytes, count=count, math=plan.math)
    floor = _floor(work, count, plan, machine)
    weights = {w.tensor for task in tasks if isinstance(w := task.operand("w"), WeightView)}
    own_bytes = 0.0 if weights and weights <= fetched else dram_bytes / count
    launches = _launch_terms(plan, machine, launched, before, own_bytes)
    if kernel.library and not launches:
        launches = _least_terms(plan, machine, one, own_bytes)
    fit = _fit(launched, tasks[-1].site, machine)
    return SiteModel(
        name=steps[0].site,
        phases=tuple(dict.fromkeys(task.site.phase for task in tasks)),
        kind=breakdown.kind_of(catalog.phase(task.site.phase).kind for task in tasks),
        kernel=kernel,
        choice=steps[0].choice,
        count=count,
        work=work,
        shapes=tuple(one.shape for one in launched),
        dram_bytes=dram_bytes,
        floor=floor,
        reach_s=roofline.reach(work, floor.value_s, machine.rates, count=count),
        terms=SiteTerms(launches, count, fit.shape_factor if fit else None, fit.padding if fit else None),
    )


def _launch_terms(
    plan: Plan,
    machine: Machine,
    launched: Sequence[_Launched],
    before: _Launched | None,
    dram_bytes: float,
) -> tuple[LaunchTerms, ...]:
    """Of one instance, which brings `dram_bytes` from DRAM: those launches do that read weights first."""
    mode, device = launch_mode(plan), machine.device
    if mode == "call":
        shape = launched[0].shape if launched else None
        bandwidth = ONE_CORE_BANDWIDTH.get((shape.pipe if shape else None) or "", "dram_read")
        return (roofline.call_terms(shape, machine.rates, dram_bytes, bandwidth),)
    if device is None:
        return ()
    bringing = [one for one in launched if one.shape.from_dram] or list(launched[:1])
    found = []
    for one in launched:
        share = dram_bytes / len(bringing) if any(one is other for other in bringing) else 0.0
        placed = _place(one, before if plan.pdl else None, device)
        how: LaunchMode = "barrier" if one.shape.inside else mode
        found.append(roofline.launch_terms(one.shape, placed, one.facts.code, device, how, share))
        before = one
    return tuple(found)


def _least_terms(plan: Plan, machine: Machine, one: Work, dram_bytes: float) -> tuple[LaunchTerms, ...]:
    """Of a library's kernel that nobody has seen: what any kernel needs for one instance's work."""
    device = machine.device
    if device is None:
        return ()
    shape = least_shape(one, device.sm_count, roofline.best_pipe(machine.rates, plan.math))
    placed = roofline.place(shape.blocks, 1, device.sm_count)
    return (roofline.launch_terms(shape, placed, None, device, launch_mode(plan), dram_bytes),)


def _place(one: _Launched, before: _Launched | None, device: Device) -> roofline.Placement:
    shape, sm = one.shape, device.sm
    if sm is not None and before is not None and shape.pdl and before.shape.pdl and shape.cluster == 1:
        return roofline.place_beside(
            shape.blocks, one.footprint, before.footprint, before.shape.blocks, sm, device.sm_count
        )
    per_sm = one.facts.blocks_per_sm or (roofline.fits(one.footprint, sm) if sm else 1)
    return roofline.place(shape.blocks, per_sm, device.sm_count, one.facts.clustered_blocks)


def _fit(launched: Sequence[_Launched], output: Site, machine: Machine) -> roofline.Fit | None:
    """Of the launch that does the work."""
    shape, sm_count = launched[0].shape if launched else None, machine.facts.sm_count
    if shape is None or shape.tile is None or not sm_count or not output.rows or not output.columns:
        return None
    return roofline.fit(output.rows, output.columns, shape.tile[:2], shape.blocks, sm_count)


def _floor(work: Work, count: int, plan: Plan, machine: Machine) -> Floor:
    return roofline.floor(work, machine.rates, plan.math, machine.facts.l2_bytes, count=count)
