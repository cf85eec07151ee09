"""gputop's own kernels below kernels/measure, ready to launch on one context."""

from __future__ import annotations

import ctypes
import struct

from gputop.backends.cuda.compiler.sources import Sources
from gputop.backends.cuda.runtime.context import Context, Function
from gputop.backends.cuda.runtime.launch import Geometry, KernelLaunch

MASK32 = 0xFFFFFFFF
THREADS = 256


class Tools:
    """Fills and probes. All run on the context's stream."""

    def __init__(self, context: Context, sources: Sources) -> None:
        self.context = context
        self._sources = sources

    def function(self, source: str, entry: str) -> Function:
        """An entry of `kernels/measure/<source>`."""
        name = f"measure/{source}"
        return self.context.function(self._sources.find(name), name, entry, self._sources.folders)

    def launch(self, source: str, entry: str, geometry: Geometry, arguments: bytes) -> KernelLaunch:
        return KernelLaunch(self.context, self.function(source, entry), geometry, arguments)

    def spread(self, count: int) -> Geometry:
        """Enough blocks for `count` elements, at most a few waves: these kernels stride over the rest."""
        blocks = min(-(-count // THREADS), 16 * self.context.sm_count)
        return Geometry((max(1, blocks), 1, 1), (THREADS, 1, 1))

    def empty(self) -> KernelLaunch:
        """A kernel of one warp that does nothing: what a launch costs."""
        return self.launch("blocker.cu", "empty", Geometry((1, 1, 1), (32, 1, 1)), struct.pack("<Q", 0))

    def fill_words(self, address: int, count: int, word: int) -> KernelLaunch:
        """Writes one 32-bit pattern to `count` words."""
        arguments = struct.pack("<Qiii4x", address, *halves(count), signed(word))
        return self.launch("fill.cu", "fill_words", self.spread(count), arguments)


def halves(value: int) -> tuple[int, int]:
    """A 64-bit number as the two 32-bit arguments that kernels of ours take: low, high."""
    return signed(value & MASK32), signed((value >> 32) & MASK32)


def signed(word: int) -> int:
    """The same 32 bits as a signed number."""
    return ctypes.c_int32(word & MASK32).value


def float_word(value: float) -> int:
    """The bits of a float32."""
    return int(struct.unpack("<I", struct.pack("<f", value))[0])
