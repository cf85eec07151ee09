"""attention: causal softmax attention, all heads, from q, k, v to the mixed values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from gputop.model import activations
from gputop.phases import rounding
from gputop.phases.sites import in_every_layer
from gputop.plan.types import WORD_BYTES, Dims, Math, Phase, Plan, Rounded, Site, Task
from gputop.plan.work import Work
from gputop.util.heartbeat import beat

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    q, k, v = (_by_head(operands[role], dims) for role in "qkv")
    out = np.empty_like(q)
    for rows, seen in _blocks(q.shape[2], dims):
        out[:, :, rows] = _shares(q[:, :, rows] @ k.transpose(0, 1, 3, 2) * dims.d_head**-0.5, seen) @ v
        beat()
    return _by_row(out, task)


def rounded(
    operands: Mapping[str, Array], slack: Mapping[str, Array], task: Task, dims: Dims, math: Math
) -> Rounded:
    """`reference` with its bounds: both products by `math`, the softmax between them in fp32.

    The score of key j is off by the error of its sum, times 1 / sqrt(d_head). Its exponential is off by the
    factor exp of that, and by some units u = 2^-24 more: a score s is rounded a few times, and the fast
    exponential of x = s - max is known to 2 + 1.2 |x| units of twice u. Together, with e_j = the score's
    error + (16 + 4 |s| + 8 |x|) u, share p_j moves by at most p_j (exp(e_j) - 1), and as shares are divided
    by their sum P', output o moves by at most sum p_j (exp(e_j) - 1) (|v_j| + |o|) / P'. The second product,
    and the sum that divides it, are sums as in phases/rounding.py. In bf16 a share is rounded to that before
    the second product, and o moves by what rounding makes of each p_j |v_j|.
    """
    q, k, v = (_by_head(operands[role], dims) for role in "qkv")
    off = {role: _by_head(values, dims) for role, values in slack.items()}
    out, error = np.empty_like(q), np.empty_like(q)
    scale, unit = dims.d_head**-0.5, rounding.UNIT
    keys_off = off["k"].transpose(0, 1, 3, 2) if "k" in off else None
    queries_off = off.get("q")
    for rows, seen in _blocks(q.shape[2], dims):
        rows_off = None if queries_off is None else queries_off[:, :, rows]
        dots, dots_off = rounding.product(q[:, :, rows], k.transpose(0, 1, 3, 2), rows_off, keys_off, math)
        scores = dots * scale
        shares = _shares(scores, seen)
        below_most = np.where(seen, scores, -np.inf).max(axis=-1, keepdims=True) - scores
        moved = shares * np.expm1(dots_off * scale + (16 + 4 * abs(scores) + 8 * abs(below_most)) * unit)
        mixed, mixed_off = rounding.product(shares, v, moved, off.get("v"), math)
        all_moved = moved.sum(axis=-1, keepdims=True)
        mixed_off = mixed_off + abs(mixed) * all_moved
        if math == "bf16":
            mixed_off = mixed_off + rounding.BF16_UNIT * ((shares + moved) @ abs(v))
        added = rounding.sum_error(abs(mixed), abs(mixed), dims.seq, "fp32") + 8 * unit * abs(mixed)
        out[:, :, rows] = mixed
        error[:, :, rows] = np.where(all_moved < 1, mixed_off / abs(1 - all_moved), np.inf) + added
        beat()
    bound = _by_row(error, task)
    return Rounded(_by_row(out, task), bound, bound)


def _by_head(x: Array, dims: Dims) -> Array:
    """[rows, d_model] -> [batch, heads, rows of a sequence, d_head]."""
    return x.reshape(dims.batch, -1, dims.heads, dims.d_head).transpose(0, 2, 1, 3)


def _by_row(x: Array, task: Task) -> Array:
    """Back to [rows, d_model]."""
    return x.transpose(0, 2, 1, 3).reshape(task.output.rows, -1)


def _blocks(queries: int, dims: Dims) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
    """Rows of queries whose scores fit into memory, and which keys they see: the last rows of a sequence."""
    most = max(1, MOST_SCORES // (dims.batch * dims.heads * dims.seq))
    for first in range(0, queries, most):
        rows = slice(first, min(first + most, queries))
        position = dims.seq - queries + np.arange(rows.start, rows.stop)
        yield rows, np.arange(dims.seq) <= position[:, None]


def _shares(scores: Array, seen: NDArray[np.bool_]) -> Array:
    """Softmax over the keys that are seen; 0 for the others."""
    scores = np.where(seen, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.asarray(weights)


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
    rounded=rounded,
    sites=sites,
    task=task,
    tolerances={"fp32": 1e-5, "tf32": 5e-3, "bf16": 1.5e-2},
    kind="attention",
)
