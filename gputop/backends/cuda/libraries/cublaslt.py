"""cuBLASLt as a kernel: a product with bias, residual and activation in its epilogue, by nvmath's binding.

In a batch only algorithms are chosen that are row-uniform: equal sequences give equal bits wherever they
stand. Some of the library's divide the inner axis by where a tile lies, and so round equal rows in different
orders; which do is not told, so each is asked by running it, when a plan is prepared, once for each shape.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np

from gputop.backends.cuda.libraries.cublas import OP_N, OP_T, Gemm
from gputop.backends.cuda.libraries.row_determinism import RowDeterminism
from gputop.backends.cuda.packages import NVMATH
from gputop.backends.cuda.runtime.context import Context
from gputop.backends.cuda.runtime.status_codes import CUBLAS, explain
from gputop.backends.cuda.runtime.utility_kernels import Tools
from gputop.backends.cuda.timing.events import Timer
from gputop.plan.types import Activation, Layout, Math
from gputop.util import install_hints
from gputop.util.errors import GputopError, Unavailable, UsageError

T = TypeVar("T")

R_32F = 0
WORKSPACE_BYTES = 32 << 20
CANDIDATES = 16
"""Algorithms asked of the heuristic: what `gemm_best` measures, and a batch chooses among."""
RUNS = 10
"""Of an algorithm, the fastest of which counts."""
EPILOGUES: Mapping[tuple[bool, Activation | None], str] = {
    (False, None): "DEFAULT",
    (True, None): "BIAS",
    (False, "relu"): "RELU",
    (True, "relu"): "RELU_BIAS",
    (False, "gelu_new"): "GELU",
    (True, "gelu_new"): "GELU_BIAS",
}
"""(bias, activation) -> cublasLtEpilogue_t. The library's GELU is the tanh approximation alone."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """What decides an algorithm: everything but where the operands lie."""

    shape: tuple[int, ...]
    sequences: int
    epilogue: str
    residual: bool
    math: Math
    layout: Layout
    best: bool


