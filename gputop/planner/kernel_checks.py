"""What is wrong with kernels' records, each by itself; and what keeps a whole registry from being sound."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from functools import cache
from itertools import groupby
from pathlib import Path

from gputop.model.workloads import WORKLOADS
from gputop.plan.rungs import Rung
from gputop.plan.types import Dims, Kernel, KernelChoice, Plan, PlanRequest, Step, Task
from gputop.planner.kernel_calls import launches_of, refusal_of, shapes_of
from gputop.planner.registry import Registry, divided
from gputop.planner.resolver import Resolver, plan_dims
from gputop.util import paths
from gputop.util.errors import UsageError

MEASURING = "measure/"
"""Sources that measure the device and compute no phase: theirs is the cuda backend."""


def broken_kernels(registry: Registry) -> dict[str, str]:
    """Return each kernel whose record, source or entry is broken, and each file that fails to load: why."""
    found = {}
    for kernel in registry.kernels.values():
        fault = next(_faults_of(kernel, registry), None)
        if fault is not None:
            found[kernel.name] = fault
    return found | {**registry.unread}


def _faults_of(kernel: Kernel, registry: Registry) -> Iterator[str]:
    """Yield each fault of one kernel, half a sentence.

    Of a user's own its source was looked at with its record.
    """
    phases = {phase.name for phase in registry.phases}
    if sum(other.name == kernel.name for other in registry.records) > 1:
        yield "its name stands twice"
    if not kernel.covers or not set(kernel.covers) <= phases:
        yield f"it covers {', '.join(kernel.covers) or 'nothing'}, and phases are {', '.join(sorted(phases))}"
        return
    if list(kernel.splits) != sorted({*kernel.splits} - {0}):
        yield f"splits are whole numbers from 1 up, each once, from the fewest: {kernel.splits}"
    yield from _source_faults(kernel, registry.kernels_dir)
    yield from _call_faults(kernel, registry)


def _source_faults(kernel: Kernel, folder: Path) -> Iterator[str]:
    if kernel.source and not kernel.record:
        for entry in kernel.entries:
            yield from _entry_faults(folder, kernel.source, entry)


def _entry_faults(folder: Path, source: str, entry: str) -> Iterator[str]:
    text = _text(folder, source)
    if text is None:
        yield f"{source} does not exist"
    elif not re.search(rf"\b{re.escape(entry)}\b", text):
        yield f"entry {entry} is not in {source}"


def _text(folder: Path, source: str) -> str | None:
    """A source as it would be compiled: of the folder, else our own."""
    for each in (folder, paths.kernels_dir()):
        if (each / source).is_file():
            return _read(each / source)
    return None


@cache
def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _call_faults(kernel: Kernel, registry: Registry) -> Iterator[str]:
    """Yield what the kernel's functions raise, for each kind of pass that may use it."""
    for plan, dims in _passes(kernel):
        for tasks in _runs(kernel, registry, plan, dims):
            for splits in (*kernel.splits[:1], *kernel.splits[-1:]) or (None,):
                choice = KernelChoice(kernel.name, splits)
                given = tuple(divided(task, choice) for task in tasks)
                refusals = [refusal_of(kernel, task, plan, dims) for task in given]
                yield from (why for why in refusals if why and why.startswith("its record is broken"))
                if any(refusals):
                    continue
                try:
                    launches = launches_of(Step(kernel, given), plan, dims)
                    shapes_of(Step(kernel, given), plan, dims)
                except UsageError as error:
                    yield str(error).rstrip(".")
                    continue
                for launch in launches:
                    source = launch.source or kernel.source
                    its_own = kernel.record and source == kernel.source
                    if not launch.library and kernel.backend == "cuda" and not its_own:
                        yield from _entry_faults(registry.kernels_dir, source, launch.entry)


