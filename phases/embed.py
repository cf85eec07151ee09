"""embed: each token's row of the embedding plus its position's row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from gputop.model import activations
from gputop.phases import rounding
from gputop.plan.types import WORD_BYTES, Dims, Math, Phase, Plan, Rounded, Site, Task, WeightView
from gputop.plan.work import Work

if TYPE_CHECKING:
    from gputop.plan.types import Array


def work(site: Site, dims: Dims) -> Work:
    """One add an element; the rows looked up at most once each, and every position."""
    elements = site.rows * site.columns
    rows_read = min(site.rows, dims.vocab) + dims.seq
    return Work(
        flops=float(elements),
        weight_bytes=float(WORD_BYTES * rows_read * site.columns),
        in_bytes=float(WORD_BYTES * site.rows),
        out_bytes=float(WORD_BYTES * elements),
    )


def reference(operands: Mapping[str, Array], task: Task, dims: Dims) -> Array:
    """embedding[token] + position[row within its sequence]; float64 [tokens, d_model]."""
    ids = operands["tokens"][:, 0].astype(np.intp)
    position = np.arange(task.output.rows) % dims.seq
    return np.asarray(operands["embedding"][ids] + operands["position"][position])


def rounded(
    operands: Mapping[str, Array], slack: Mapping[str, Array], task: Task, dims: Dims, math: Math
) -> Rounded:
    """`reference` with its bounds: an addition in fp32, whatever the products' math, is off by one unit at
    most; four leave room for a kernel that adds in another way.
    """
    out = reference(operands, task, dims)
    error = 4 * rounding.UNIT * abs(out)
    return Rounded(out, error, error)


def sites(dims: Dims, pruned: bool) -> tuple[Site, ...]:
    return (Site("embed", "embed", dims.tokens, dims.d_model, 0, (0, 1)),)


def task(site: Site, layer: int, plan: Plan, dims: Dims, keep_layers: bool) -> Task:
    d = dims.d_model
    inputs = (
        ("tokens", activations.whole("tokens", dims)),
        ("embedding", WeightView("embedding", 0, 0, dims.vocab, ld=d)),
        ("position", WeightView("position", 0, 0, dims.seq, ld=d)),
    )
    return Task(site, 0, inputs, activations.whole("x", dims))


PHASE = Phase(
    name="embed",
    title="token and position embedding",
    order=0,
    work=work,
    reference=reference,
    rounded=rounded,
    sites=sites,
    task=task,
    tolerances={"fp32": 1e-5, "tf32": 3e-3, "bf16": 1e-2},
    place="before",
)
