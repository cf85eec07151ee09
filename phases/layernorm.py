"""What the layernorm phases share: work, reference, operands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from gputop.model import activations
from gputop.phases.sites import in_every_layer
from gputop.plan.traffic import Work
from gputop.plan.types import (
    LAYERNORM_EPS,
    WORD_BYTES,
    Dims,
    Math,
    Phase,
    Plan,
    Site,
    Task,
    View,
    WeightView,
)

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
        sites=sites,
        task=task,
        tolerances=TOLERANCES,
    )
