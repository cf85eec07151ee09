"""The vendor's libraries as GEMM kernels, given the same arguments as ours."""

from __future__ import annotations

from gputop.phases.gemm_cuda import COVERS, arguments, parts, store_launch
from gputop.plan.types import Dims, Kernel, Launch, Plan, Task


def _library_launches(
    library: str, operation: str, fuses: bool, tasks: tuple[Task, ...], plan: Plan, dims: Dims
) -> tuple[Launch, ...]:
    task, fused = tasks[0], fuses and plan.fused_stores
    products = tuple(
        Launch(operation, (0, 0, 0), (0, 0, 0), arguments(part, fused, 1), library=library)
        for part in parts(task, plan, dims)
    )
    return (*products, *(() if fused else store_launch(task)))


def _library_limits(fuses: bool, task: Task, plan: Plan, dims: Dims) -> str | None:
    if fuses and plan.fused_stores and task.activation == "gelu":
        return "the library's epilogue has GELU by tanh alone (gelu_new), and the model's is exact (gelu)"
    return None


def _library(name: str, library: str, operation: str, fuses: bool, idea: str) -> Kernel:
    return Kernel(
        name=name,
        backend="cuda",
        idea=idea,
        covers=COVERS,
        maths=("fp32", "tf32"),
        fused_stores=fuses,
        library=library,
        repeats_bits=False,
        limits=lambda task, plan, dims: _library_limits(fuses, task, plan, dims),
        launches=lambda tasks, plan, dims: _library_launches(library, operation, fuses, tasks, plan, dims),
    )


# Equal rows must give equal bits in a batch. cuBLASLt's algorithms are asked for that
# one by one (backends/cuda/libraries/cublaslt.py); cuBLAS leaves no choice, so the gate decides there.
KERNELS = (
    _library(
        "cublas",
        "cublas",
        "gemm",
        False,
        "The vendor's library chooses; bias, activation and residual follow in a launch of ours.",
    ),
    _library(
        "cublaslt",
        "cublaslt",
        "gemm",
        True,
        "The same library with bias, activation and residual in its epilogue; its heuristic chooses, in a "
        "batch among those that compute equal sequences alike.",
    ),
    _library(
        "cublaslt_best",
        "cublaslt",
        "gemm_best",
        True,
        "The fastest of the heuristic's first 16 algorithms, measured on this device beforehand; in a batch "
        "of those that compute equal sequences alike.",
    ),
)
