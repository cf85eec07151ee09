"""The cpu backend's attention."""

from __future__ import annotations

from gputop.spec import Dims, Kernel, Plan, Task, Traffic


def _traffic(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> Traffic:
    scores = tasks[0].site.rows * dims.seq
    return Traffic(flops=float(4 * scores * dims.d_model + 6 * scores * dims.heads), pipe="fp32")


KERNELS = (
    Kernel(
        name="cpu_loops_attention",
        backend="cpu",
        idea="Scores and mixing by einsum without BLAS, every pair computed and the future masked.",
        covers=("attention",),
        entries=("cpu_loops_attention",),
        maths=("fp32",),
        traffic=_traffic,
    ),
    Kernel(
        name="cpu_blas_attention",
        backend="cpu",
        idea="Scores and mixing as one small BLAS product a head, every pair computed and the future masked.",
        covers=("attention",),
        entries=("cpu_blas_attention",),
        maths=("fp32",),
        traffic=_traffic,
    ),
)
