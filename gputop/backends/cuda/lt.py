"""cuBLASLt as a kernel: a product with bias, residual and ReLU in its epilogue, by nvmath's binding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from gputop.backends.cuda.context import Context
from gputop.backends.cuda.faults import explain
from gputop.backends.cuda.library import OP_N, OP_T, Gemm
from gputop.backends.cuda.packages import NVMATH
from gputop.backends.cuda.timing import Timer
from gputop.errors import BadInput, GputopError, NotHere
from gputop.spec import Layout, Math

T = TypeVar("T")

R_32F = 0
WORKSPACE_BYTES = 32 << 20
CANDIDATES = 16
"""Algorithms that `gemm_best` measures, of the heuristic's list."""
RUNS = 10
EPILOGUES = {
    (False, False): "DEFAULT",
    (True, False): "BIAS",
    (False, True): "RELU",
    (True, True): "RELU_BIAS",
}
"""(bias, ReLU) -> cublasLtEpilogue_t."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """What decides an algorithm: everything but where the operands lie."""

    shape: tuple[int, ...]
    epilogue: str
    residual: bool
    math: Math
    layout: Layout


class CublasLt:
    """A handle and a workspace on one context. NotHere without nvmath, naming the extra that has it."""

    def __init__(self, context: Context, timer: Timer) -> None:
        try:
            from nvmath.bindings import cublas, cublasLt
        except ImportError:
            raise NotHere(NVMATH.sentence) from None
        self._lt = cublasLt
        self._compute = {
            "fp32": cublas.ComputeType.COMPUTE_32F,
            "tf32": cublas.ComputeType.COMPUTE_32F_FAST_TF32,
        }
        self._context = context
        self._timer = timer
        self._handle = self._tried("creating a cuBLASLt handle", cublasLt.create)
        self._workspace = context.array((WORKSPACE_BYTES,), np.uint8, "cuBLASLt's workspace")
        self._factors = {value: np.full(1, value, np.float32) for value in (0.0, 1.0)}
        self._best: dict[_Kind, int] = {}

    def gemm(self, gemm: Gemm, math: Math, layout: Layout, best: bool) -> LtCall:
        """Enqueues the product when called: the heuristic's first algorithm, or the fastest of its first.

        BadInput for a math that it is not offered in here, and where the library has no algorithm.
        """
        if math not in self._compute:
            raise BadInput(f"cublaslt computes {' and '.join(self._compute)} here, not {math}.")
        what = f"cublaslt gemm {gemm.rows}x{gemm.columns}x{gemm.inner}"
        epilogue = EPILOGUES[bool(gemm.bias), gemm.relu]
        calls = self._tried(what, lambda: self._calls(gemm, math, layout, epilogue))
        if not calls:
            raise BadInput(f"{what}: the library has no algorithm for {epilogue} in {math}.")
        if not best:
            return calls[0]
        shape = (gemm.rows, gemm.columns, gemm.inner, gemm.lda, gemm.ldw, gemm.ldr, gemm.ldc)
        kind = _Kind(shape, epilogue, bool(gemm.residual), math, layout)
        if kind not in self._best:
            self._best[kind] = self._fastest(calls)
        return calls[min(self._best[kind], len(calls) - 1)]

    def close(self) -> None:
        if self._handle:
            self._lt.destroy(self._handle)
            self._handle = 0
            self._workspace = None

    def _calls(self, gemm: Gemm, math: Math, layout: Layout, epilogue: str) -> tuple[LtCall, ...]:
        """The product by each algorithm that the heuristic lists, best expected first.

        Row-major c = a w is column-major c' = w' a': the library is given w first, and the bias,
        which it adds along the first axis, runs along the columns.
        """
        lt = self._lt
        desc = lt.matmul_desc_create(self._compute[math], R_32F)
        attribute = lt.MatmulDescAttribute
        self._set(desc, attribute.TRANSA, OP_T if layout == "row" else OP_N)
        self._set(desc, attribute.EPILOGUE, lt.Epilogue[epilogue])
        if gemm.bias:
            self._set(desc, attribute.BIAS_POINTER, gemm.bias)
        stored = (gemm.inner, gemm.columns) if layout == "row" else (gemm.columns, gemm.inner)
        w = lt.matrix_layout_create(R_32F, *stored, gemm.ldw)
        a = lt.matrix_layout_create(R_32F, gemm.inner, gemm.rows, gemm.lda)
        d = lt.matrix_layout_create(R_32F, gemm.columns, gemm.rows, gemm.ldc)
        c = lt.matrix_layout_create(R_32F, gemm.columns, gemm.rows, gemm.ldr) if gemm.residual else d
        found = self._heuristics(desc, w, a, c, d)
        one, beta = self._factors[1.0], self._factors[1.0 if gemm.residual else 0.0]
        before = (
            self._handle, desc, one.ctypes.data, gemm.w, w, gemm.a, a, beta.ctypes.data,
            gemm.residual or gemm.c, c, gemm.c, d,
        )  # fmt: skip
        after = (self._workspace.data.ptr, WORKSPACE_BYTES, self._context.stream.ptr)
        return tuple(LtCall(lt.matmul, before, found[i : i + 1], after) for i in range(len(found)))

    def _heuristics(self, desc: int, w: int, a: int, c: int, d: int) -> Any:
        lt = self._lt
        preference = lt.matmul_preference_create()
        limit = lt.MatmulPreferenceAttribute.MAX_WORKSPACE_BYTES
        value = np.asarray([WORKSPACE_BYTES], dtype=lt.get_matmul_preference_attribute_dtype(limit))
        lt.matmul_preference_set_attribute(preference, limit, value.ctypes.data, value.nbytes)
        results = np.zeros(CANDIDATES, dtype=lt.matmul_heuristic_result_dtype)
        count = np.zeros(1, np.int32)
        lt.matmul_algo_get_heuristic(
            self._handle, desc, w, a, c, d, preference, CANDIDATES, results.ctypes.data, count.ctypes.data
        )
        lt.matmul_preference_destroy(preference)
        return results[: int(count[0])]

    def _set(self, desc: int, attribute: Any, value: int) -> None:
        lt = self._lt
        buffer = np.asarray([value], dtype=lt.get_matmul_desc_attribute_dtype(attribute))
        lt.matmul_desc_set_attribute(desc, attribute, buffer.ctypes.data, buffer.nbytes)

    def _fastest(self, calls: tuple[LtCall, ...]) -> int:
        """Index of the algorithm with the least time, its weight already in L2."""
        seconds = []
        for call in calls:
            try:
                # Loads the algorithm's kernel, which must not happen behind the blocker.
                call()
                self._context.synchronize("a cublaslt algorithm")
            except GputopError:
                raise
            except Exception:
                # The heuristic lists what may fit; an algorithm that refuses is none to choose.
                seconds.append(float("inf"))
                continue
            times, _ = self._timer.split([[call]] * RUNS)
            seconds.append(min(times))
        return int(np.argmin(seconds))

    def _tried(self, what: str, work: Callable[[], T]) -> T:
        """nvmath raises exceptions of its own; what it could not set up leaves the context whole."""
        try:
            return work()
        except GputopError:
            raise
        except Exception as error:
            raise explain(1, str(error), what) from None


class LtCall:
    """One product by one algorithm; calling it enqueues it once."""

    __slots__ = ("_algorithm", "_arguments", "_matmul")

    def __init__(self, matmul: Any, before: tuple[int, ...], algorithm: Any, after: tuple[int, ...]) -> None:
        """`algorithm`: one heuristic result, whose first field it is. The library reads it at each call."""
        self._matmul = matmul
        self._algorithm = algorithm
        self._arguments = (*before, algorithm.ctypes.data, *after)

    def __call__(self) -> None:
        self._matmul(*self._arguments)
