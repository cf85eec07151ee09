"""The whole pass in float64 NumPy, written straight down: what every plan's logits are held against.

It shares no code with the phases, so that a fault in their wiring can't hide here too. Nothing is
pruned, folded or fused. Results are kept in the user's cache; those of the standard workload come
with the package (`ship` writes them, and a test computes them again).
"""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gputop import __version__
from gputop.model.rng import tokens
from gputop.model.weights import master
from gputop.plan.types import LAYERNORM_EPS, Activation, Dims, Workload
from gputop.util.heartbeat import beat
from gputop.util.input_file import read_regular
from gputop.util.output_file import keep
from gputop.util.paths import PACKAGE, cache_dir

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Doubles = NDArray[np.float64]

Wanted = tuple[int, int]
"""(token set, number of its sequences)."""

MOST_SCORES = 1 << 21
"""Attention scores held at a time: those of a long sequence would not fit into memory."""
SEAL_BYTES = 32
"""Of the digest behind a kept array."""
MOST_FILE_BYTES = 1 << 30
SHIPPED = PACKAGE / "_data" / "references"
SHIPPED_SETS: tuple[Wanted, ...] = ((0, 64), (1, 1))
"""Enough for the gate at every batch up to 64."""
SEQUENCES_AT_ONCE = 8
"""Sequences whose activations a reference pass holds: those of a large batch would not fit into memory."""


@lru_cache(maxsize=8)
def references(workload: Workload, wanted: tuple[Wanted, ...]) -> tuple[Doubles, ...]:
    """[sequences, vocab] last-token logits of several token sets.

    Those kept nowhere are computed together.
    """
    kept = {want: _kept(workload, *want) for want in wanted}
    found = {want: logits for want, logits in kept.items() if logits is not None}
    missing = [want for want in wanted if want not in found]
    if missing:
        for want, logits in zip(missing, compute(workload, missing), strict=True):
            _save(_folder() / _file_name(workload, want[0]), logits)
            found[want] = logits
    return tuple(found[want] for want in wanted)


