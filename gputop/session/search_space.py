"""Collects what a search may choose from: hard constraints by the resolver, prices by the term model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil, prod

from gputop.backends.base import Say
from gputop.perf import occupancy, roofline
from gputop.perf.gpu_specs import limits
from gputop.plan.launch_shape import LaunchShape
from gputop.plan.types import Dims, Kernel, KernelChoice, Launch, Plan, PlanRequest, Step, Task
from gputop.planner.grid_limits import check_grids
from gputop.planner.kernel_calls import launches_of
from gputop.planner.plan_views import kernel_flips
from gputop.planner.registry import divided
from gputop.planner.resolver import Resolver
from gputop.results.records import Health
from gputop.results.search_space import Bound, Features, SearchSpace, SiteSpace, SpaceCandidate
from gputop.session.context import SessionContext
from gputop.session.cost_model import Machine, SiteModel, site_models
from gputop.util.errors import UsageError
from gputop.util.heartbeat import beat

WARP = 32
LEAST_REGISTERS = 32
"""Of a thread, where no compiler has said: what occupancy allows is then an upper bound."""


def search_space(bench: SessionContext, request: PlanRequest, say: Say) -> SearchSpace:
    """Return every candidate of every site of a plan. UsageError for a plan that has no sites of ours."""
    plan = bench.resolve(request)
    if plan.peer:
        raise UsageError(f"{plan.word} is {plan.peer}'s own pass: no kernel of it can be chosen.")
    say(f"listing what can stand at each site of {plan.word}")
    machine, dims = pricing_machine(bench, say), bench.dims(plan)
    tasks = bench.catalog.site_tasks(plan, dims)
    fused = {site for site, choice in plan.dispatch if bench.catalog.kernel(choice.kernel).fuses}
    sites = tuple(
        _site_space(bench, plan, dims, task, machine) for name, task in tasks.items() if name not in fused
    )
    return SearchSpace(plan.word, plan.request, sites)


def pricing_machine(bench: SessionContext, say: Say) -> Machine:
    """Return the device at the clock that its ceilings were measured at."""
    machine = bench.machine(say, Health())
    clocks = (item.clock_hz for item in machine.ceilings.items)
    return replace(machine, clock_hz=next((clock for clock in clocks if clock), None))


def _site_space(bench: SessionContext, plan: Plan, dims: Dims, task: Task, machine: Machine) -> SiteSpace:
    catalog, name = bench.catalog, task.site.name
    own = dict(plan.dispatch)[name]
    candidates: list[SpaceCandidate] = []
    refused: dict[str, str] = {}
    rewrites: list[str] = []
    offered = 0
    least: tuple[float | None, Bound] = (None, "floor")
    for kernel, choice, _ in kernel_flips(catalog, plan, dims, name):
        offered += 1
        beat()
        if kernel.fuses:
            rewrites.append(kernel.name)
            continue
        asked = divided(task, choice)
        why = catalog.refusal(kernel, asked, plan, dims) or _grid_fault(catalog, kernel, asked, plan, dims)
        if why:
            refused.setdefault(kernel.name, why)
            continue
        candidates.append(priced(catalog, plan, dims, asked, choice, machine))
        if choice == own:
            least = bound(catalog, plan, dims, asked, choice, machine)
    able = {candidate.choice.kernel for candidate in candidates}
    return SiteSpace(
        site=name,
        phase=task.site.phase,
        count=task.site.count,
        own=own,
        candidates=tuple(candidates),
        offered=offered,
        refused=tuple((kernel, why) for kernel, why in refused.items() if kernel not in able),
        rewrites=tuple(dict.fromkeys(rewrites)),
        bound_s=least[0],
        bound=least[1],
    )


def _grid_fault(catalog: Resolver, kernel: Kernel, task: Task, plan: Plan, dims: Dims) -> str:
    """Why its launches fit no grid; empty if they do."""
    try:
        check_grids(catalog, [Step(kernel, (task,))], plan, dims)
    except UsageError as error:
        return str(error).rstrip(".")
    return ""


def _model(
    catalog: Resolver, plan: Plan, dims: Dims, task: Task, choice: KernelChoice, machine: Machine
) -> SiteModel:
    steps = (Step(catalog.kernel(choice.kernel), (task,)),) * task.site.count
    (model,) = site_models(catalog, plan, dims, steps, machine, {})
    return model


def priced(
    catalog: Resolver, plan: Plan, dims: Dims, task: Task, choice: KernelChoice, machine: Machine
) -> SpaceCandidate:
    """Return what is known of a kernel at a site before it is timed. `task`: divided as the choice says."""
    kernel = catalog.kernel(choice.kernel)
    model = _model(catalog, plan, dims, task, choice, machine)
    launch = _working_launch(kernel, task, plan, dims)
    return SpaceCandidate(
        choice=choice,
        library=bool(kernel.library),
        model_s=model.terms.modelled_s,
        terms=tuple(_terms(model)),
        features=_features(kernel, task, machine, launch, model.shapes[0] if model.shapes else None),
        blocks=prod(launch.grid) if launch else None,
    )


def _terms(model: SiteModel) -> Iterator[tuple[str, float]]:
    for name in roofline.TERMS:
        seconds = model.terms.seconds(name)
        if seconds is not None:
            yield name, seconds


def bound(
    catalog: Resolver, plan: Plan, dims: Dims, task: Task, choice: KernelChoice, machine: Machine
) -> tuple[float | None, Bound]:
    """Return the least that all instances of a task's site can take, and what that is of."""
    model = _model(catalog, plan, dims, task, choice, machine)
    return (model.floor.value_s, "floor") if model.reach_s is None else (model.reach_s, "reach")


