"""The plan that a search starts from, if the toggles asked for refuse some of its kernels their task."""

from __future__ import annotations

from dataclasses import replace

from gputop.backends.base import Say
from gputop.plan.toggles import toggle_value
from gputop.plan.types import Dims, KernelChoice, Plan, PlanRequest, Task
from gputop.planner.registry import divided
from gputop.session.context import SessionContext
from gputop.session.cost_model import Machine
from gputop.session.search_space import priced, pricing_machine
from gputop.util.errors import UsageError


def startable(bench: SessionContext, request: PlanRequest, say: Say) -> PlanRequest:
    """Return the request itself if it can be a plan. Else name, at each site whose kernel the toggles refuse
    (weights of another layout), the able one that the model prices least.

    UsageError, that of the request itself, if that makes no plan either.
    """
    try:
        bench.resolve(request)
        return request
    except UsageError as error:
        refused = error
    try:
        substitutes = _substitutes(bench, request, pricing_machine(bench, say))
        filled = replace(request, uses=(*request.uses, *substitutes))
        bench.resolve(filled)
    except UsageError:
        raise refused from None
    return filled


def _substitutes(
    bench: SessionContext, request: PlanRequest, machine: Machine
) -> tuple[tuple[str, KernelChoice], ...]:
    """Site -> kernel, of the sites whose own kernel can't serve."""
    catalog, own = bench.catalog, bench.resolve(PlanRequest(request.rung))
    toggles = ((catalog.toggle(name), text) for name, text in request.sets)
    plan = own.change(**{toggle.field: toggle_value(toggle, text) for toggle, text in toggles})
    dims, table, asked = bench.dims(plan), dict(own.dispatch), dict(request.uses)
    found: list[tuple[str, KernelChoice]] = []
    for site, task in catalog.site_tasks(plan, dims).items():
        choice = table.get(site)
        kernel = catalog.kernel(choice.kernel) if choice else None
        if site in asked or task.site.phase in asked:
            continue
        if choice and kernel and catalog.takes(kernel, task, plan, dims, choice.splits):
            continue
        found.append((site, _least(bench, plan, dims, task, machine)))
    return tuple(found)


def _least(bench: SessionContext, plan: Plan, dims: Dims, task: Task, machine: Machine) -> KernelChoice:
    """The kernel of our own that can serve and is priced least. UsageError if none can."""
    catalog = bench.catalog
    prices: list[tuple[float, KernelChoice]] = []
    for kernel in catalog.kernels_for(task.site.phase, plan.backend):
        if kernel.fuses:
            continue
        for splits in catalog.able_splits(kernel, task, plan, dims):
            choice = KernelChoice(kernel.name, splits)
            price_s = priced(catalog, plan, dims, divided(task, choice), choice, machine).model_s
            if price_s is not None:
                prices.append((price_s, choice))
    if not prices:
        raise UsageError(f"No kernel can serve {task.site.name} with {plan.word}.")
    return min(prices, key=lambda pair: pair[0])[1]
