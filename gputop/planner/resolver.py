"""The catalog: from a plan as asked for to a plan that can run, or the sentence why it can't."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from gputop.model.workloads import WORKLOADS
from gputop.plan.choices import SiteView, ToggleView
from gputop.plan.plan_string import format_word, parse_word
from gputop.plan.types import (
    Dims,
    Kernel,
    Launch,
    Plan,
    PlanRequest,
    Rung,
    Site,
    Step,
    Task,
    Toggle,
    Workload,
)
from gputop.planner.registry import Registry, memoize_bounded
from gputop.util.errors import UsageError, unknown_name

MOST_BATCH = 4096
LARGEST_GRID = (2**31 - 1, 65535, 65535)
"""Blocks that a launch can have along x, y and z on every CUDA device (CUDA programming guide)."""
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
    fixed: Mapping[str, str] = field(default_factory=dict)
    """Toggle -> why it can't be set on this machine, whatever a plan says of it."""

    def on(self, arch: str | None, fixed: Mapping[str, str] | None = None) -> Resolver:
        """Return this catalog for a device of `arch`, on which the toggles in `fixed` can't be set."""
        return replace(self, arch=arch, fixed=fixed or {})

    def resolve(self, request: PlanRequest, dims: Dims, backend: str) -> Plan:
        """The plan that a request means on a model of `dims` (whose batch the plan overrides).

        Rung by rung from the first, then the request's sets, then its uses. UsageError for an unknown
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
        base = Plan(backend, rung.id, ()).change(**dict(pair for r in chain for pair in r.fields))
        plan = base
        for name, value in request.sets:
            plan = self._set(plan, name, value)
        sites = self.sites(replace(dims, batch=plan.batch), plan.prune)
        if plan.peer:
            if request.uses:
                raise UsageError(f"{rung.id} is {plan.peer}'s own pass: no kernel of it can be chosen.")
            sites = ()
        given = self._given(chain, plan, dims, sites)
        uses = [self._use(name, kernel, plan, dims, sites) for name, kernel in request.uses]
        chosen = _dispatch(sites, uses, given)
        plan = plan.change(dispatch=tuple((site.name, chosen[site.name]) for site in sites))
        self._check(plan, replace(dims, batch=plan.batch))
        sets = self._differing_sets(base, plan)
        word = PlanRequest(rung.id, sets, self._differing_uses(sites, given, chosen))
        return plan.change(word=format_word(word))

    def request(self, plan: Plan) -> PlanRequest:
        """What a resolved plan's word asks for: to be changed and resolved again."""
        return parse_word(plan.word)

    def toggle_views(self, plan: Plan, dims: Dims) -> tuple[ToggleView, ...]:
        """Every toggle as it stands on this plan, with each value that can't hold and why."""
        return tuple(self._toggle_view(toggle, plan, dims) for toggle in self.toggles)

    def site_views(self, plan: Plan, dims: Dims) -> tuple[SiteView, ...]:
        """Every dispatch entry with all kernels of its phase, and why some can't serve."""
        phases = {site.name: site.phase for site in self.sites(dims, plan.prune)}
        return tuple(
            self._site_view(site, phases[site], kernel, plan, dims) for site, kernel in plan.dispatch
        )

    def faults(self, launches: Iterable[tuple[Kernel, Launch]] = ()) -> tuple[str, ...]:
        """As the registry's, over the launches of every rung too; and each rung resolves at gpt2-small."""
        found: list[str] = []
        launched = list(launches)
        everywhere = {
            name
            for pruned in (False, True)
            for site in self.sites(WORKLOADS[0].dims, pruned)
            for name in (site.name, site.phase)
        }
        for rung in self.rungs:
            found += [
                f"rung {rung.id} uses {name}, which is no site"
                for name, _ in rung.use
                if name not in everywhere
            ]
            try:
                launched += self._launches(rung)
            except UsageError as error:
                found.append(f"rung {rung.id} does not resolve: {error}")
        return (*super().faults(launched), *found)

    def _launches(self, rung: Rung) -> Iterable[tuple[Kernel, Launch]]:
        workload = WORKLOADS[0]
        plan = self.resolve(PlanRequest(rung.id), workload.dims, rung.backend)
        dims = plan_dims(workload, plan)
        for step in self.steps(plan, dims):
            for launch in _launches(step, plan, dims):
                yield step.kernel, launch

    def _toggle_view(self, toggle: Toggle, plan: Plan, dims: Dims) -> ToggleView:
        value = _text(toggle, getattr(plan, toggle.field))
        asked = self.request(plan)
        trials = (
            (other, replace(asked, sets=(*asked.sets, (toggle.name, other)))) for other in toggle.values
        )
        refused = self._refusals((trial for trial in trials if trial[0] != value), plan, dims)
        return ToggleView(toggle.name, value, toggle.values, refused, toggle.doc)

    def _site_view(self, site: str, phase: str, kernel: str, plan: Plan, dims: Dims) -> SiteView:
        asked = self.request(plan)
        kernels = self.kernels_for(phase, plan.backend)
        names = tuple(candidate.name for candidate in kernels)
        trials = ((name, replace(asked, uses=(*asked.uses, (site, name)))) for name in names)
        refused = self._refusals((trial for trial in trials if trial[0] != kernel), plan, dims)
        return SiteView(
            site,
            kernel,
            names,
            refused,
            fusing=tuple(candidate.name for candidate in kernels if candidate.fuses),
            library=tuple(candidate.name for candidate in kernels if candidate.library),
        )

    def _refusals(
        self, trials: Iterable[tuple[str, PlanRequest]], plan: Plan, dims: Dims
    ) -> tuple[tuple[str, str], ...]:
        refused = []
        for name, request in trials:
            try:
                self.resolve(request, dims, plan.backend)
            except UsageError as error:
                refused.append((name, str(error)))
        return tuple(refused)

    def _chain(self, rung: Rung) -> tuple[Rung, ...]:
        chain = [rung]
        while chain[0].before is not None:
            chain.insert(0, self.rung(chain[0].before))
        return tuple(chain)

    def _given(
        self, chain: tuple[Rung, ...], plan: Plan, dims: Dims, sites: tuple[Site, ...]
    ) -> dict[str, str]:
        """Site -> kernel as the rung has it, before what a request changes."""
        return memoize_bounded(
            self._rungs_own,
            (plan, dims),
            lambda: _dispatch(sites, self._rung_uses(chain, plan, dims, sites), {}),
        )

    @cached_property
    def _rungs_own(self) -> dict[tuple[Plan, Dims], dict[str, str]]:
        """What `_given` has found."""
        return {}

    def _rung_uses(
        self, chain: tuple[Rung, ...], plan: Plan, dims: Dims, sites: tuple[Site, ...]
    ) -> list[tuple[str, Kernel]]:
        """The chain's entries; one for a site that this plan does not have waits for a plan that has it."""
        present = {name for site in sites for name in (site.name, site.phase)}
        uses: list[tuple[str, Kernel]] = []
        for name, choice in (entry for rung in chain for entry in rung.use if entry[0] in present):
            if isinstance(choice, str):
                uses.append(self._use(name, choice, plan, dims, sites))
            else:
                kernels = [self._use(name, kernel, plan, dims, sites)[1] for kernel in choice]
                served = _served(name, kernels[0], sites)
                uses += [(site.name, self._first_able(kernels, site, plan, dims)) for site in served]
        return uses

    def _first_able(self, kernels: list[Kernel], site: Site, plan: Plan, dims: Dims) -> Kernel:
        """The first that can serve the site here; the last where none can, for it says why."""
        dims = replace(dims, batch=plan.batch)
        task = self.phase(site.phase).task(site, site.layers[0], plan, dims, False)
        return next((k for k in kernels if self._refusal(k, task, plan, dims) is None), kernels[-1])

    def _refusal(self, kernel: Kernel, task: Task, plan: Plan, dims: Dims) -> str | None:
        """Why a kernel can't take a task under this plan on this device, or None."""
        if self.arch and kernel.only_arch and kernel.only_arch != self.arch:
            return f"its instructions exist on {kernel.only_arch} only, and this device is {self.arch}"
        if self.arch and kernel.backend == "cuda" and int(self.arch.removeprefix("sm_")) < kernel.min_arch:
            return f"it needs sm_{kernel.min_arch} or later, and this device is {self.arch}"
        if plan.math not in kernel.maths:
            only = f"it computes in {' and '.join(kernel.maths)} only, and the plan's math is {plan.math}"
            return only + self._of_peers_alone(task.site.phase, plan)
        if plan.layout not in kernel.layouts:
            layouts = " and ".join(kernel.layouts)
            return f"it reads {layouts} weights only, and the plan's layout is {plan.layout}"
        return kernel.limits(task, plan, dims) if kernel.limits else None

    def _of_peers_alone(self, phase: str, plan: Plan) -> str:
        """What to say of a math that no kernel computes the phase in, where frameworks do; else nothing."""
        kernels = self.kernels_for(phase, plan.backend)
        peers = [rung.id for rung in self.rungs_of(plan.backend) if rung.kind == "peer"]
        if not peers or any(plan.math in kernel.maths for kernel in kernels):
            return ""
        return f", which only framework baselines support ({', '.join(peers)})"

    def _check_not_fixed(self, rung: Rung) -> None:
        """UsageError for a rung that changes only what can't be set here: it would be the rung before it."""
        changed = [name for name, _ in rung.fields]
        if changed and not rung.use and all(name in self.fixed for name in changed):
            raise UsageError(
                f"Rung {rung.id} changes {' and '.join(changed)} only: {self.fixed[changed[0]]}."
            )

    def _set(self, plan: Plan, name: str, text: str) -> Plan:
        toggle = self.toggle(name)
        value = _value(toggle, text)
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

    def _use(
        self, name: str, kernel_name: str, plan: Plan, dims: Dims, sites: tuple[Site, ...]
    ) -> tuple[str, Kernel]:
        phases = {site.name: site.phase for site in sites} | {site.phase: site.phase for site in sites}
        if name not in phases:
            if name in {site.name for site in self.sites(dims, not plan.prune)}:
                needed = "prune=off" if plan.prune else "prune=on"
                raise UsageError(f"This plan has no site {name}: it exists with {needed} (--set {needed}).")
            raise unknown_name("site", name, phases)
        allowed = {kernel.name: kernel for kernel in self.kernels_for(phases[name], plan.backend)}
        if kernel_name in allowed:
            return name, allowed[kernel_name]
        if kernel_name in self.kernels:
            other = self.kernels[kernel_name]
            raise UsageError(
                f"{kernel_name} can't serve {name} on {plan.backend}: it computes {', '.join(other.covers)} "
                f"on {other.backend}. Allowed: {', '.join(sorted(allowed))}."
            )
        raise unknown_name(f"kernel for {name}", kernel_name, allowed)

    def _check(self, plan: Plan, dims: Dims) -> None:
        """UsageError when some kernel can't take its tasks. Two layers show every site there is."""
        steps = self.steps(plan, replace(dims, layers=min(dims.layers, 2)))
        for step in steps:
            for task in step.tasks:
                why = self._refusal(step.kernel, task, plan, dims)
                if why:
                    raise UsageError(f"{step.kernel.name} can't serve {task.site.name}: {why}.")
        self._check_grids(steps, plan, dims)
        if plan.pdl and not any(launch.pdl for step in steps for launch in _launches(step, plan, dims)):
            raise UsageError("pdl=on: no kernel of this plan supports programmatic dependent launch.")
        if plan.fused_stores and not any(step.kernel.fused_stores for step in steps):
            raise UsageError(
                "fused_stores=on: no kernel of this plan can store bias, ReLU and residual itself."
            )

    def _check_grids(self, steps: Iterable[Step], plan: Plan, dims: Dims) -> None:
        """UsageError when a launch has more blocks than a grid can have, with the batch that fits all."""
        form = plan.change(rung="", word="", dispatch=())
        of_steps = memoize_bounded(
            self._over_grids, (form, dims), dict[tuple[str, str], tuple[int, str] | None]
        )
        found: list[tuple[int, str]] = []
        for step in steps:
            key = step.kernel.name, step.tasks[0].site.name
            if key not in of_steps:
                of_steps[key] = self._over_grid(step, plan, dims)
            over = of_steps[key]
            found += [over] if over else []
        if found:
            raise UsageError(min(found)[1])

    def _over_grid(self, step: Step, plan: Plan, dims: Dims) -> tuple[int, str] | None:
        """The largest batch that a step's launches have room for, 0 for none, and why this one has none."""
        over = _over_grid(step, plan, dims)
        if over is None:
            return None
        launch, axis = over
        batches = range(1, dims.batch + 1)
        fits = bisect_left(batches, True, key=lambda batch: self._is_over_grid(step, plan, dims, batch))
        mends = (
            f"the largest batch that fits is {fits}" if fits else f"no batch fits with a seq of {dims.seq}"
        )
        return fits, (
            f"{step.kernel.name} can't serve {step.site}: {launch.entry} would have {launch.grid[axis]} "
            f"blocks along {'xyz'[axis]}, where a grid has at most {LARGEST_GRID[axis]}; {mends}."
        )

    def _is_over_grid(self, step: Step, plan: Plan, dims: Dims, batch: int) -> bool:
        """Whether the step would have too many blocks at another batch."""
        plan, dims = plan.change(batch=batch), replace(dims, batch=batch)
        sites = {site.name: site for site in self.sites(dims, plan.prune)}
        tasks = tuple(
            self.phase(task.site.phase).task(sites[task.site.name], task.layer, plan, dims, False)
            for task in step.tasks
        )
        return _over_grid(Step(step.kernel, tasks), plan, dims) is not None

    @cached_property
    def _over_grids(self) -> dict[tuple[Plan, Dims], dict[tuple[str, str], tuple[int, str] | None]]:
        """What `_over_grid` has found, by kernel and the site that it begins with."""
        return {}

    def _differing_sets(self, base: Plan, plan: Plan) -> tuple[tuple[str, str], ...]:
        return tuple(
            (toggle.name, _text(toggle, getattr(plan, toggle.field)))
            for toggle in self.toggles
            if getattr(plan, toggle.field) != getattr(base, toggle.field)
        )

    def _differing_uses(
        self, sites: tuple[Site, ...], base: dict[str, str], wanted: dict[str, str]
    ) -> tuple[tuple[str, str], ...]:
        """The fewest entries, in pass order, that turn the rung's dispatch into the wanted one."""
        entries = []
        current = base
        for site in sites:
            if current[site.name] != wanted[site.name]:
                entry = (site.name, wanted[site.name])
                entries.append(entry)
                current = _dispatch(sites, [(site.name, self.kernel(wanted[site.name]))], current)
        return tuple(entries)