class CublasLt:
    """A handle and a workspace on one context.

    Unavailable without nvmath or the library that it binds, naming the extras that have them.
    """

    def __init__(self, context: Context, tools: Tools, timer: Timer) -> None:
        try:
            from nvmath.bindings import cublas, cublasLt
        except ImportError:
            raise Unavailable(NVMATH.sentence) from None
        self._lt = cublasLt
        self._compute = {
            "fp32": cublas.ComputeType.COMPUTE_32F,
            "tf32": cublas.ComputeType.COMPUTE_32F_FAST_TF32,
        }
        self._context = context
        self._timer = timer
        self._alike = RowDeterminism(context, tools)
        self._handle = _created(cublasLt)
        self._workspace = context.array((WORKSPACE_BYTES,), np.uint8, "cuBLASLt's workspace")
        self._factors = {value: np.full(1, value, np.float32) for value in (0.0, 1.0)}
        self._chosen: dict[_Kind, int] = {}
        self._owned: list[Any] = []

    def gemm(self, gemm: Gemm, math: Math, layout: Layout, best: bool, sequences: int) -> LtCall:
        """Enqueues the product when called: by the heuristic's first algorithm that may serve, or with `best`
        by the fastest of those. Of rows that belong to several sequences, only row-uniform ones may.

        Trying them overwrites the operands `a`, `residual` and `c`. UsageError for a math that it is not
        offered in here, and where the library has no algorithm that may serve.
        """
        if math not in self._compute:
            raise UsageError(f"cublaslt computes {' and '.join(self._compute)} here, not {math}.")
        what = f"cublaslt gemm {gemm.rows}x{gemm.columns}x{gemm.inner}"
        epilogue = EPILOGUES.get((bool(gemm.bias), gemm.activation))
        if epilogue is None:
            raise UsageError(f"cublaslt has no epilogue for the activation {gemm.activation}.")
        calls = self._tried(what, lambda: self._calls(gemm, math, layout, epilogue))
        if not calls:
            raise UsageError(f"{what}: the library has no algorithm for {epilogue} in {math}.")
        shape = (gemm.rows, gemm.columns, gemm.inner, gemm.lda, gemm.ldw, gemm.ldr, gemm.ldc)
        kind = _Kind(shape, sequences, epilogue, bool(gemm.residual), math, layout, best)
        if kind not in self._chosen:
            fitting = self._fitting(calls, gemm, sequences, what)
            index = self._fastest(calls, fitting) if best else next(iter(fitting), None)
            if index is None:
                serves = f"gives {sequences} equal sequences equal bits" if sequences > 1 else "runs here"
                raise UsageError(
                    f"{what}: none of the library's {len(calls)} algorithms {serves}; "
                    "take a kernel of ours there (--use SITE=KERNEL), or a smaller batch."
                )
            self._chosen[kind] = index
        return calls[min(self._chosen[kind], len(calls) - 1)]

    def close(self) -> None:
        """Destroy the descriptors, then the handle. All enqueued work must have ended."""
        for given_back in self._owned:
            given_back()
        self._owned.clear()
        if self._handle:
            self._lt.destroy(self._handle)
            self._handle = 0
            self._workspace = None

    @property
    def described(self) -> int:
        """Products whose descriptions the library still holds."""
        return sum(given_back.alive for given_back in self._owned)

    def _calls(self, gemm: Gemm, math: Math, layout: Layout, epilogue: str) -> tuple[LtCall, ...]:
        """The product by each algorithm that the heuristic lists, best expected first."""
        product = _Product(self._lt, self._compute[math], gemm, layout, epilogue)
        self._owned = [given_back for given_back in self._owned if given_back.alive]
        self._owned.append(product.given_back)
        found = self._heuristics(product)
        one, beta = self._factors[1.0], self._factors[1.0 if gemm.residual else 0.0]
        before = (
            self._handle, product.desc, one.ctypes.data, gemm.w, product.w, gemm.a, product.a,
            beta.ctypes.data, gemm.residual or gemm.c, product.c, gemm.c, product.d,
        )  # fmt: skip
        after = (self._workspace.data.ptr, WORKSPACE_BYTES, self._context.stream.ptr)
        return tuple(LtCall(product, before, found[i : i + 1], after) for i in range(len(found)))

    def _heuristics(self, product: _Product) -> Any:
        lt = self._lt
        preference = lt.matmul_preference_create()
        try:
            limit = lt.MatmulPreferenceAttribute.MAX_WORKSPACE_BYTES
            value = np.asarray([WORKSPACE_BYTES], dtype=lt.get_matmul_preference_attribute_dtype(limit))
            lt.matmul_preference_set_attribute(preference, limit, value.ctypes.data, value.nbytes)
            results = np.zeros(CANDIDATES, dtype=lt.matmul_heuristic_result_dtype)
            count = np.zeros(1, np.int32)
            lt.matmul_algo_get_heuristic(
                self._handle, product.desc, product.w, product.a, product.c, product.d, preference,
                CANDIDATES, results.ctypes.data, count.ctypes.data,
            )  # fmt: skip
        finally:
            lt.matmul_preference_destroy(preference)
        return results[: int(count[0])]

    def _fitting(self, calls: Sequence[LtCall], gemm: Gemm, sequences: int, what: str) -> Iterator[int]:
        """Indices of the algorithms that may serve, found as they are asked for."""
        for index, call in enumerate(calls):
            alike = partial(self._alike, gemm, sequences, call, what)
            if self._runs(alike if sequences > 1 else partial(self._once, call)):
                yield index

    def _fastest(self, calls: Sequence[LtCall], indices: Iterable[int]) -> int | None:
        """The index with the least time, its weight already in L2; None where there is none."""
        seconds: dict[int, float] = {}
        for index in indices:
            times, _ = self._timer.split([[calls[index]]] * RUNS)
            seconds[index] = min(times)
        return min(seconds, key=seconds.__getitem__, default=None)

    def _once(self, call: LtCall) -> bool:
        """Also loads the algorithm's kernel, which must not happen behind the blocker."""
        call()
        self._context.synchronize("a cublaslt algorithm")
        return True

    def _runs(self, work: Callable[[], bool]) -> bool:
        """Return what `work` returns; False if the library refuses to run an algorithm that its heuristic
        lists.
        """
        try:
            return work()
        except GputopError:
            raise
        except Exception:
            # The heuristic lists what may fit; an algorithm that refuses is none to choose.
            return False

    def _tried(self, what: str, work: Callable[[], T]) -> T:
        """nvmath raises exceptions of its own; what it could not set up leaves the context whole."""
        try:
            return work()
        except GputopError:
            raise
        except Exception as error:
            raise explain(1, str(error), what) from None


