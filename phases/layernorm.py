"""What the layernorm phases share: work, reference, operands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from gputop.model import activations
from gputop.phases import rounding
from gputop.phases.sites import in_every_layer
from gputop.plan.types import (
    LAYERNORM_EPS,
    WORD_BYTES,
    Dims,
    Math,
    Phase,
    Plan,
    Rounded,
    Site,
    Task,
    View,
    WeightView,
)
from gputop.plan.work import Work

if TYPE_CHECKING:
    from gputop.plan.types import Array

TOLERANCES: Mapping[Math, float] = {"fp32": 1e-5, "tf32": 3e-3, "bf16": 1e-2}

FLOPS_AN_ELEMENT = 5
"""Sum, centre, square, sum, scale. Gain and shift are one more each."""


def work(site: Site, dims: Dims) -> Work:
    """Gain and shift, where they are not folded, are read once."""
    elements = site.rows * site.columns
    vectors = 0 if site.folded else 2
    return Work(
        flops=float((FLOPS_AN_ELEMENT + vectors) * elements),
        weight_bytes=float(vectors * WORD_BYTES * site.columns),
        in_bytes=float(WORD_BYTES * elements),
        out_bytes=float(WORD_BYTES * elements),
    )


def reference(operands: Mapping[str, Array], task: Task, dims: Dims) -> Array:
    """(x - mean) / sqrt(var + eps), then gain and shift unless they are folded away; float64."""
    x = operands["x"]
    centred = x - x.mean(axis=1, keepdims=True)
    out = centred / np.sqrt((centred * centred).mean(axis=1, keepdims=True) + LAYERNORM_EPS)
    if "gain" in operands:
        out = out * operands["gain"] + operands["shift"]
    return np.asarray(out)


def rounded(
    operands: Mapping[str, Array], slack: Mapping[str, Array], task: Task, dims: Dims, math: Math
) -> Rounded:
    """`reference` with its bounds, in fp32.

    With m the mean, c = x - m, V the variance plus eps and u one rounding, the error e of m is that of a sum
    (phases/rounding.py) over the columns. A sum of n squares is off by at most n u of itself: the worst case,
    as a row of few different values is rounded alike at every step. V as the mean of x^2 less m^2 is then
    off by at most n u (V + m^2) + (2 |m| + e) e, and as the mean of c^2 by less. Its relative error t comes
    to every output as that of 1 / sqrt(V), at most 1 / sqrt(1 - t) - 1, and 5 u more for two units of rsqrtf
    and the products.

    `math` is fp32, unless a product in the same launch reads the output. That launch may leave the mean to
    the product, whose operands are then x, not c, and its weights' rows add up to 0: each operand is rounded
    by that much more as x is larger than c, m at most. In bf16 x is used as it is, but the weights' rows add
    up to 0 only as far as their rounding lets them.
    """
    x = operands["x"]
    columns, unit = x.shape[1], rounding.UNIT
    mean = x.mean(axis=1, keepdims=True)
    centred = x - mean
    squares = centred * centred
    spread = squares.mean(axis=1, keepdims=True) + LAYERNORM_EPS
    norm = np.sqrt((x * x).sum(axis=1, keepdims=True))
    mean_error = rounding.sum_error(norm, mean * columns, columns, "fp32") / columns + unit * abs(mean)
    off_weights = rounding.BF16_UNIT if math == "bf16" else 4 * rounding.HALF_RANGE[math]
    centred_error = mean_error + unit * abs(centred) + off_weights * abs(mean)
    spread_error = columns * unit * (spread + mean**2) + (2 * abs(mean) + mean_error) * mean_error
    if "x" in slack:
        off = slack["x"] + slack["x"].mean(axis=1, keepdims=True)
        centred_error = centred_error + off
        spread_error = spread_error + ((2 * abs(centred) + off) * off).mean(axis=1, keepdims=True)
    share = spread_error / spread + 4 * unit
    stretch = np.where(share < 1, 1 / np.sqrt(abs(1 - share)) - 1, np.inf) + 5 * unit
    scale = 1 / np.sqrt(spread)
    out = centred * scale
    error = abs(out) * stretch + centred_error * scale * (1 + stretch)
    if "gain" in operands:
        out = out * operands["gain"]
        error = error * abs(operands["gain"]) + 3 * unit * (abs(out) + abs(operands["shift"]))
        out = out + operands["shift"]
    return Rounded(out, error, error)


def operands(
    x: View, gain: str, shift: str, layer: int, plan: Plan
) -> tuple[tuple[str, View | WeightView], ...]:
    """Role -> operand; a plan that folds has no gain and no shift."""
    if plan.fold:
        return (("x", x),)
    return (
        ("x", x),
        ("gain", activations.vector(gain, layer, 0, x.columns)),
        ("shift", activations.vector(shift, layer, 0, x.columns)),
    )


def phase(
    name: str,
    title: str,
    order: int,
    source: str,
    target: str,
    gain: str,
    shift: str,
    prunes: bool,
) -> Phase:
    """A layernorm of the layers from buffer `source` to `target`.

    `prunes`: a pruned last layer needs it at one row a sequence (ln2; ln1 feeds every key and value).
    """

    def sites(dims: Dims, pruned: bool) -> tuple[Site, ...]:
        return in_every_layer(name, dims, pruned and prunes, dims.d_model)

    def task(site: Site, layer: int, plan: Plan, dims: Dims, keep_layers: bool) -> Task:
        slot = layer if keep_layers else 0
        if site.name == name:
            x, output = activations.whole(source, dims, slot), activations.whole(target, dims, slot)
        else:
            x, output = activations.whole(f"{source}_last", dims), activations.whole(f"{target}_last", dims)
        return Task(site, layer, operands(x, gain, shift, layer, plan), output)

    return Phase(
        name=name,
        title=title,
        order=order,
        work=work,
        reference=reference,
        rounded=rounded,
        sites=sites,
        task=task,
        tolerances=TOLERANCES,
    )
