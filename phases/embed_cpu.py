"""The cpu backend's embedding."""

from __future__ import annotations

from gputop.phases.gemm_cpu import ONE_CORE
from gputop.plan.traffic import Traffic
from gputop.plan.types import Dims, Kernel, Plan, Task


def _traffic(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> Traffic:
    site = tasks[0].site
    return Traffic(flops=float(site.rows * site.columns), pipe=ONE_CORE)


KERNELS = (
    Kernel(
        name="cpu_embed",
        backend="cpu",
        idea="NumPy gathers the rows and adds the positions.",
        covers=("embed",),
        entries=("cpu_embed",),
        maths=("fp32",),
        traffic=_traffic,
    ),
)
