"""Activation functions in place on float32 arrays, each as the NumPy calls that it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import pi, sqrt

import numpy as np

from gputop.backends.cpu.memory import Floats, Memory, Words
from gputop.plan.types import WORD_BYTES, Activation, Dims

Call = Callable[[], object]

ZERO, HALF, ONE = np.float32(0), np.float32(0.5), np.float32(1)
ERFC_STEP = np.float32(0.3275911)
ERFC_TERMS = tuple(map(np.float32, (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)))
"""Abramowitz and Stegun 1964, 7.1.26: with t = 1 / (1 + 0.3275911 z) and z >= 0, erfc(z) is a polynomial of t
without a constant times exp(-z^2), off by at most 1.5e-7. From the highest power."""
TANH_SCALE = sqrt(2 / pi)
TANH_CUBE = np.float32(TANH_SCALE * 0.044715)


def _relu(x: Words, memory: Memory) -> tuple[Call, ...]:
    return (partial(np.maximum, x, ZERO, out=x),)


def _gelu(x: Words, memory: Memory) -> tuple[Call, ...]:
    """max(x, 0) - |x| erfc(|x| / sqrt 2) / 2: no difference of nearly equal numbers on either side of 0."""
    z, t, sum_ = (memory.scratch(f"gelu {name}", x.shape) for name in ("z", "t", "sum"))
    highest, *others = ERFC_TERMS
    calls: list[Call] = [
        partial(np.abs, x, z),
        partial(np.multiply, z, np.float32(sqrt(0.5)), z),
        partial(np.multiply, z, ERFC_STEP, t),
        partial(np.add, t, ONE, t),
        partial(np.divide, ONE, t, t),
        partial(np.multiply, t, highest, sum_),
    ]
    for term in others:
        calls += [partial(np.add, sum_, term, sum_), partial(np.multiply, sum_, t, sum_)]
    return (
        *calls,
        partial(np.multiply, z, z, t),
        partial(np.negative, t, t),
        partial(np.exp, t, t),
        partial(np.multiply, sum_, t, sum_),
        partial(np.abs, x, z),
        partial(np.multiply, z, HALF, z),
        partial(np.multiply, sum_, z, sum_),
        partial(np.maximum, x, ZERO, out=x),
        partial(np.subtract, x, sum_, x),
    )


def _gelu_new(x: Words, memory: Memory) -> tuple[Call, ...]:
    """x (1 + tanh u) / 2."""
    share: Floats = memory.scratch("gelu share", x.shape)
    return (
        partial(np.multiply, x, x, share),
        partial(np.multiply, share, TANH_CUBE, share),
        partial(np.add, share, np.float32(TANH_SCALE), share),
        partial(np.multiply, share, x, share),
        partial(np.tanh, share, share),
        partial(np.add, share, ONE, share),
        partial(np.multiply, share, HALF, share),
        partial(np.multiply, x, share, x),
    )


CALLS: Mapping[Activation, Callable[[Words, Memory], tuple[Call, ...]]] = {
    "relu": _relu,
    "gelu": _gelu,
    "gelu_new": _gelu_new,
}
SCRATCH_ARRAYS: Mapping[Activation, int] = {"relu": 0, "gelu": 3, "gelu_new": 1}


def scratch_bytes(dims: Dims) -> int:
    """Workspace that a pass takes for its activation function, at most."""
    return SCRATCH_ARRAYS[dims.activation] * dims.tokens * dims.d_ff * WORD_BYTES
