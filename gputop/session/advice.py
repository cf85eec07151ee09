"""One line of advice: the largest excess, what binds it, and what would spend less of that.

The excess is over `reach` if that is known: a floor below what one launch takes ranks nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from gputop.plan.toggles import toggle_text
from gputop.plan.types import Dims, Plan, PlanRequest
from gputop.planner.plan_views import kernel_flips
from gputop.planner.resolver import Resolver
from gputop.results.records import Row
from gputop.results.row_figures import binds_words, bound_of, excess_s
from gputop.session.cost_model import SiteModel
from gputop.session.pass_forecast import pass_s, savings
from gputop.util.errors import UsageError
from gputop.util.units import seconds, significant

LEAST_GAIN = 1.005
"""A forecast below this is nothing: the model is not that good."""
MOST_NAMED = 2

Neighbour = tuple[str, tuple[SiteModel, ...]]
"""A plan one flip away: the flip (`threads=all`, `w1:cpu_blas_gemm`) and the models of its sites."""


@dataclass(frozen=True, slots=True)
class Change:
    """A flip, and what the model says of it."""

    word: str
    after_s: float
    """The whole pass after it."""
    gain: float


def neighbours(
    catalog: Resolver, plan: Plan, dims: Dims, worst: str, models: Callable[[Plan], tuple[SiteModel, ...]]
) -> tuple[Neighbour, ...]:
    """Every plan one flip away that may change what the site `worst` spends and is not refused.

    `models` gives the site models of a plan not prepared. Another math or batch would answer another
    question, and is left out.
    """
    found = []
    for word, request in _flips(catalog, plan, dims, worst):
        with suppress(UsageError):
            found.append((word, models(catalog.resolve(request, dims, plan.backend))))
    return tuple(found)


def advise(rows: tuple[Row, ...], sites: tuple[SiteModel, ...], near: tuple[Neighbour, ...]) -> str:
    """The line for a plan's rows; empty where nothing was measured by phase or no floor is known."""
    total_s, name = pass_s(rows), worst_site(rows)
    if name is None or total_s is None:
        return ""
    head = largest_excess(rows)
    changes = sorted(_gains(rows, name, total_s, sites, near), key=lambda change: change.after_s)
    if not changes:
        return f"{head} No toggle or kernel here is forecast to spend less of it."
    named = ", or ".join(
        f"{change.word} ({seconds(change.after_s)}, {significant(change.gain)}x)"
        for change in changes[:MOST_NAMED]
    )
    return f"{head} These would reduce it (forecast of the pass, now {seconds(total_s)}): {named}."


def largest_excess(rows: Iterable[Row]) -> str:
    """Return the sentence on the site with the largest excess and what binds it; empty if there is none."""
    timed = {row.phase: row for row in _timed(rows)}
    name = worst_site(timed.values())
    if name is None:
        return ""
    worst = timed[name]
    bound, bound_s = bound_of(worst)
    spent_s = (bound_s or 0.0) + (excess_s(worst) or 0.0)
    times = significant(spent_s / (bound_s or spent_s))
    return f"Largest excess: {name}, {seconds(worst.time_s)}, {times} times its {bound}; {_binds(worst)}."


def worst_site(rows: Iterable[Row]) -> str | None:
    """The site with the largest excess; None where nothing was measured by phase or no floor is known."""
    worst = max(_timed(rows), key=lambda row: excess_s(row) or 0.0, default=None)
    return worst.phase if worst else None


def _timed(rows: Iterable[Row]) -> Iterator[Row]:
    return (row for row in rows if row.kernel and row.time_s and row.floor_s)


def _binds(row: Row) -> str:
    if row.binds == "unknown":
        near = f" ({row.runner_up} comes nearest)" if row.runner_up else ""
        return f"more than half of it is unexplained{near}"
    return f"{binds_words(row)} binds"


def _gains(
    rows: tuple[Row, ...],
    worst: str,
    total_s: float,
    sites: tuple[SiteModel, ...],
    near: Iterable[Neighbour],
) -> Iterator[Change]:
    """The flips that are forecast to shorten the site with the largest excess, and the pass with it."""
    for word, after in near:
        found = savings(rows, sites, after)
        saved_of_worst_s = sum(item.saved_s for item in found if worst in item.sites)
        after_s = total_s - sum(item.saved_s for item in found)
        if saved_of_worst_s > 0 and after_s > 0 and total_s / after_s >= LEAST_GAIN:
            yield Change(word, after_s, total_s / after_s)


def _flips(catalog: Resolver, plan: Plan, dims: Dims, worst: str) -> Iterator[tuple[str, PlanRequest]]:
    """Every toggle's other values; other kernels at the site itself, and any that fuses elsewhere."""
    for toggle in catalog.toggles:
        value = toggle_text(getattr(plan, toggle.field))
        for other in toggle.values:
            if toggle.name != "math" and other != value:
                yield f"{toggle.name}={other}", plan.request.with_set(toggle.name, other)
    for site, own in plan.dispatch:
        reaches = site in worst.split("+") or catalog.kernel(own.kernel).fuses
        for kernel, choice, request in kernel_flips(catalog, plan, dims, site):
            if choice != own and (reaches or kernel.fuses):
                yield f"{site}:{choice}", request