def _created(lt: Any) -> int:
    """A handle. What the binding raises before the library answers means that there is none to load."""
    try:
        return int(lt.create())
    except Exception as error:
        status = getattr(error, "status", None)
        if status in CUBLAS:
            raise explain(CUBLAS[status], str(error), "creating a cuBLASLt handle") from None
        why = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise Unavailable(
            f"cuBLASLt can't be loaded ({why}); {install_hints.extra('cuda13,blaslt')}."
        ) from None


class _Product:
    """The library's descriptions of one product: given back when no call holds it, or by `given_back`.

    Row-major c = a w is column-major c' = w' a': the library is given w first, and the bias, which it
    adds along the first axis, runs along the columns.
    """

    __slots__ = ("__weakref__", "a", "c", "d", "desc", "given_back", "matmul", "w")

    def __init__(self, lt: Any, compute: Any, gemm: Gemm, layout: Layout, epilogue: str) -> None:
        stored = (gemm.inner, gemm.columns) if layout == "row" else (gemm.columns, gemm.inner)
        layouts: list[int] = []
        self.desc = lt.matmul_desc_create(compute, R_32F)
        self.given_back = weakref.finalize(self, _give_back, lt, self.desc, layouts)
        attribute = lt.MatmulDescAttribute
        _set(lt, self.desc, attribute.TRANSA, OP_T if layout == "row" else OP_N)
        _set(lt, self.desc, attribute.EPILOGUE, lt.Epilogue[epilogue])
        if gemm.bias:
            _set(lt, self.desc, attribute.BIAS_POINTER, gemm.bias)
        for shape in (
            (*stored, gemm.ldw),
            (gemm.inner, gemm.rows, gemm.lda),
            (gemm.columns, gemm.rows, gemm.ldr if gemm.residual else gemm.ldc),
            (gemm.columns, gemm.rows, gemm.ldc),
        ):
            layouts.append(lt.matrix_layout_create(R_32F, *shape))
        self.w, self.a, self.c, self.d = layouts
        self.matmul = lt.matmul


def _give_back(lt: Any, desc: int, layouts: Sequence[int]) -> None:
    for layout in layouts:
        lt.matrix_layout_destroy(layout)
    lt.matmul_desc_destroy(desc)


def _set(lt: Any, desc: int, attribute: Any, value: int) -> None:
    buffer = np.asarray([value], dtype=lt.get_matmul_desc_attribute_dtype(attribute))
    lt.matmul_desc_set_attribute(desc, attribute, buffer.ctypes.data, buffer.nbytes)


class LtCall:
    """One product by one algorithm; calling it enqueues it once."""

    __slots__ = ("_algorithm", "_arguments", "_product")

    def __init__(
        self, product: _Product, before: tuple[int, ...], algorithm: Any, after: tuple[int, ...]
    ) -> None:
        """`algorithm`: one heuristic result, whose first field it is. The library reads it at each call."""
        self._product = product
        self._algorithm = algorithm
        self._arguments = (*before, algorithm.ctypes.data, *after)

    def __call__(self) -> None:
        self._product.matmul(*self._arguments)
