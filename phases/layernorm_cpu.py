"""The cpu backend's layernorm."""

from __future__ import annotations

from gputop.phases.gemm_cpu import ONE_CORE
from gputop.plan.traffic import Traffic
from gputop.plan.types import Dims, Kernel, Plan, Task


def _traffic(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> Traffic:
    site = tasks[0].site
    per_element = 5 if plan.fold else 7
    return Traffic(flops=float(per_element * site.rows * site.columns), pipe=ONE_CORE)


KERNELS = (
    Kernel(
        name="cpu_layernorm",
        backend="cpu",
        idea="NumPy row by row sums and element by element arithmetic, a pass over the data for each.",
        covers=("ln1", "ln2", "lnf"),
        entries=("cpu_layernorm",),
        maths=("fp32",),
        traffic=_traffic,
    ),
)