def _launches(step: Step, plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    return step.kernel.launches(step.tasks, plan, dims) if step.kernel.launches else ()


def _over_grid(step: Step, plan: Plan, dims: Dims) -> tuple[Launch, int] | None:
    """The first launch with more blocks along an axis than a grid can have, and which axis."""
    for launch in _launches(step, plan, dims):
        for axis, most in enumerate(LARGEST_GRID):
            if launch.grid[axis] > most:
                return launch, axis
    return None


def _dispatch(
    sites: tuple[Site, ...], uses: Iterable[tuple[str, Kernel]], start: dict[str, str]
) -> dict[str, str]:
    """Site -> kernel after the entries, in order. A phase's entry serves all its sites."""
    table = dict(start)
    for name, kernel in uses:
        table.update((site.name, kernel.name) for site in _served(name, kernel, sites))
    return table


def _served(name: str, kernel: Kernel, sites: tuple[Site, ...]) -> list[Site]:
    """The sites that an entry is for: the phase's or the one named, and a fusing kernel's others with it."""
    phases = kernel.covers if kernel.fuses else ()
    named = [site for site in sites if name in (site.phase, site.name)]
    if any(site.phase == name for site in named):
        return [site for site in sites if site.phase == name or site.phase in phases]
    layers = {site.layers for site in named}
    return [site for site in sites if site in named or (site.phase in phases and site.layers in layers)]


def _value(toggle: Toggle, text: str) -> Any:
    """The plan field's value that a toggle's word means. UsageError for any other word."""
    if toggle.values:
        if text not in toggle.values:
            raise UsageError(f"{toggle.name}={text!r}: {toggle.name} is one of {', '.join(toggle.values)}.")
        return text == "on" if "on" in toggle.values else text
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MOST_BATCH:
        raise UsageError(f"{toggle.name}={text!r}: {toggle.name} is a whole number from 1 to {MOST_BATCH}.")
    return int(text)


def _text(toggle: Toggle, value: Any) -> str:
    """A plan field's value as the toggle's word."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)
