"""The cpu backend's GEMMs."""

from __future__ import annotations

from gputop.plan.launch_shape import LaunchShape, call_shape
from gputop.plan.types import Dims, Kernel, Plan, Task

ONE_CORE = "fp32_1"
"""The ceiling of NumPy's own loops, which never leave the calling thread."""


def blas_pipe(plan: Plan) -> str:
    """The ceiling of BLAS with the plan's threads."""
    return "fp32" if plan.threads == "all" else ONE_CORE


def _flops(task: Task) -> float:
    return 2.0 * task.site.rows * task.site.columns * task.site.inner


def _loops_shapes(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[LaunchShape, ...]:
    return (call_shape(_flops(tasks[0]), ONE_CORE),)


def _blas_shapes(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[LaunchShape, ...]:
    return (call_shape(_flops(tasks[0]), blas_pipe(plan)),)


COVERS = ("qkv", "wo", "w1", "w2", "head")

KERNELS = (
    Kernel(
        name="cpu_loops_gemm",
        backend="cpu",
        idea="NumPy's einsum without BLAS: plain nested loops on one core, vectorised only in the innermost.",
        covers=COVERS,
        entries=("cpu_loops_gemm",),
        maths=("fp32",),
        shapes=_loops_shapes,
    ),
    Kernel(
        name="cpu_blas_gemm",
        backend="cpu",
        idea="The BLAS that NumPy carries: blocked for cache and registers, on one thread or all.",
        covers=COVERS,
        entries=("cpu_blas_gemm",),
        maths=("fp32",),
        bitwise_row_invariant=False,
        repeats_bits=False,
        shapes=_blas_shapes,
    ),
)
