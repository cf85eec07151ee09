"""Kernels' arithmetic in NumPy: operands rounded as tensor cores round them, fp32 sums in several orders."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputop.plan.types import Activation

Floats = NDArray[np.float32]
Operand = Callable[[Floats], Floats]
Sum = Callable[[Floats], Floats]
"""Terms [..., n] -> their sum [...], each addition rounded to fp32."""

TF32_BITS, BF16_BITS = 13, 16
"""Low bits of a float32 that an operand of a tensor core loses."""


def as_is(x: Floats) -> Floats:
    return x


def truncated(x: Floats, bits: int = TF32_BITS) -> Floats:
    """Without its low bits: what tensor cores do with fp32 operands of a TF32 product."""
    mask = np.uint32(0xFFFFFFFF << bits & 0xFFFFFFFF)
    return (np.ascontiguousarray(x, np.float32).view(np.uint32) & mask).view(np.float32)


def nearest(x: Floats, bits: int = TF32_BITS) -> Floats:
    """Rounded to nearest, ties away from zero: cvt.rna."""
    half = np.uint32(1 << bits - 1)
    return truncated((np.ascontiguousarray(x, np.float32).view(np.uint32) + half).view(np.float32), bits)


OPERANDS: dict[str, tuple[Operand, ...]] = {
    "fp32": (as_is,),
    "tf32": (truncated, nearest),
    "bf16": (lambda x: nearest(x, BF16_BITS),),
}


def in_turn(terms: Floats) -> Floats:
    """One addition after the other, from the first to the last."""
    return np.asarray(np.add.accumulate(terms, axis=-1, dtype=np.float32)[..., -1])


def backwards(terms: Floats) -> Floats:
    return in_turn(terms[..., ::-1])


def by_lanes(terms: Floats, lanes: int = 32) -> Floats:
    """Each of a warp's lanes adds every 32nd term, then the lanes' sums are added as a tree."""
    missing = -terms.shape[-1] % lanes
    padded = np.concatenate([terms, np.zeros((*terms.shape[:-1], missing), np.float32)], axis=-1)
    sums = in_turn(np.moveaxis(padded.reshape(*terms.shape[:-1], -1, lanes), -2, -1))
    while sums.shape[-1] > 1:
        sums = sums[..., 0::2] + sums[..., 1::2]
    return np.asarray(sums[..., 0])


def by_parts(terms: Floats, parts: int = 5) -> Floats:
    """Split K: each part by itself, then the parts in order."""
    edges = np.linspace(0, terms.shape[-1], min(parts, terms.shape[-1]) + 1).astype(int)
    sums = [in_turn(terms[..., a:b]) for a, b in pairwise(edges)]
    return in_turn(np.stack(sums, axis=-1))


def by_tensor_core(terms: Floats, depth: int = 8) -> Floats:
    """Eight products at once are added to a sum whose low bits are then cut off, not rounded."""
    total = np.zeros(terms.shape[:-1], np.float32)
    for first in range(0, terms.shape[-1], depth):
        exact = total + terms[..., first : first + depth].astype(np.float64).sum(axis=-1)
        rounded = exact.astype(np.float32)
        beyond = abs(rounded.astype(np.float64)) > abs(exact)
        total = np.where(beyond, np.nextafter(rounded, np.float32(0)), rounded)
    return total


FP32_SUMS: tuple[Sum, ...] = (in_turn, backwards, by_lanes, by_parts)


def product(a: Floats, w: Floats, operand: Operand, add: Sum) -> Floats:
    """a [..., rows, n] @ w [..., n, columns], each product and addition in fp32."""
    terms = operand(a)[..., :, None, :] * np.swapaxes(operand(w), -1, -2)[..., None, :, :]
    return add(terms.astype(np.float32))


def layernorm(x: Floats, gain: Floats | None, shift: Floats | None, eps: float, add: Sum) -> Floats:
    """Mean, squared deviations, output, each operation rounded; the root is two units off."""
    columns = np.float32(x.shape[1])
    centred = x - (add(x) / columns)[:, None]
    spread = add(centred * centred) / columns + np.float32(eps)
    root = (1 / np.sqrt(spread.astype(np.float64))).astype(np.float32)
    root = np.nextafter(np.nextafter(root, np.float32(np.inf)), np.float32(np.inf))
    out = centred * root[:, None]
    return out if gain is None or shift is None else out * gain + shift


def fast_exp(x: Floats, rng: np.random.Generator) -> Floats:
    """exp as far off as CUDA's fast one may be: 2 + floor(1.173 |x|) units in the last place."""
    exact = np.exp(x.astype(np.float64))
    units = (2 + np.floor(1.173 * abs(x))) * 2.0**-23
    return np.asarray(exact * (1 + units * rng.uniform(-1, 1, x.shape)), np.float32)


def attention(
    q: Floats, k: Floats, v: Floats, tile: int, operand: Operand, add: Sum, rng: np.random.Generator
) -> Floats:
    """One head's causal attention [rows, d_head], key tiles in turn under a running maximum."""
    rows, d_head = q.shape
    position = len(k) - rows + np.arange(rows)
    most = np.full((rows, 1), -np.inf, np.float32)
    total, out = np.zeros((rows, 1), np.float32), np.zeros_like(q)
    for first in range(0, len(k), tile):
        keys = slice(first, first + tile)
        scores = product(q, k[keys].T, operand, add) * np.float32(d_head**-0.5)
        seen = np.arange(first, first + scores.shape[1]) <= position[:, None]
        scores = np.where(seen, scores, np.float32(-np.inf))
        higher = np.maximum(most, scores.max(axis=1, keepdims=True))
        kept = np.where(most == higher, np.float32(1), fast_exp(np.maximum(most - higher, -80), rng))
        shares = np.where(seen, fast_exp(np.maximum(scores - higher, -80), rng), np.float32(0))
        total = total * kept + add(shares)[:, None]
        out = out * kept + product(shares, v[keys], operand, add)
        most = higher
    return np.asarray(out / total, np.float32)


def activated(x: Any, activation: Activation, rng: np.random.Generator) -> Any:
    """As kernels/include/activation.cuh computes it: erf off by at most 2 units, a fast exponential."""
    one, half = np.float32(1), np.float32(0.5)
    if activation == "relu":
        return relu(x)
    if activation == "gelu":
        exact = np.vectorize(math.erf, otypes=[np.float32])(x * np.float32(math.sqrt(0.5)))
        erf = exact * (one + rng.uniform(-2, 2, x.shape).astype(np.float32) * np.float32(2**-23))
        return half * x * (one + erf)
    scale, cube = np.float32(-1.59576912160573071), np.float32(0.044715)
    minus_2_u = np.clip(scale * x * (one + cube * x * x), -80, 80)
    return x / (one + fast_exp(minus_2_u, rng))


def relu(x: Any) -> Any:
    return np.maximum(x, np.float32(0))