def _passes(kernel: Kernel) -> Iterator[tuple[Plan, Dims]]:
    """Plans without a dispatch, of the forms in which a kernel can be asked for."""
    dims = replace(WORKLOADS[0].dims, layers=2)
    for pruned in (False, True):
        plan = Plan(
            kernel.backend,
            PlanRequest(""),
            (),
            layout=next(iter(kernel.layouts), "row"),
            math=next(iter(kernel.maths), "fp32"),
            fold=pruned,
            fused_stores=kernel.fused_stores,
            fused_qkv=True,
            prune=pruned,
        )
        yield plan, dims


def _runs(kernel: Kernel, registry: Registry, plan: Plan, dims: Dims) -> Iterator[tuple[Task, ...]]:
    """The tasks that it would be given at once: one each, or with `fuses` those that lie together."""
    if not kernel.fuses:
        sites = registry.sites(dims, plan.prune, plan.fold)
        mine = (site for site in sites if site.phase in kernel.covers)
        yield from ((registry.site_task(site, plan, dims),) for site in mine)
        return
    tasks = registry.pass_tasks(plan, dims, keep_layers=False)
    for here, run in groupby(tasks, key=lambda task: task.site.phase in kernel.covers):
        together = tuple(run)
        if here and {task.site.phase for task in together} == set(kernel.covers):
            yield together


def faults(resolver: Resolver) -> tuple[str, ...]:
    """Return what keeps the registry from being whole, a sentence each; empty if nothing does.

    No kernel is broken, no name stands twice, each rung resolves at gpt2-small, and every .cu outside
    `measure/` is launched by something.
    """
    return (
        *(f"kernel {name}: {why}" for name, why in broken_kernels(resolver).items()),
        *_name_faults(resolver),
        *_rung_faults(resolver),
        *_unused_sources(resolver),
    )


def _name_faults(resolver: Resolver) -> Iterable[str]:
    names: Mapping[str, list[str]] = {
        "phase": [phase.name for phase in resolver.phases],
        "rung": [rung.id for rung in resolver.rungs],
        "toggle": [toggle.name for toggle in resolver.toggles],
    }
    for kind, all_names in names.items():
        yield from (f"{kind} {name} stands twice" for name, n in Counter(all_names).items() if n > 1)
    plan_fields = {field.name for field in fields(Plan)}
    for toggle in resolver.toggles:
        if toggle.field not in plan_fields:
            yield f"toggle {toggle.name} flips {toggle.field}, which is no field of a plan"


def _rung_faults(resolver: Resolver) -> Iterable[str]:
    everywhere = {
        name
        for pruned in (False, True)
        for site in resolver.sites(WORKLOADS[0].dims, pruned)
        for name in (site.name, site.phase)
    }
    for rung in resolver.rungs:
        yield from (
            f"rung {rung.id} uses {name}, which is no site" for name, _ in rung.use if name not in everywhere
        )
        try:
            tuple(_launched(resolver, rung))
        except UsageError as error:
            yield f"rung {rung.id} does not resolve: {error}"


def _launched(resolver: Resolver, rung: Rung) -> Iterator[str]:
    """Every source that a rung launches."""
    plan = resolver.resolve(PlanRequest(rung.id), WORKLOADS[0].dims, rung.backend)
    dims = plan_dims(WORKLOADS[0], plan)
    for step in resolver.steps(plan, dims):
        for launch in launches_of(step, plan, dims):
            if not launch.library:
                yield launch.source or step.kernel.source


def _unused_sources(resolver: Resolver) -> Iterable[str]:
    used = {kernel.source for kernel in resolver.kernels.values()}
    for rung in resolver.rungs:
        try:
            used |= set(_launched(resolver, rung))
        except UsageError:
            # Told by `_rung_faults`.
            continue
    for path in sorted(resolver.kernels_dir.rglob("*.cu")):
        source = path.relative_to(resolver.kernels_dir).as_posix()
        if source not in used and not source.startswith(MEASURING):
            yield f"{source} has no record"
