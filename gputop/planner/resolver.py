"""From a plan as asked for to a plan that can run, or the sentence why it can't."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from gputop.plan.plan_string import parse_choice
from gputop.plan.rungs import Rung
from gputop.plan.toggles import toggle_text, toggle_value
from gputop.plan.types import (
    STORED_MATHS,
    Dims,
    Kernel,
    KernelChoice,
    Plan,
    PlanRequest,
    Step,
    Task,
    Workload,
)
from gputop.planner.dispatch import (
    Dispatch,
    Entry,
    check_none_hidden,
    differing_entries,
    phase_of_names,
    served,
)
from gputop.planner.grid_limits import check_grids
from gputop.planner.kernel_calls import launches_of, refusal_of
from gputop.planner.registry import Registry, divided
from gputop.util.errors import UsageError, unknown_name

SM_COUNT = 132
"""Of an H100 or H200: what a number of parts is chosen for if no device is at hand."""
PEER_TOGGLES = ("math", "batch")
"""What can be asked of a framework that organises the pass itself."""


def plan_dims(workload: Workload, plan: Plan) -> Dims:
    """The workload's dims with the plan's batch."""
    return replace(workload.dims, batch=plan.batch)


@dataclass(frozen=True)
class Resolver(Registry):
    """The registry, with its rules for what can be combined."""

    arch: str | None = None
    """`sm_90`: of the device at hand. Without it every kernel counts as able to run."""
    sm_count: int = SM_COUNT
    fixed: Mapping[str, str] = field(default_factory=dict)
    """Toggle -> why it can't be set on this machine, whatever a plan says of it."""

    def on(
        self, arch: str | None, sm_count: int | None = None, fixed: Mapping[str, str] | None = None
    ) -> Resolver:
        """Return this resolver for a device of `arch`, on which the toggles in `fixed` can't be set."""
        return replace(self, arch=arch, sm_count=sm_count or SM_COUNT, fixed=fixed or {})

    def resolve(self, request: PlanRequest, dims: Dims, backend: str) -> Plan:
        """Return the plan that a request means on a model of `dims` (whose batch the plan overrides).

        Rung by rung from the first, then the request's sets, then its uses. Raise UsageError for an unknown
        name, with the nearest, and for a combination that can't hold, with why.
        """
        rung = self.rung(request.rung)
        if rung.backend != backend:
            theirs = ", ".join(other.id for other in self.rungs_of(backend)) or "none"
            raise UsageError(
                f"Rung {rung.id} runs on {rung.backend}, not on {backend}. Rungs on {backend}: {theirs}."
            )
        self._check_not_fixed(rung)
        chain = self._chain(rung)
        base = Plan(backend, PlanRequest(rung.id), ())
        base = base.change(**dict(pair for r in chain for pair in r.fields))
        plan = base
        for name, value in request.sets:
            plan = self._set(plan, name, value)
        dims = replace(dims, batch=plan.batch)
        uses: tuple[Entry, ...] = ()
        if plan.peer and request.uses:
            raise UsageError(f"{rung.id} is {plan.peer}'s own pass: no kernel of it can be chosen.")
        if not plan.peer:
            tasks = self.site_tasks(plan, dims)
            given = self._dispatch(tasks, self._rung_entries(chain, plan, dims, tasks), {}, plan, dims)
            chosen = self._asked(request.uses, given, tasks, plan, dims)
            plan = plan.change(dispatch=tuple(chosen.items()))
            self._check(plan, dims, tasks)
            sites = [task.site for task in tasks.values()]
            uses = differing_entries(sites, given, chosen, self.kernel)
        return plan.change(request=PlanRequest(rung.id, self._differing_sets(base, plan), uses))

    def site_tasks(self, plan: Plan, dims: Dims) -> dict[str, Task]:
        """Return every site of a plan with its first task, in pass order."""
        sites = self.sites(dims, plan.prune, plan.fold)
        return {site.name: self.site_task(site, plan, dims) for site in sites}

    def able_splits(
        self, kernel: Kernel, task: Task, plan: Plan, dims: Dims, asked: int | None = None
    ) -> Iterator[int | None]:
        """Yield every number of parts in which a kernel takes a task, of those offered or the one asked for.

        That is None if it takes the task and divides nothing.
        """
        trials: Sequence[int | None] = (kernel.splits or (None,)) if asked is None else (asked,)
        for splits in trials:
            if self.refusal(kernel, divided(task, KernelChoice(kernel.name, splits)), plan, dims) is None:
                yield splits

    def takes(self, kernel: Kernel, task: Task, plan: Plan, dims: Dims, splits: int | None = None) -> bool:
        """Return whether a kernel takes a task, in the number of parts asked for or in any that it offers."""
        return any(True for _ in self.able_splits(kernel, task, plan, dims, splits))

    def default_splits(self, kernel: Kernel, task: Task, plan: Plan, dims: Dims) -> int | None:
        """Return into how many parts a kernel divides a task if nobody says; None if it divides nothing.

        As many as leave no SM more blocks than the kernel's record asks for (`blocks_per_sm`), so that all
        parts run side by side. The fewest if that is too many, or if it takes the task in no way.
        """
        if not kernel.splits:
            return None
        able = [n for n in self.able_splits(kernel, task, plan, dims) if n is not None]
        room = self.sm_count * kernel.blocks_per_sm
        fitting = [n for n in able if _blocks(kernel, replace(task, splits=n), plan, dims) <= room]
        return max(fitting, default=min(able or kernel.splits))

    def _chain(self, rung: Rung) -> tuple[Rung, ...]:
        chain = [rung]
        while chain[0].before is not None:
            chain.insert(0, self.rung(chain[0].before))
        return tuple(chain)

    def _rung_entries(
        self, chain: tuple[Rung, ...], plan: Plan, dims: Dims, tasks: Mapping[str, Task]
    ) -> list[Entry]:
        """The chain's entries; one for a site that this plan does not have waits for a plan that has it."""
        sites = [task.site for task in tasks.values()]
        names = phase_of_names(sites)
        entries: list[Entry] = []
        for name, named in (entry for rung in chain for entry in rung.use if entry[0] in names):
            if isinstance(named, str):
                choice = parse_choice(named)
                self._chosen_kernel((name, choice), plan, dims, names)
                entries.append((name, choice))
                continue
            choices = [parse_choice(text) for text in named]
            kernels = [self._chosen_kernel((name, choice), plan, dims, names) for choice in choices]
            for site in served(name, kernels[0], sites):
                able = (
                    choice
                    for choice, kernel in zip(choices, kernels, strict=True)
                    if self.takes(kernel, tasks[site], plan, dims, choice.splits)
                )
                # If none can serve the site, the last one's refusal says why.
                entries.append((site, next(able, choices[-1])))
        return entries

    def _asked(
        self, uses: Sequence[Entry], given: Dispatch, tasks: Mapping[str, Task], plan: Plan, dims: Dims
    ) -> dict[str, KernelChoice]:
        """The dispatch after a request's entries. UsageError for names of nothing, for one without effect."""
        sites = [task.site for task in tasks.values()]
        names = phase_of_names(sites)
        kernels = [self._chosen_kernel(use, plan, dims, names) for use in uses]
        check_none_hidden(
            uses, [served(name, kernel, sites) for (name, _), kernel in zip(uses, kernels, strict=True)]
        )
        return self._dispatch(tasks, uses, given, plan, dims)

    def _dispatch(
        self, tasks: Mapping[str, Task], entries: Iterable[Entry], start: Dispatch, plan: Plan, dims: Dims
    ) -> dict[str, KernelChoice]:
        """Site -> kernel after the entries, in pass order, with the number of parts where none was named."""
        table = dict(start)
        sites = [task.site for task in tasks.values()]
        for name, choice in entries:
            table.update(dict.fromkeys(served(name, self.kernel(choice.kernel), sites), choice))
        for site, choice in table.items():
            if choice.splits is None:
                splits = self.default_splits(self.kernel(choice.kernel), tasks[site], plan, dims)
                table[site] = replace(choice, splits=splits)
        unserved = [site for site in tasks if site not in table]
        if unserved:
            raise UsageError(
                f"No kernel serves {', '.join(unserved)}: {plan.rung} and the rungs before it name none. "
                f"Name one with --use {unserved[0]}=KERNEL."
            )
        return {site: table[site] for site in tasks}

    def _check(self, plan: Plan, dims: Dims, tasks: Mapping[str, Task]) -> None:
        """UsageError when some kernel can't take its tasks."""
        steps = self._site_steps(plan, dims, tasks)
        for step in steps:
            for task in step.tasks:
                why = self.refusal(step.kernel, task, plan, dims)
                if why:
                    raise UsageError(f"{step.choice} can't serve {task.site.name}: {why}.")
        check_grids(self, steps, plan, dims)
        if plan.pdl and not any(launch.pdl for step in steps for launch in launches_of(step, plan, dims)):
            raise UsageError("pdl=on: no kernel of this plan supports programmatic dependent launch.")
        if plan.fused_stores and not any(step.kernel.fused_stores for step in steps):
            raise UsageError(
                "fused_stores=on: no kernel of this plan can store bias, activation and residual itself."
            )

    def _site_steps(self, plan: Plan, dims: Dims, tasks: Mapping[str, Task]) -> tuple[Step, ...]:
        """A step for each site; with a kernel that fuses, those of two layers, which have every site."""
        kernels = {site: self.kernel(choice.kernel) for site, choice in plan.dispatch}
        if any(kernel.fuses for kernel in kernels.values()):
            return self.steps(plan, replace(dims, layers=min(dims.layers, 2)))
        return tuple(Step(kernels[site], (divided(tasks[site], choice),)) for site, choice in plan.dispatch)

    def refusal(self, kernel: Kernel, task: Task, plan: Plan, dims: Dims) -> str | None:
        """Return why a kernel can't take a task under this plan on this device, or None."""
        if self.arch and kernel.only_arch and kernel.only_arch != self.arch:
            return f"its instructions exist on {kernel.only_arch} only, and this device is {self.arch}"
        if self.arch and kernel.backend == "cuda" and int(self.arch.removeprefix("sm_")) < kernel.min_arch:
            return f"it needs sm_{kernel.min_arch} or later, and this device is {self.arch}"
        if plan.math not in kernel.maths:
            only = f"it computes in {' and '.join(kernel.maths)} only, and the plan's math is {plan.math}"
            return only + self._begin_from(plan)
        if plan.layout not in kernel.layouts:
            layouts = " and ".join(kernel.layouts)
            return f"it reads {layouts} weights only, and the plan's layout is {plan.layout}"
        return refusal_of(kernel, task, plan, dims)

    def _begin_from(self, plan: Plan) -> str:
        """Return the rungs from which a plan in its math can begin.

        Empty for a math that leaves alone what is stored, and with it the kernels of the other sites.
        """
        if plan.math not in STORED_MATHS:
            return ""
        ours = (rung for rung in self.rungs_of(plan.backend) if ("math", plan.math) in rung.fields)
        names = [rung.id for rung in ours if rung.kind == "ladder"]
        return f": its kernels store {plan.math} too, begin from rung {' or '.join(names)}" if names else ""

    def _check_not_fixed(self, rung: Rung) -> None:
        """UsageError for a rung that changes only what can't be set here: it would be the rung before it."""
        changed = [name for name, _ in rung.fields]
        if changed and not rung.use and all(name in self.fixed for name in changed):
            raise UsageError(
                f"Rung {rung.id} changes {' and '.join(changed)} only: {self.fixed[changed[0]]}."
            )

    def _set(self, plan: Plan, name: str, text: str) -> Plan:
        toggle = self.toggle(name)
        value = toggle_value(toggle, text)
        if value == getattr(plan, toggle.field):
            return plan
        if name in self.fixed:
            raise UsageError(f"{name}={text}: {self.fixed[name]}.")
        if plan.backend not in toggle.backends:
            where = " and ".join(toggle.backends)
            raise UsageError(f"{name}={text}: {name} exists on {where} only, not on {plan.backend}.")
        if plan.peer and name not in PEER_TOGGLES:
            can = " and ".join(PEER_TOGGLES)
            raise UsageError(f"{name}={text}: {plan.rung} organises its own pass; only {can} can be set.")
        return plan.change(**{toggle.field: value})

    def _chosen_kernel(self, entry: Entry, plan: Plan, dims: Dims, names: Mapping[str, str]) -> Kernel:
        """The kernel of an entry; `names`: what an entry may be for, with its phase.

        UsageError for a site, kernel or number of parts that there is not, with what there is.
        """
        name, choice = entry
        if name not in names:
            if name in {site.name for site in self.sites(dims, not plan.prune)}:
                needed = "prune=off" if plan.prune else "prune=on"
                raise UsageError(f"This plan has no site {name}: it exists with {needed} (--set {needed}).")
            raise unknown_name("site", name, names)
        kernel = self.kernels.get(choice.kernel)
        if kernel is None or kernel.backend != plan.backend or names[name] not in kernel.covers:
            allowed = sorted(other.name for other in self.kernels_for(names[name], plan.backend))
            if kernel is None:
                raise self._unknown_kernel(name, choice.kernel, allowed)
            raise UsageError(
                f"{choice.kernel} can't serve {name} on {plan.backend}: it computes "
                f"{', '.join(kernel.covers)} on {kernel.backend}. Allowed: {', '.join(allowed)}."
            )
        if choice.splits is not None and choice.splits not in kernel.splits:
            offered = ", ".join(f"{kernel.name}/{splits}" for splits in kernel.splits)
            what = f"It is offered as {offered}." if offered else "It divides nothing: leave the number out."
            raise UsageError(f"There is no {choice} for {name}. {what}")
        return kernel

    def _unknown_kernel(self, site: str, name: str, allowed: Sequence[str]) -> UsageError:
        """The nearest name; and files that could not be loaded, of which it may be."""
        error = unknown_name(f"kernel for {site}", name, allowed)
        unread = "".join(f" {file}: {why}." for file, why in self.unread.items())
        return UsageError(f"{error}{unread}")

    def _differing_sets(self, base: Plan, plan: Plan) -> tuple[tuple[str, str], ...]:
        return tuple(
            (toggle.name, toggle_text(getattr(plan, toggle.field)))
            for toggle in self.toggles
            if getattr(plan, toggle.field) != getattr(base, toggle.field)
        )


def _blocks(kernel: Kernel, task: Task, plan: Plan, dims: Dims) -> int:
    """Thread blocks of the launch that does a task's work; 0 if the kernel launches nothing."""
    launches = launches_of(Step(kernel, (task,)), plan, dims)
    return prod(launches[0].grid) if launches else 0
