"""Weights and tokens by integer arithmetic: the same bits in NumPy, on a GPU, on any machine.

A tensor's key is FNV-1a 64 of `seed/name`; element i is SplitMix64(key, i), of which the top 24 bits,
centred, times one float32 scale give the weight: one rounding, and a second one where 1 is added.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gputop.pulse import beat

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gputop.spec import Workload

GAMMA = 0x9E3779B97F4A7C15
MIX_A = 0xBF58476D1CE4E5B9
MIX_B = 0x94D049BB133111EB
FNV_OFFSET = 0xCBF29CE484222325
FNV_PRIME = 0x100000001B3
MASK64 = (1 << 64) - 1
BITS = 24
"""Random bits a weight: as many as a float32 holds exactly."""

_CHUNK = 1 << 15
"""Elements drawn at a time: their scratch stays in the core's own cache."""
_BLOCK = 1 << 20
"""Elements handed to a thread at a time."""


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
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        for _ in pool.map(lambda block: _fill_block(*block), blocks):
            beat()


def tokens(workload: Workload, token_set: int, sequences: int) -> NDArray[np.int32]:
    """[sequences, seq] token ids of one set; a sequence does not depend on how many are asked for."""
    dims = workload.dims
    out = np.empty((sequences, dims.seq), np.int32)
    for sequence in range(sequences):
        top = _top_bits(key(workload.seed, f"tokens/{token_set}/{sequence}"), 0, dims.seq)
        out[sequence] = (top * np.uint64(dims.vocab)) >> np.uint64(BITS)
    return out


def _fill_block(tensor_key: int, start: int, draw: Draw) -> None:
    factor = scale(draw.std)
    stop = min(start + _BLOCK, draw.out.size)
    for first in range(start, stop, _CHUNK):
        last = min(first + _CHUNK, stop)
        out = draw.out[first:last]
        centred = _top_bits(tensor_key, first, last - first).view(np.int64)
        centred -= 1 << (BITS - 1)
        out[:] = centred
        out *= factor
        if draw.about_one:
            out += np.float32(1)


def _top_bits(tensor_key: int, first: int, count: int) -> NDArray[np.uint64]:
    """The top 24 bits of SplitMix64(key, index) for `count` indices from `first`.

    SplitMix64 ends in z ^= z >> 31, which leaves the top 31 bits alone: it is left out.
    """
    z = np.arange(count, dtype=np.uint64)
    z *= np.uint64(GAMMA)
    z += np.uint64((tensor_key + (first + 1) * GAMMA) & MASK64)
    shifted = z >> np.uint64(30)
    z ^= shifted
    z *= np.uint64(MIX_A)
    np.right_shift(z, np.uint64(27), out=shifted)
    z ^= shifted
    z *= np.uint64(MIX_B)
    z >>= np.uint64(64 - BITS)
    return z
