"""The cpu backend's attention."""

from __future__ import annotations

from gputop.phases.gemm_cpu import ONE_CORE, blas_pipe
from gputop.plan.traffic import Traffic
from gputop.plan.types import Dims, Kernel, Plan, Task


def _flops(task: Task, dims: Dims) -> float:
    scores = task.site.rows * dims.seq
    return float(4 * scores * dims.d_model + 6 * scores * dims.heads)


def _loops_traffic(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> Traffic:
    return Traffic(flops=_flops(tasks[0], dims), pipe=ONE_CORE)


def _blas_traffic(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> Traffic:
    return Traffic(flops=_flops(tasks[0], dims), pipe=blas_pipe(plan))


KERNELS = (
    Kernel(
        name="cpu_loops_attention",
        backend="cpu",
        idea="Scores and mixing by einsum without BLAS, every pair computed and the future masked.",
        covers=("attention",),
        entries=("cpu_loops_attention",),
        maths=("fp32",),
        traffic=_loops_traffic,
    ),
    Kernel(
        name="cpu_blas_attention",
        backend="cpu",
        idea="Scores and mixing as one small BLAS product a head, every pair computed and the future masked.",
        covers=("attention",),
        entries=("cpu_blas_attention",),
        maths=("fp32",),
        repeats_bits=False,
        traffic=_blas_traffic,
    ),
)
