"""Whether a product gives equal sequences equal bits: asked of a library's algorithm before it is chosen."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np

from gputop.backends.cuda.libraries.cublas import Gemm
from gputop.backends.cuda.runtime.context import Context
from gputop.backends.cuda.runtime.utility_kernels import Tools

Call = Callable[[], None]

SOURCE = "row_determinism.cu"


class RowDeterminism:
    """Compares a product's rows where its inputs repeat from sequence to sequence."""

    def __init__(self, context: Context, tools: Tools) -> None:
        self._context = context
        self._tools = tools
        self._unlike = context.array((1,), np.uint32, "a comparison")

    def __call__(self, gemm: Gemm, sequences: int, product: Call, what: str) -> bool:
        """Runs `product`, which computes `gemm`; its inputs and its output are overwritten on the way.

        Its rows are `sequences` runs of one length, the same noise in each.
        """
        period = gemm.rows // sequences
        self._over("fill_repeating", gemm.a, (gemm.rows, gemm.inner, gemm.lda), period)
        if gemm.residual:
            self._over("fill_repeating", gemm.residual, (gemm.rows, gemm.columns, gemm.ldr), period)
        product()
        self._tools.fill_words(self._unlike.data.ptr, 1, 0)()
        self._over("find_mismatch", gemm.c, (gemm.rows, gemm.columns, gemm.ldc), period)
        self._context.synchronize(what)
        return int(self._context.copy_out(self._unlike)[0]) == 0

    def _over(self, entry: str, address: int, shape: tuple[int, int, int], period: int) -> None:
        rows, columns, _ = shape
        arguments = struct.pack("<QQiiii", address, self._unlike.data.ptr, *shape, period)
        self._tools.launch(SOURCE, entry, self._tools.spread(rows * columns), arguments)()
