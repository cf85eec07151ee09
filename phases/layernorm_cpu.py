"""The cpu backend's layernorm."""

from __future__ import annotations

from gputop.phases.gemm_cpu import ONE_CORE
from gputop.plan.launch_shape import LaunchShape, call_shape
from gputop.plan.types import Dims, Kernel, Plan, Task


def _shapes(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[LaunchShape, ...]:
    site = tasks[0].site
    per_element = 5 if plan.fold else 7
    return (call_shape(float(per_element * site.rows * site.columns), ONE_CORE),)


KERNELS = (
    Kernel(
        name="cpu_layernorm",
        backend="cpu",
        idea="NumPy row by row sums and element by element arithmetic, a pass over the data for each.",
        covers=("ln1", "ln2", "lnf"),
        entries=("cpu_layernorm",),
        maths=("fp32",),
        shapes=_shapes,
    ),
)
