"""The cpu backend's embedding."""

from __future__ import annotations

from gputop.phases.gemm_cpu import ONE_CORE
from gputop.plan.launch_shape import LaunchShape, call_shape
from gputop.plan.types import Dims, Kernel, Plan, Task


def _shapes(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[LaunchShape, ...]:
    site = tasks[0].site
    return (call_shape(float(site.rows * site.columns), ONE_CORE),)


KERNELS = (
    Kernel(
        name="cpu_embed",
        backend="cpu",
        idea="NumPy gathers the rows and adds the positions.",
        covers=("embed",),
        entries=("cpu_embed",),
        maths=("fp32",),
        shapes=_shapes,
    ),
)
