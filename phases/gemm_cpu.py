"""The cpu backend's GEMMs."""

from __future__ import annotations

from gputop.spec import Dims, Kernel, Plan, Task, Traffic


def _traffic(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> Traffic:
    site = tasks[0].site
    return Traffic(flops=2.0 * site.rows * site.columns * site.inner, pipe="fp32")


COVERS = ("qkv", "wo", "w1", "w2", "head")

KERNELS = (
    Kernel(
        name="cpu_loops_gemm",
        backend="cpu",
        idea="NumPy's einsum without BLAS: plain nested loops on one core, vectorised only in the innermost.",
        covers=COVERS,
        entries=("cpu_loops_gemm",),
        maths=("fp32",),
        traffic=_traffic,
    ),
    Kernel(
        name="cpu_blas_gemm",
        backend="cpu",
        idea="The BLAS that NumPy carries: blocked for cache and registers, on one thread or all.",
        covers=COVERS,
        entries=("cpu_blas_gemm",),
        maths=("fp32",),
        traffic=_traffic,
    ),
)
