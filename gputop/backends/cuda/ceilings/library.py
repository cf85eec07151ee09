"""What a product of the vendor's library takes beside its steps: its start, its first loads, its end.

Nothing but its name, its grid and its tile is known of a library's kernel. Two products that differ in the
inner axis alone give the time of a step, and what is left at no step at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from gputop.backends.cuda.bind import Libraries
from gputop.backends.cuda.ceilings.steps import ProbeStep
from gputop.backends.cuda.libraries.cublas import Gemm
from gputop.backends.cuda.libraries.cublaslt import LtCall
from gputop.backends.cuda.runtime.context import Context
from gputop.backends.cuda.runtime.graph import capture, kernel_nodes
from gputop.backends.cuda.runtime.utility_kernels import Tools
from gputop.backends.cuda.timing.events import Timer
from gputop.perf.library_kernels import family
from gputop.results.records import Ceiling
from gputop.util.errors import GputopError

ROWS = 128
SHAPES = ((2304, 768), (1536, 256))
"""Columns and inner axis of the shorter product: for those the library takes kernels of different
families.
"""
LAUNCHES = 24
RUNS = 5
WORD = 0x3C000000


@dataclass(frozen=True, slots=True)
class _Product:
    kernels: tuple[str, ...]
    seconds: float
    """Of one launch in a graph of them, weights in L2."""


class LibraryProbes:
    """One ceiling a family of kernels that the library takes; none without the library."""

    def __init__(self, context: Context, tools: Tools, timer: Timer, libraries: Libraries) -> None:
        self._context = context
        self._tools = tools
        self._timer = timer
        self._libraries = libraries

    def steps(self) -> Iterator[ProbeStep]:
        yield ProbeStep("library products", self._measure)

    def _measure(self) -> list[Ceiling]:
        found: dict[str, Ceiling] = {}
        # Unavailable without the library; UsageError where it has no algorithm for these products.
        with suppress(GputopError):
            for columns, inner in SHAPES:
                short, long = (self._product(columns, size) for size in (inner, 2 * inner))
                same = short.kernels == long.kernels and len(short.kernels) == 1
                if same and long.seconds < 2 * short.seconds:
                    ceiling = _start(short, long, columns, inner)
                    found.setdefault(ceiling.name, ceiling)
        return list(found.values())

    def _product(self, columns: int, inner: int) -> _Product:
        a, w, c, bias = (
            self._context.array((size,), np.float32, "the library probe")
            for size in (ROWS * inner, columns * inner, ROWS * columns, columns)
        )
        for array in (a, w, c, bias):
            self._tools.fill_words(array.data.ptr, array.size, WORD)()
        shape = (ROWS, columns, inner, inner, inner, columns, columns)
        gemm = Gemm(a.data.ptr, w.data.ptr, bias.data.ptr, 0, c.data.ptr, *shape)
        call: LtCall = self._libraries.cublaslt.gemm(gemm, "tf32", "row", False, 1)
        # A library loads its kernel at the first call, which must not happen behind the blocker.
        call()
        self._context.synchronize("the library probe")
        names = tuple(node.name for node in kernel_nodes(self._context, [call], "the library probe"))
        graph = capture(self._context, [call] * LAUNCHES, "the library probe")

        def launch() -> None:
            graph.launch(self._context.stream)

        return _Product(names, min(self._timer.whole([launch])[0] for _ in range(RUNS)) / LAUNCHES)


def _start(short: _Product, long: _Product, columns: int, inner: int) -> Ceiling:
    return Ceiling(
        name=f"library_start_{family(short.kernels[0])}",
        value=2 * short.seconds - long.seconds,
        unit="s",
        how=f"{ROWS} x {columns} products of cuBLASLt in TF32 over {inner} and {2 * inner}, at no inner axis "
        f"at all: {short.kernels[0][:60]}",
    )
