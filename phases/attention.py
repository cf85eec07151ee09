"""attention: causal softmax attention, all heads, from q, k, v to the mixed values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from gputop.model import activations
from gputop.phases.sites import in_every_layer
from gputop.plan.traffic import Work
from gputop.plan.types import WORD_BYTES, Dims, Phase, Plan, Site, Task
from gputop.util.heartbeat import beat

if TYPE_CHECKING:
    from gputop.plan.types import Array

SOFTMAX_FLOPS_PER_SCORE = 6
"""Scale, max, subtract, exponential (as one), sum, divide."""
MOST_SCORES = 1 << 21
"""Scores that the reference holds at a time: those of a long sequence would not fit into memory."""


def pairs(site: Site, dims: Dims) -> int:
    """Query-key pairs of one head: the lower triangle of each sequence, or its last row alone."""
    queries = site.rows // dims.batch
    return dims.batch * sum(dims.seq - queries + 1 + row for row in range(queries))


def work(site: Site, dims: Dims) -> Work:
    """Two FLOPs a pair and channel for the scores, two for the values, six a score for the softmax."""
    scored = pairs(site, dims)
    row_bytes = WORD_BYTES * dims.d_model
    return Work(
        flops=float(4 * scored * dims.d_model + SOFTMAX_FLOPS_PER_SCORE * scored * dims.heads),
        weight_bytes=0.0,
        in_bytes=float(row_bytes * (site.rows + 2 * dims.tokens)),
        out_bytes=float(row_bytes * site.rows),
    )


def reference(operands: Mapping[str, Array], task: Task, dims: Dims) -> Array:
    """softmax(q k^T / sqrt(d_head)) v a head, float64; queries are the last rows of each sequence."""

    def by_head(x: Array) -> Array:
        return x.reshape(dims.batch, -1, dims.heads, dims.d_head).transpose(0, 2, 1, 3)

    q, k, v = (by_head(operands[role]) for role in "qkv")
    out = np.empty(q.shape)
    block = max(1, MOST_SCORES // (dims.batch * dims.heads * dims.seq))
    for first in range(0, q.shape[2], block):
        rows = slice(first, first + block)
        out[:, :, rows] = _attended(q[:, :, rows], k, v, dims.seq - q.shape[2] + first)
        beat()
    return out.transpose(0, 2, 1, 3).reshape(task.output.rows, dims.d_model)


def _attended(q: Array, k: Array, v: Array, first: int) -> Array:
    """Queries at positions `first` and following, all [batch, heads, ., d_head]."""
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[3])
    seen = np.arange(k.shape[2]) <= np.arange(first, first + q.shape[2])[:, None]
    scores = np.where(seen, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.asarray(weights @ v)


def sites(dims: Dims, pruned: bool) -> tuple[Site, ...]:
    return in_every_layer("attention", dims, pruned, dims.d_model)


def task(site: Site, layer: int, plan: Plan, dims: Dims, keep_layers: bool) -> Task:
    slot = layer if keep_layers else 0
    d = dims.d_model
    qkv = activations.whole("qkv", dims, slot)
    q, output = activations.columns(qkv, 0, d), activations.whole("att", dims, slot)
    if site.name == "attention@1":
        q, output = activations.whole("q_last", dims), activations.whole("att_last", dims)
    inputs = (("q", q), ("k", activations.columns(qkv, d, d)), ("v", activations.columns(qkv, 2 * d, d)))
    return Task(site, layer, inputs, output)


PHASE = Phase(
    name="attention",
    title="causal attention",
    order=3,
    work=work,
    reference=reference,
    sites=sites,
    task=task,
    tolerances={"fp32": 1e-5, "tf32": 5e-3, "bf16": 1.5e-2},
    kind="attention",
)
