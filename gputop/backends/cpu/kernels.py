"""The cpu backend's kernel table: each kernel as the list of NumPy calls it makes.

A kernel binds the arrays of one task and returns calls without arguments. A pass is then one flat
loop over calls: no lookups between them, and the number of calls is the number of launches.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from math import sqrt

import numpy as np

from gputop.backends.cpu import activation_calls
from gputop.backends.cpu.activation_calls import Call
from gputop.backends.cpu.memory import Floats, Memory, Words
from gputop.plan.types import LAYERNORM_EPS, Dims, Kernel, Plan, Task, View, WeightView
from gputop.util.errors import UsageError

Bind = Callable[[Task, Memory, Plan, Dims], tuple[Call, ...]]
Multiply = Callable[[Words, Words, Words], Call]


def embed(task: Task, memory: Memory, plan: Plan, dims: Dims) -> tuple[Call, ...]:
    """Gather the token rows, then add the position rows to each sequence."""
    out = memory.view(task.output)
    tokens = memory.view(_activation(task, "tokens")).reshape(-1)
    by_sequence = out.reshape(-1, dims.seq, out.shape[1])
    return (
        # "clip" writes straight into `out`; the default mode would go through a copy.
        partial(np.take, memory.table(_weight(task, "embedding")), tokens, 0, out, "clip"),
        partial(np.add, by_sequence, memory.table(_weight(task, "position"))[: dims.seq], by_sequence),
    )


def layernorm(task: Task, memory: Memory, plan: Plan, dims: Dims) -> tuple[Call, ...]:
    """Centre in place, then the variance of what is centred: two passes, no cancellation."""
    x, out = memory.view(_activation(task, "x")), memory.view(task.output)
    rows, width = x.shape
    mean, variance = memory.scratch("mean", (rows, 1)), memory.scratch("variance", (rows,))
    share = np.float32(1 / width)
    calls: list[Call] = [
        partial(np.add.reduce, x, 1, None, mean, True),
        partial(np.multiply, mean, share, mean),
        partial(np.subtract, x, mean, out),
        partial(np.einsum, "ij,ij->i", out, out, out=variance),
        partial(np.multiply, variance, share, variance),
        partial(np.add, variance, np.float32(LAYERNORM_EPS), variance),
        partial(np.sqrt, variance, variance),
        partial(np.divide, out, variance[:, None], out),
    ]
    if (gain := task.operand("gain")) is not None:
        calls.append(partial(np.multiply, out, memory.vector(_as_weight(gain)), out))
    if (shift := task.operand("shift")) is not None:
        calls.append(partial(np.add, out, memory.vector(_as_weight(shift)), out))
    return tuple(calls)


def gemm(multiply: Multiply, task: Task, memory: Memory, plan: Plan, dims: Dims) -> tuple[Call, ...]:
    """Product, then bias, activation and residual in place. Without fused qkv, three products."""
    a, out = memory.view(_activation(task, "a")), memory.view(task.output)
    w = memory.matrix(_weight(task, "w"), a.shape[1])
    residual = task.operand("residual")
    addend = memory.view(_as_activation(residual)) if residual is not None else None
    product = out
    if addend is not None and np.may_share_memory(addend, out):
        product = memory.scratch("product", out.shape)
    split = task.site.phase == "qkv" and not plan.fused_qkv
    width = dims.d_model if split else task.site.columns
    calls = [
        multiply(a, w[:, start : start + width], product[:, start : start + width])
        for start in range(0, task.site.columns, width)
    ]
    if (bias := task.operand("bias")) is not None:
        calls.append(partial(np.add, product, memory.vector(_as_weight(bias)), product))
    if task.activation is not None:
        calls += activation_calls.CALLS[task.activation](product, memory)
    if addend is not None:
        calls.append(partial(np.add, product, addend, out))
    return tuple(calls)


def attention(multiply: Multiply, task: Task, memory: Memory, plan: Plan, dims: Dims) -> tuple[Call, ...]:
    """Causal softmax(q k' / sqrt(d_head)) v, sequence by sequence over one workspace of scores.

    The scores of all heads are formed at once and the sum divides the output, which is narrower.
    A row of queries for each sequence (the last token) sees every key and needs no mask.
    """
    heads = partial(_heads, dims=dims)
    q, k, v = (memory.view(_activation(task, role)) for role in ("q", "k", "v"))
    out = memory.view(task.output)
    queries = q.shape[0] // dims.batch
    scores = memory.scratch("scores", (dims.heads, queries, dims.seq))
    peak = memory.scratch("peak", (dims.heads, queries, 1))
    total = memory.scratch("total", (dims.heads, queries, 1))
    scale = np.float32(1 / sqrt(dims.d_head))
    calls: list[Call] = []
    for sequence in range(dims.batch):
        attended = heads(out, sequence, queries)
        keys = heads(k, sequence, dims.seq).transpose(0, 2, 1)
        calls += [
            multiply(heads(q, sequence, queries), keys, scores),
            partial(np.multiply, scores, scale, scores),
        ]
        if queries > 1:
            calls.append(partial(np.add, scores, causal_mask(dims.seq), scores))
        calls += [
            partial(np.maximum.reduce, scores, 2, None, peak, True),
            partial(np.subtract, scores, peak, scores),
            partial(np.exp, scores, scores),
            partial(np.add.reduce, scores, 2, None, total, True),
            multiply(scores, heads(v, sequence, dims.seq), attended),
            partial(np.divide, attended, total, attended),
        ]
    return tuple(calls)


@lru_cache(maxsize=4)
def causal_mask(seq: int) -> Floats:
    """[seq, seq]: 0 where a query may look, minus infinity at later keys. One array for every layer."""
    return np.triu(np.full((seq, seq), -np.inf, np.float32), 1)


def blas(a: Words, b: Words, out: Words) -> Call:
    """Products of the last two axes by the BLAS."""
    return partial(np.matmul, a, b, out)


def loops(a: Words, b: Words, out: Words) -> Call:
    """The same by einsum's own loops: one core, no BLAS."""
    return partial(np.einsum, "...ik,...kj->...ij", a, b, out=out, optimize=False)


TABLE: dict[str, Bind] = {
    "cpu_embed": embed,
    "cpu_layernorm": layernorm,
    "cpu_loops_gemm": partial(gemm, loops),
    "cpu_blas_gemm": partial(gemm, blas),
    "cpu_loops_attention": partial(attention, loops),
    "cpu_blas_attention": partial(attention, blas),
}
"""Entry of a kernel record of ours -> the function that binds it."""


def function_of(kernel: Kernel) -> Bind:
    """The function that binds a kernel of ours. Raise UsageError if there is none."""
    entry = kernel.entries[0] if kernel.entries else kernel.name
    if entry not in TABLE:
        raise UsageError(f"The cpu backend has no kernel {entry!r}. It has: {', '.join(sorted(TABLE))}.")
    return TABLE[entry]


def _heads(array: Words, sequence: int, rows: int, dims: Dims) -> Words:
    """[heads, rows, d_head] of one sequence, without a copy."""
    own = array[sequence * rows : (sequence + 1) * rows]
    return own.reshape(rows, dims.heads, dims.d_head).transpose(1, 0, 2)


def _activation(task: Task, role: str) -> View:
    return _as_activation(task.operand(role))


def _weight(task: Task, role: str) -> WeightView:
    return _as_weight(task.operand(role))


def _as_activation(operand: View | WeightView | None) -> View:
    assert isinstance(operand, View), operand
    return operand


def _as_weight(operand: View | WeightView | None) -> WeightView:
    assert isinstance(operand, WeightView), operand
    return operand
