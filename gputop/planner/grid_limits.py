"""Whether the launches of a plan fit a grid, and the largest batch whose launches do."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import replace

from gputop.plan.types import Dims, Launch, Plan, Step
from gputop.planner.kernel_calls import launches_of
from gputop.planner.registry import Registry
from gputop.util.errors import UsageError

LARGEST_GRID = (2**31 - 1, 65535, 65535)
"""Blocks that a launch can have along x, y and z on every CUDA device (CUDA programming guide)."""


def check_grids(registry: Registry, steps: Iterable[Step], plan: Plan, dims: Dims) -> None:
    """Raise UsageError if a launch has more blocks than a grid can have, with the batch that fits all."""
    found = [fault for step in steps if (fault := _over_grid(registry, step, plan, dims))]
    if found:
        raise UsageError(min(found)[1])


def _over_grid(registry: Registry, step: Step, plan: Plan, dims: Dims) -> tuple[int, str] | None:
    """The largest batch that a step's launches have room for, 0 for none, and why this one has none."""
    over = _too_large(step, plan, dims)
    if over is None:
        return None
    launch, axis = over
    batches = range(1, dims.batch + 1)
    fits = bisect_left(batches, True, key=lambda batch: _is_too_large(registry, step, plan, dims, batch))
    largest = f"the largest batch that fits is {fits}" if fits else f"no batch fits with a seq of {dims.seq}"
    return fits, (
        f"{step.choice} can't serve {step.site}: {launch.entry} would have {launch.grid[axis]} "
        f"blocks along {'xyz'[axis]}, where a grid has at most {LARGEST_GRID[axis]}; {largest}."
    )


def _is_too_large(registry: Registry, step: Step, plan: Plan, dims: Dims, batch: int) -> bool:
    """Return whether the step would have too many blocks at another batch."""
    plan, dims = plan.change(batch=batch), replace(dims, batch=batch)
    sites = {site.name: site for site in registry.sites(dims, plan.prune)}
    tasks = (
        replace(registry.site_task(sites[task.site.name], plan, dims), splits=task.splits)
        for task in step.tasks
    )
    return _too_large(Step(step.kernel, tuple(tasks)), plan, dims) is not None


def _too_large(step: Step, plan: Plan, dims: Dims) -> tuple[Launch, int] | None:
    """The first launch with more blocks along an axis than a grid can have, and which axis."""
    for launch in launches_of(step, plan, dims):
        for axis, most in enumerate(LARGEST_GRID):
            if launch.grid[axis] > most:
                return launch, axis
    return None
