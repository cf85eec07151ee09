"""cuBLAS as a kernel: row-major products on the column-major library, through CuPy's binding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gputop.backends.cuda.faults import explained
from gputop.backends.cuda.pack import Address
from gputop.errors import BadInput
from gputop.spec import Argument, Layout, Math, Scratch, View, WeightView

COMPUTE = {"fp32": 68, "tf32": 77}
"""cublasComputeType_t: CUBLAS_COMPUTE_32F and CUBLAS_COMPUTE_32F_FAST_TF32."""
OP_N, OP_T = 0, 1
CUDA_R_32F = 0
GEMM_DEFAULT = -1


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
    relu: bool


def gemm_arguments(args: tuple[Argument, ...], address: Address) -> Gemm:
    """The arguments of a library launch, which are those that our own GEMMs take."""
    pointers = [address(arg) if isinstance(arg, View | WeightView | Scratch) else 0 for arg in args[:5]]
    rows, columns, inner, lda, ldw, ldr, ldc, relu = (int(_number(arg)) for arg in args[6:14])
    a, w, bias, residual, c = pointers
    return Gemm(a, w, bias, residual, c, rows, columns, inner, lda, ldw, ldr, ldc, bool(relu))


class Cublas:
    """A handle of its own on the current device; products run on CuPy's current stream."""

    def __init__(self) -> None:
        from cupy_backends.cuda.libs import cublas

        self._cublas = cublas
        with explained("creating a cuBLAS handle"):
            self._handle = cublas.create()
        # cuBLAS reads its factors from the host at each call.
        self._one = np.ones(1, np.float32)
        self._zero = np.zeros(1, np.float32)

    @property
    def version(self) -> str:
        number = self._cublas.getVersion(self._handle)
        return f"{number // 10000}.{number // 100 % 100}"

    def gemm(self, gemm: Gemm, math: Math, layout: Layout) -> Callable[[], None]:
        """Enqueues the product when called. BadInput for a math that it is not offered in here.

        Row-major c = a w is column-major c' = w' a': the library is given w first.
        """
        if math not in COMPUTE:
            raise BadInput(f"cublas computes {' and '.join(COMPUTE)} here, not {math}.")
        call, handle, compute = self._cublas.gemmEx, self._handle, COMPUTE[math]
        weight_op = OP_T if layout == "row" else OP_N
        one, zero = self._one.ctypes.data, self._zero.ctypes.data

        def launch() -> None:
            with explained("cublas gemm"):
                call(
                    handle, weight_op, OP_N, gemm.columns, gemm.rows, gemm.inner,
                    one, gemm.w, CUDA_R_32F, gemm.ldw, gemm.a, CUDA_R_32F, gemm.lda,
                    zero, gemm.c, CUDA_R_32F, gemm.ldc, compute, GEMM_DEFAULT,
                )  # fmt: skip

        return launch

    def square(self, a: int, b: int, c: int, side: int, word: int, compute: int) -> Callable[[], None]:
        """c = a b of `side` x `side` in data type `word`, c in fp32: the library's own best rate."""
        call, handle = self._cublas.gemmEx, self._handle
        one, zero = self._one.ctypes.data, self._zero.ctypes.data

        def launch() -> None:
            with explained("cublas gemm"):
                call(
                    handle, OP_N, OP_N, side, side, side, one, a, word, side, b, word, side,
                    zero, c, CUDA_R_32F, side, compute, GEMM_DEFAULT,
                )  # fmt: skip

        return launch

    def close(self) -> None:
        if self._handle:
            self._cublas.destroy(self._handle)
            self._handle = 0


def _number(arg: Argument) -> int | float:
    if not isinstance(arg, int | float):
        raise BadInput(f"A library launch takes the arguments of a GEMM, not {arg!r}.")
    return arg
