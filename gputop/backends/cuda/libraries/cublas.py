"""cuBLAS as a kernel: row-major products on the column-major library, by its own C interface."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gputop.backends.argument_words import Address
from gputop.backends.cuda.runtime.context import Context
from gputop.backends.cuda.runtime.status_codes import CUBLAS, UNKNOWN, explain
from gputop.plan.types import Activation, Argument, Layout, Math, Scratch, View, WeightView
from gputop.util import install_hints
from gputop.util.errors import GputopError, Unavailable, UsageError

COMPUTE = {"fp32": 68, "tf32": 77}
"""cublasComputeType_t: CUBLAS_COMPUTE_32F and CUBLAS_COMPUTE_32F_FAST_TF32."""
OP_N, OP_T = 0, 1
CUDA_R_32F = 0
GEMM_DEFAULT = -1
WORKSPACE_BYTES = 32 << 20
"""What the library itself takes on Hopper, and enough for its split products elsewhere."""


@dataclass(frozen=True, slots=True)
class Gemm:
    """`GemmArgs` of kernels/include/args.cuh with addresses: c = a w (+ bias) (+ residual), row-major."""

    a: int
    w: int
    bias: int
    residual: int
    c: int
    rows: int
    columns: int
    inner: int
    lda: int
    ldw: int
    ldr: int
    ldc: int
    activation: Activation | None = None
    """Applied to the product and its bias."""


def gemm_arguments(args: tuple[Argument, ...], address: Address, activation: Activation) -> Gemm:
    """The arguments of a library launch, which are those that our own GEMMs take.

    `activation`: the model's, applied if the arguments ask for one.
    """
    pointers = [address(arg) if isinstance(arg, View | WeightView | Scratch) else 0 for arg in args[:5]]
    rows, columns, inner, lda, ldw, ldr, ldc, activate = (int(_number(arg)) for arg in args[6:14])
    a, w, bias, residual, c = pointers
    applied = activation if activate else None
    return Gemm(a, w, bias, residual, c, rows, columns, inner, lda, ldw, ldr, ldc, applied)


class Cublas:
    """A handle of its own, bound to one context's stream; every call can also be captured.

    By the library itself, since CuPy's binding refuses to be captured. Its workspace is ours, so that
    no call allocates; its math mode is the default one, each product names its own compute type.
    """

    def __init__(self, context: Context) -> None:
        """Unavailable without cuBLAS; UsageError when the device has no memory for the workspace."""
        self._library = _load()
        self._workspace = context.array((WORKSPACE_BYTES,), np.uint8, "cuBLAS's workspace")
        # cuBLAS reads its factors from the host at each call.
        self._one, self._zero = ctypes.c_float(1.0), ctypes.c_float(0.0)
        self._handle = ctypes.c_void_p()
        self._tried("cublasCreate_v2", ctypes.byref(self._handle))
        # The stream first: setting it takes a workspace away.
        self._tried("cublasSetStream_v2", self._handle, ctypes.c_void_p(context.stream.ptr))
        workspace = ctypes.c_void_p(self._workspace.data.ptr)
        self._tried("cublasSetWorkspace_v2", self._handle, workspace, ctypes.c_size_t(WORKSPACE_BYTES))

    def gemm(self, gemm: Gemm, math: Math, layout: Layout) -> Callable[[], None]:
        """Enqueues the product when called. UsageError for a math that it is not offered in here.

        Row-major c = a w is column-major c' = w' a': the library is given w first.
        """
        if math not in COMPUTE:
            raise UsageError(f"cublas computes {' and '.join(COMPUTE)} here, not {math}.")
        weight = Factor(gemm.w, CUDA_R_32F, gemm.ldw, OP_T if layout == "row" else OP_N)
        activation = Factor(gemm.a, CUDA_R_32F, gemm.lda)
        shape = (gemm.columns, gemm.rows, gemm.inner)
        return self._product(shape, weight, activation, gemm.c, gemm.ldc, COMPUTE[math])

    def square(self, a: int, b: int, c: int, side: int, word: int, compute: int) -> Callable[[], None]:
        """c = a b of `side` x `side` in data type `word`, c in fp32: the library's own best rate."""
        shape = (side, side, side)
        return self._product(shape, Factor(a, word, side), Factor(b, word, side), c, side, compute)

    def close(self) -> None:
        """Everything enqueued must be done."""
        if self._handle:
            self._library.cublasDestroy_v2(self._handle)
            self._handle = ctypes.c_void_p()
            self._workspace = None

    def _product(
        self, shape: tuple[int, int, int], left: Factor, right: Factor, c: int, ldc: int, compute: int
    ) -> Callable[[], None]:
        """c = left right, column-major: [m, k] by [k, n] of `shape` = (m, n, k)."""
        one, zero = ctypes.byref(self._one), ctypes.byref(self._zero)
        arguments = (
            self._handle, left.op, right.op, *shape, one, *left.operand(), *right.operand(),
            zero, ctypes.c_void_p(c), CUDA_R_32F, ldc, compute, GEMM_DEFAULT,
        )  # fmt: skip
        call = self._library.cublasGemmEx

        def launch() -> None:
            status = call(*arguments)
            if status:
                raise self._explained(status, "cublas gemm {}x{}x{}".format(*shape))

        return launch

    def _tried(self, function: str, *arguments: Any) -> None:
        status = getattr(self._library, function)(*arguments)
        if status:
            raise self._explained(status, function)

    def _explained(self, status: int, what: str) -> GputopError:
        name = self._library.cublasGetStatusName(status).decode()
        return explain(CUBLAS.get(status, UNKNOWN), name, what)


@dataclass(frozen=True, slots=True)
class Factor:
    """One side of a column-major product."""

    address: int
    word: int
    """cudaDataType."""
    ld: int
    op: int = OP_N

    def operand(self) -> tuple[ctypes.c_void_p, int, int]:
        return ctypes.c_void_p(self.address), self.word, self.ld


def _load() -> Any:
    """The cuBLAS that this process has loaded, else the one that CUDA's own packages bring."""
    from cuda.pathfinder import load_nvidia_dynamic_lib

    try:
        found = load_nvidia_dynamic_lib("cublas")
    except RuntimeError:
        raise Unavailable(f"cuBLAS can't be loaded; {install_hints.extra('cuda13')}.") from None
    library = ctypes.CDLL(found.abs_path)
    library.cublasGetStatusName.restype = ctypes.c_char_p
    return library


def _number(arg: Argument) -> int | float:
    if not isinstance(arg, int | float):
        raise UsageError(f"A library launch takes the arguments of a GEMM, not {arg!r}.")
    return arg