def compute(workload: Workload, wanted: Sequence[Wanted]) -> list[Doubles]:
    """The logits of several token sets, from passes over `SEQUENCES_AT_ONCE` of their sequences."""
    ids = np.concatenate([tokens(workload, *want) for want in wanted])
    blocks = np.array_split(ids, -(-len(ids) // SEQUENCES_AT_ONCE))
    logits = np.concatenate([float64_pass(workload, block) for block in blocks])
    edges = np.cumsum([sequences for _, sequences in wanted])[:-1]
    return np.split(logits, edges)


def ship(workload: Workload) -> None:
    """Write a workload's logits into the package, for every machine's first run."""
    for (token_set, _), logits in zip(SHIPPED_SETS, compute(workload, SHIPPED_SETS), strict=True):
        _save(SHIPPED / _file_name(workload, token_set), logits)


def float64_pass(workload: Workload, ids: NDArray[np.int32]) -> Doubles:
    """Last-token logits [sequences, vocab] of token ids [sequences, seq], one layer's weights at a time."""
    dims, weights = workload.dims, master(workload)
    d = dims.d_model

    def tensor(name: str, layer: int = 0) -> Doubles:
        return np.asarray(weights[name][layer], np.float64)

    x = tensor("embedding")[ids] + tensor("position")
    for layer in range(dims.layers):
        beat()
        normed = _layernorm(x, tensor("gain1", layer), tensor("shift1", layer))
        qkv = normed @ tensor("wqkv", layer).T + tensor("bqkv", layer)
        mixed = _attention(qkv[..., :d], qkv[..., d : 2 * d], qkv[..., 2 * d :], dims)
        x = x + mixed @ tensor("wo", layer).T + tensor("bo", layer)
        normed = _layernorm(x, tensor("gain2", layer), tensor("shift2", layer))
        hidden = _activated(normed @ tensor("w1", layer).T + tensor("b1", layer), dims.activation)
        x = x + hidden @ tensor("w2", layer).T + tensor("b2", layer)
    last = _layernorm(x[:, -1], tensor("gainf"), tensor("shiftf"))
    return np.asarray(last @ tensor("whead").T)


def _layernorm(x: Doubles, gain: Doubles, shift: Doubles) -> Doubles:
    mean = x.mean(axis=-1, keepdims=True)
    normed = (x - mean) / np.sqrt(x.var(axis=-1, keepdims=True) + LAYERNORM_EPS)
    return np.asarray(normed * gain + shift)


def _activated(x: Doubles, activation: Activation) -> Doubles:
    """ReLU, or GELU (Hendrycks and Gimpel 2016, arXiv:1606.08415) exact or approximated by tanh."""
    if activation == "relu":
        return np.maximum(x, 0.0)
    if activation == "gelu":
        shares = np.fromiter((math.erfc(-value / math.sqrt(2)) / 2 for value in x.flat), np.float64, x.size)
        return np.asarray(x * shares.reshape(x.shape))
    return np.asarray(x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2)


def _attention(q: Doubles, k: Doubles, v: Doubles, dims: Dims) -> Doubles:
    out = np.empty_like(q)
    block = max(1, MOST_SCORES // (len(q) * dims.seq))
    for head in range(dims.heads):
        own = slice(head * dims.d_head, (head + 1) * dims.d_head)
        for first in range(0, dims.seq, block):
            rows = slice(first, min(first + block, dims.seq))
            future = np.arange(rows.stop) > np.arange(first, rows.stop)[:, None]
            scores = q[:, rows, own] @ k[:, : rows.stop, own].swapaxes(-1, -2) / np.sqrt(dims.d_head)
            scores[:, future] = -np.inf
            weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
            out[:, rows, own] = weights @ v[:, : rows.stop, own] / weights.sum(axis=-1, keepdims=True)
            beat()
    return out


def _folder() -> Path:
    return cache_dir("references") / __version__


def _file_name(workload: Workload, token_set: int) -> str:
    dims = workload.dims
    sizes = (dims.layers, dims.d_model, dims.heads, dims.d_ff, dims.seq, dims.vocab)
    forms = () if (dims.activation, dims.tied_head) == ("relu", False) else (dims.activation, dims.tied_head)
    weights = () if workload.weights is None else (workload.weights.sha256,)
    asked = repr((sizes, workload.seed, token_set, *forms, *weights))
    return f"{hashlib.sha256(asked.encode()).hexdigest()[:24]}.npy"


def _kept(workload: Workload, token_set: int, sequences: int) -> Doubles | None:
    """The first sequences' logits from the package or the cache, or None where none can be trusted."""
    for folder in (SHIPPED, _folder()):
        logits = _read(folder / _file_name(workload, token_set))
        if logits is not None and _are_logits(logits, workload, sequences):
            return logits[:sequences]
    return None


def _read(file: Path) -> Doubles | None:
    """The array in a file, or None if there is none or its seal is broken."""
    try:
        content = read_regular(file, MOST_FILE_BYTES)
        array, seal = content[:-SEAL_BYTES], content[-SEAL_BYTES:]
        if hashlib.sha256(array).digest() != seal:
            return None
        return np.lib.format.read_array(io.BytesIO(array), allow_pickle=False)
    except (OSError, ValueError, TypeError, OverflowError, MemoryError):
        # A header may ask for any shape.
        return None


def _are_logits(array: Doubles, workload: Workload, sequences: int) -> bool:
    """Return whether these can be the logits of this many sequences or more: a seal proves who wrote, not
    what.
    """
    return (
        array.dtype == np.float64
        and array.ndim == 2
        and array.shape[0] >= sequences
        and array.shape[1] == workload.dims.vocab
        and bool(np.isfinite(array).all())
        and bool(array.std(axis=1).all())
    )


def _save(file: Path, logits: Doubles) -> None:
    """Write an array file followed by its digest: a flipped bit would fail plans that are right."""
    content = io.BytesIO()
    np.save(content, logits)
    keep(file, content.getvalue() + hashlib.sha256(content.getvalue()).digest())
