"""Calls the functions of a kernel's record. Whatever they raise is a fault of that kernel alone."""

from __future__ import annotations

from gputop.phases import first_line
from gputop.plan.launch_shape import LaunchShape
from gputop.plan.types import Dims, Kernel, Launch, Plan, Step, Task
from gputop.util.errors import GputopError, UsageError


def refusal_of(kernel: Kernel, task: Task, plan: Plan, dims: Dims) -> str | None:
    """Return why a kernel can't take a task by its own limits, or None."""
    try:
        return kernel.limits(task, plan, dims) if kernel.limits else None
    except Exception as error:
        return f"its record is broken, limits raises {first_line(error)}"


def launches_of(step: Step, plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    """Return what a step launches, nothing if its kernel launches nothing. Raise UsageError if it fails."""
    kernel = step.kernel
    try:
        return kernel.launches(step.tasks, plan, dims) if kernel.launches else ()
    except GputopError:
        raise
    except Exception as error:
        raise _broken(kernel, "launches", error) from error


def shapes_of(step: Step, plan: Plan, dims: Dims) -> tuple[LaunchShape, ...]:
    """Return what a kernel declares of a step's launches, if it does so. Raise UsageError if it fails."""
    kernel = step.kernel
    try:
        return kernel.shapes(step.tasks, plan, dims) if kernel.shapes else ()
    except Exception as error:
        raise _broken(kernel, "shapes", error) from error


def _broken(kernel: Kernel, part: str, error: Exception) -> UsageError:
    return UsageError(f"The record of {kernel.name} is broken, {part} raises {first_line(error)}.")
