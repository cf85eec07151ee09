"""How far rounding alone can move each output of a phase: the bounds that the gate holds elements to.

Every product and every addition of a kernel is rounded; which order a kernel adds in is its own business.
The bounds here hold for any order, and they follow from the operands alone.

**A sum of products**, p = sum over k of a_k w_k, with n terms. Let R = sqrt(sum (a_k w_k)^2).

*Operands.* TF32 keeps 11 significant bits of each operand. Rounded to nearest, a relative error lies in
[-h, h] with h = 2^-11; truncated, as tensor cores do with fp32 bits in TF32, it lies in [-2h, 0]. Both are a
constant of at most h plus a part in [-h, h]. For two operands the constants move p by at most 2h |p|, and the
mean of the parts by as much again. What is left changes each a_k w_k by at most 2h |a_k w_k|, so by

    2h sum |a_k w_k| <= 2h sqrt(n) R                (Cauchy and Schwarz)

in the worst case, in which all errors push the same way. If they are independent of each other,
Hoeffding's inequality says that they exceed c * 2h R with a probability below 2 exp(-c^2): 5e-16 for c =
DEVIATIONS = 6. The bound is the smaller of the two: the worst case up to 36 terms, the improbable case
beyond. The worst case of 3072 terms would be 55 R and let a missing product pass, of which one is R / 55.
Operands in bf16 were rounded when they were stored, weights once and activations by the phase before. The
gate reads them as they are, so that their products are exact: h is 0.

*Additions.* Each of n additions in fp32 rounds a partial sum by at most u = 2^-24 of it. A partial sum of
terms with random signs is of the size of R, one of terms with equal signs at most |p|, so by the same
inequality (Higham and Mary 2019, SIAM Journal on Scientific Computing 41, for sums of roundings) the sum
moves by at most c sqrt(n) u (R + |p|), c = 6. Fewer additions in a row (tiles, splits of the inner axis,
warps whose sums are added in order) round less. This covers the rounding of each product too, where no
fused multiply-add spares it, and weights that a fold stored with one rounding.

**After the sum** come a bias, an activation and a residual; bias and residual with at most 2u of the
magnitudes that they add. ReLU makes [0, v + e] of an input that may lie between v - e and v + e; where v + e
< 0 nothing but 0 is right, so that a slope below zero shows however small it is. GELU, in both forms, falls
to its one lowest point and rises from there: over an interval its extremes are at the ends, or at that point
if it lies between. It is v times a factor between 0 and 1, and that factor is off by a few units however it
is computed: erf in fp32 by 4u, an exponential by 1.5u, a division and the roundings between by the rest.

**Stored in bf16**, a value is rounded once more, to nearest: by half of the last of its 8 significant bits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from gputop.model.activation_functions import FUNCTIONS
from gputop.plan.types import Activation, Math, Rounded

if TYPE_CHECKING:
    from gputop.plan.types import Array

UNIT = 2.0**-24
"""u: the largest relative error of one rounding to fp32, in which every activation is stored."""
HALF_RANGE: Mapping[Math, float] = {"fp32": 0.0, "tf32": 2.0**-11, "bf16": 0.0}
"""h: of an operand of a product, by the math of the products. Of fp32 and bf16 they are used as they are."""
BF16_BITS = 8
BF16_UNIT = 2.0**-BF16_BITS
"""The largest relative error of one rounding to bf16."""
DEVIATIONS = 6.0
"""c: how improbable the sum of many independent roundings is that a bound excludes."""


LOWEST_AT: Mapping[Activation, float] = {"gelu": -0.7517915246935645, "gelu_new": -0.7524614220710163}
"""Where a function that is not monotone is lowest."""
ACTIVATION_UNITS = 8
"""Units by which the factor that GELU multiplies by may be off."""


def activated(value: Array, error: Array, activation: Activation) -> tuple[Array, Array, Array]:
    """The function of inputs that may be off by `error`, and how far below and above that it may lie."""
    function = FUNCTIONS[activation].float64
    out = function(value)
    if activation == "relu":
        return out, np.where(value + error > 0, error, 0.0), np.maximum(value + error, 0.0) - out
    low, high = value - error, value + error
    ends = function(low), function(high)
    lowest = function(np.clip(LOWEST_AT[activation], low, high))
    own = ACTIVATION_UNITS * UNIT * abs(value)
    return out, out - np.minimum(lowest, out) + own, np.maximum(*ends) - out + own


def sum_error(root: Array, total: Array, terms: int, math_: Math) -> Array:
    """How far the roundings of a sum of products move it (see above).

    `root`: R; `total`: p; `terms`: n; `math_`: of the products.
    """
    operands = 2 * HALF_RANGE[math_]
    additions = DEVIATIONS * math.sqrt(terms) * UNIT
    apart = operands * min(math.sqrt(terms), DEVIATIONS) + additions
    return apart * root + (2 * operands + additions) * abs(total)


def root_of_squares(a: Array, b: Array) -> Array:
    """R of each element of a @ b. In float32, for speed: six digits are enough of a bound."""
    # Rows of tiny numbers would have squares below the smallest float32.
    scale = np.maximum(abs(a).max(axis=-1, keepdims=True), np.finfo(np.float64).tiny)
    squares = np.square((a / scale).astype(np.float32)) @ np.square(b.astype(np.float32))
    return np.asarray(np.sqrt(squares) * scale)


def product(
    a: Array, w: Array, slack_a: Array | None, slack_w: Array | None, math_: Math
) -> tuple[Array, Array]:
    """a @ w and how far rounding moves each element; `slack_a`, `slack_w`: how far the operands are off."""
    total = a @ w
    error = sum_error(root_of_squares(a, w), total, a.shape[-1], math_)
    if slack_a is not None:
        error = error + slack_a @ abs(w)
    if slack_w is not None:
        error = error + abs(a) @ slack_w
    return total, error


def stored_in_bf16(computed: Rounded) -> Rounded:
    """An output with its bounds, stored in bf16."""
    largest = abs(computed.value) + np.maximum(computed.below, computed.above)
    _, exponent = np.frexp(largest)
    half_of_last_bit = np.where(largest > 0, np.ldexp(0.5, exponent - BF16_BITS), 0.0)
    return Rounded(computed.value, computed.below + half_of_last_bit, computed.above + half_of_last_bit)
