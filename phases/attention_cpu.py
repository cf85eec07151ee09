"""The cpu backend's attention."""

from __future__ import annotations

from gputop.phases.gemm_cpu import ONE_CORE, blas_pipe
from gputop.plan.launch_shape import LaunchShape, call_shape
from gputop.plan.types import Dims, Kernel, Plan, Task


def _flops(task: Task, dims: Dims) -> float:
    scores = task.site.rows * dims.seq
    return float(4 * scores * dims.d_model + 6 * scores * dims.heads)


def _loops_shapes(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[LaunchShape, ...]:
    return (call_shape(_flops(tasks[0], dims), ONE_CORE),)


def _blas_shapes(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[LaunchShape, ...]:
    return (call_shape(_flops(tasks[0], dims), blas_pipe(plan)),)


KERNELS = (
    Kernel(
        name="cpu_loops_attention",
        backend="cpu",
        idea="Scores and mixing by einsum without BLAS, every pair computed and the future masked.",
        covers=("attention",),
        entries=("cpu_loops_attention",),
        maths=("fp32",),
        shapes=_loops_shapes,
    ),
    Kernel(
        name="cpu_blas_attention",
        backend="cpu",
        idea="Scores and mixing as one small BLAS product a head, every pair computed and the future masked.",
        covers=("attention",),
        entries=("cpu_blas_attention",),
        maths=("fp32",),
        repeats_bits=False,
        shapes=_blas_shapes,
    ),
)