def _working_launch(kernel: Kernel, task: Task, plan: Plan, dims: Dims) -> Launch | None:
    """The first launch, which does the work; None where the kernel declares none of ours."""
    launches = launches_of(Step(kernel, (task,)), plan, dims)
    first = launches[0] if launches else None
    return None if first is None or first.library or not prod(first.grid) else first


def _features(
    kernel: Kernel, task: Task, machine: Machine, launch: Launch | None, shape: LaunchShape | None
) -> Features:
    """Of a launch of ours; a library's is known only when it has run."""
    tile_fill = None
    if shape is not None and shape.tile is not None:
        rows, columns, _ = shape.tile
        out = task.output
        padded = ceil(out.rows / rows) * rows * ceil(out.columns / columns) * columns
        tile_fill = out.rows * out.columns / padded
    splits = task.splits if kernel.splits else (None if kernel.library else 1)
    held, sm_count = _occupancy(launch, machine), machine.facts.sm_count
    if launch is None or held is None or not held.blocks_per_sm or not sm_count:
        return Features(tile_fill=tile_fill, splits=splits)
    blocks, threads = prod(launch.grid), prod(launch.block)
    warps = occupancy.warps_in_flight(blocks, threads, held.blocks_per_sm, sm_count)
    return Features(
        occupancy=held.warps_per_sm / limits(machine.facts.arch or "").warps_per_sm,
        waves=occupancy.waves(blocks, held.blocks_per_sm, sm_count),
        tile_fill=tile_fill,
        splits=splits,
        bytes_in_flight=_in_flight_bytes(shape) * warps if shape else None,
    )


def _in_flight_bytes(shape: LaunchShape) -> float:
    """Of one warp: the steps that its block has under way at once."""
    under_way = min(max(1, shape.stages), shape.steps)
    return shape.read_bytes / shape.steps * under_way / max(1, shape.threads // WARP)


def _occupancy(launch: Launch | None, machine: Machine) -> occupancy.Occupancy | None:
    arch = machine.facts.arch
    if launch is None or arch is None or machine.facts.backend != "cuda":
        return None
    try:
        return occupancy.theoretical(
            arch,
            prod(launch.block),
            LEAST_REGISTERS,
            dynamic_smem_bytes=launch.smem_bytes,
            cluster=launch.cluster,
        )
    except UsageError:
        return None
