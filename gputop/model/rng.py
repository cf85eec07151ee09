"""Weights and tokens by integer arithmetic: the same bits in NumPy, on a GPU, on any machine.

A tensor's key is FNV-1a 64 of `seed/name`; element i is SplitMix64(key, i), of which the top 24 bits,
centred, times one float32 scale give the weight: one rounding, and a second one where 1 is added.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gputop.util import host_cpu
from gputop.util.heartbeat import beat

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gputop.plan.types import Workload

GAMMA = 0x9E3779B97F4A7C15
MIX_A = 0xBF58476D1CE4E5B9
MIX_B = 0x94D049BB133111EB
FNV_OFFSET = 0xCBF29CE484222325
FNV_PRIME = 0x100000001B3
MASK64 = (1 << 64) - 1
BITS = 24
"""Random bits a weight: as many as a float32 holds exactly."""

_CHUNK = 1 << 17
"""Elements drawn at a time: enough that threads seldom wait for each other between two calls of NumPy, and
few enough that their scratch stays with the process from block to block: the system would clear it anew."""
_BLOCK = 1 << 20
"""Elements handed to a thread at a time."""
_STEPS = np.arange(1, _CHUNK + 1, dtype=np.uint64) * np.uint64(GAMMA)
"""What SplitMix64 adds to its key for the first elements."""
_UPPER = slice(1 if sys.byteorder == "little" else 0, None, 2)
"""The upper halves of 64-bit words that are seen as twice as many of 32 bits."""


def key(seed: int, tensor: str) -> int:
    """FNV-1a 64 of `seed/tensor`."""
    value = FNV_OFFSET
    for byte in f"{seed}/{tensor}".encode():
        value = ((value ^ byte) * FNV_PRIME) & MASK64
    return value


def scale(std: float) -> np.float32:
    """The float32 factor that gives the centred 24-bit integers this standard deviation."""
    return np.float32(std * np.sqrt(12.0) / 2**BITS)


@dataclass(frozen=True, slots=True)
class Draw:
    """One run of elements to be drawn: where they go, and from which distribution."""

    name: str
    """As hashed into the key: `3/w1`."""
    std: float
    about_one: bool
    """Whether 1 is added, after scaling, as a second float32 rounding."""
    out: NDArray[np.float32]
    """Contiguous, one-dimensional."""


def fill(seed: int, draws: Iterable[Draw]) -> None:
    """Write every draw's elements into its `out`, on all cores."""
    blocks = [
        (key(seed, draw.name), start, draw) for draw in draws for start in range(0, draw.out.size, _BLOCK)
    ]
    with ThreadPoolExecutor(max_workers=host_cpu.whole_cores()) as pool:
        for _ in pool.map(lambda block: _fill_block(*block), blocks):
            beat()


def tokens(workload: Workload, token_set: int, sequences: int) -> NDArray[np.int32]:
    """[sequences, seq] token ids of one set; a sequence does not depend on how many are asked for."""
    dims = workload.dims
    out = np.empty((sequences, dims.seq), np.int32)
    draw = _Generator(dims.seq)
    for sequence in range(sequences):
        sequence_key = key(workload.seed, f"tokens/{token_set}/{sequence}")
        for first in range(0, dims.seq, _CHUNK):
            ids = out[sequence, first : first + _CHUNK]
            ids[:] = (draw.top_bits(sequence_key, first, ids.size) * np.uint64(dims.vocab)) >> np.uint64(BITS)
    return out


def _fill_block(tensor_key: int, start: int, draw: Draw) -> None:
    stop = min(start + _BLOCK, draw.out.size)
    factor, generator = scale(draw.std), _Generator(stop - start)
    for first in range(start, stop, _CHUNK):
        out = draw.out[first : min(first + _CHUNK, stop)]
        centred = generator.top_bits(tensor_key, first, out.size).view(np.int32)
        centred -= 1 << (BITS - 1)
        out[:] = centred
        out *= factor
        if draw.about_one:
            out += np.float32(1)


class _Generator:
    """SplitMix64 for a chunk of elements at a time, in scratch of its own."""

    def __init__(self, most: int) -> None:
        size = min(most, _CHUNK)
        self._z, self._shifted = np.empty(size, np.uint64), np.empty(size, np.uint64)
        self._top = np.empty(size, np.uint32)

    def top_bits(self, tensor_key: int, first: int, count: int) -> NDArray[np.uint32]:
        """The top 24 bits of SplitMix64(key, index) for at most a chunk of indices from `first`.

        They lie in scratch, until the next call. SplitMix64 ends in z ^= z >> 31, which leaves the top
        31 bits alone: it is left out.
        """
        z, shifted, top = self._z[:count], self._shifted[:count], self._top[:count]
        np.add(_STEPS[:count], np.uint64((tensor_key + first * GAMMA) & MASK64), out=z)
        for shift, factor in ((30, MIX_A), (27, MIX_B)):
            np.right_shift(z, np.uint64(shift), out=shifted)
            np.bitwise_xor(z, shifted, out=z)
            np.multiply(z, np.uint64(factor), out=z)
        return np.right_shift(z.view(np.uint32)[_UPPER], np.uint32(32 - BITS), out=top)
