"""What can be changed on a resolved plan, and what refuses the rest: toggles, and the kernels of a site."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from gputop.plan.choices import Candidate, SiteChoices, SiteView, ToggleView
from gputop.plan.rungs import Toggle
from gputop.plan.toggles import toggle_text
from gputop.plan.types import Dims, Kernel, KernelChoice, Plan, PlanRequest, Task
from gputop.planner.resolver import Resolver
from gputop.util.errors import UsageError, unknown_name


def toggle_views(resolver: Resolver, plan: Plan, dims: Dims) -> tuple[ToggleView, ...]:
    """Return every toggle as it stands on a plan, with each value that can't hold and why."""
    return tuple(_toggle_view(resolver, toggle, plan, dims) for toggle in resolver.toggles)


def site_views(resolver: Resolver, plan: Plan, dims: Dims) -> tuple[SiteView, ...]:
    """Return every dispatch entry of a plan, and which other kernels take its task."""
    if plan.peer:
        return ()
    tasks = resolver.site_tasks(plan, dims)
    return tuple(
        SiteView(site, choice, _others(resolver, tasks[site], choice.kernel, plan, dims))
        for site, choice in plan.dispatch
    )


def site_choices(resolver: Resolver, plan: Plan, dims: Dims, site: str) -> SiteChoices:
    """Return every kernel of one site's phase, with the plan that it makes or why it can't serve.

    Raise UsageError for a site that the plan does not have.
    """
    dispatch = dict(plan.dispatch)
    if site not in dispatch:
        raise unknown_name("site", site, dispatch)
    candidates: list[Candidate] = []
    refused: dict[str, str] = {}
    for kernel, choice, request in kernel_flips(resolver, plan, dims, site):
        try:
            asked = resolver.resolve(request, dims, plan.backend).request
            candidates.append(Candidate(choice, asked, kernel.fuses, bool(kernel.library)))
        except UsageError as error:
            refused.setdefault(kernel.name, str(error))
    able = {candidate.choice.kernel for candidate in candidates}
    unable = tuple((name, why) for name, why in refused.items() if name not in able)
    return SiteChoices(site, dispatch[site], tuple(candidates), unable)


def kernel_flips(
    resolver: Resolver, plan: Plan, dims: Dims, site: str
) -> Iterator[tuple[Kernel, KernelChoice, PlanRequest]]:
    """Yield every kernel of a site's phase in every number of parts, and the plan with it, not resolved."""
    tasks = resolver.site_tasks(plan, dims)
    for kernel in resolver.kernels_for(tasks[site].site.phase, plan.backend):
        for splits in kernel.splits or (None,):
            choice = KernelChoice(kernel.name, splits)
            yield kernel, choice, _with_kernel(resolver, plan, dims, tasks, site, kernel, choice)


def _with_kernel(
    resolver: Resolver,
    plan: Plan,
    dims: Dims,
    tasks: Mapping[str, Task],
    site: str,
    kernel: Kernel,
    choice: KernelChoice,
) -> PlanRequest:
    """The plan with a kernel at one site.

    A phase's own site takes along those of its others that run the same kernel and can run the new one. All
    are named, since an entry of the phase's name would be for each of them.
    """
    asked = plan.request
    if kernel.fuses:
        others = tuple(use for use in asked.uses if use[0] != site)
        return replace(asked, uses=(*others, (site, choice)))
    dispatch = dict(plan.dispatch)
    phase = tasks[site].site.phase
    entries: dict[str, KernelChoice] = {}
    for name, task in tasks.items():
        # What a kernel fuses stays together: by itself such a site can't be named.
        apart = name == site or not resolver.kernel(dispatch[name].kernel).fuses
        if task.site.phase != phase or not apart:
            continue
        same = site == phase and dispatch[name] == dispatch[site]
        takes = name == site or (same and resolver.takes(kernel, task, plan, dims, choice.splits))
        entries[name] = choice if takes else dispatch[name]
    elsewhere = tuple(use for use in asked.uses if use[0] not in entries and use[0] != phase)
    return replace(asked, uses=(*elsewhere, *entries.items()))


def _others(resolver: Resolver, task: Task, own: str, plan: Plan, dims: Dims) -> tuple[str, ...]:
    """Kernels besides the plan's own that take the task, in some number of parts."""
    return tuple(
        kernel.name
        for kernel in resolver.kernels_for(task.site.phase, plan.backend)
        if kernel.name != own and resolver.takes(kernel, task, plan, dims)
    )


def _toggle_view(resolver: Resolver, toggle: Toggle, plan: Plan, dims: Dims) -> ToggleView:
    value = toggle_text(getattr(plan, toggle.field))
    refused = []
    for other in toggle.values:
        try:
            if other != value:
                resolver.resolve(plan.request.with_set(toggle.name, other), dims, plan.backend)
        except UsageError as error:
            refused.append((other, str(error)))
    return ToggleView(toggle.name, value, toggle.values, tuple(refused), toggle.doc)
