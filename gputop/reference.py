"""The whole pass in float64 NumPy, written straight down: what every plan's logits are held against.

It shares no code with the phases, so that a fault in their wiring can't hide here too. Nothing is
pruned, folded or fused. Results are kept in the user's cache.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gputop import __version__
from gputop.fill import tokens
from gputop.paths import cache_dir
from gputop.spec import LAYERNORM_EPS, Dims, Workload
from gputop.weights import master

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Doubles = NDArray[np.float64]

Wanted = tuple[int, int]
"""(token set, number of its sequences)."""


def reference_logits(workload: Workload, token_set: int, sequences: int = 1) -> Doubles:
    """[sequences, vocab] last-token logits of the first sequences of a token set."""
    return references(workload, ((token_set, sequences),))[0]


@lru_cache(maxsize=8)
def references(workload: Workload, wanted: tuple[Wanted, ...]) -> tuple[Doubles, ...]:
    """The logits of several token sets; those not in the cache are computed in one stacked pass."""
    files = [_cache_file(workload, *want) for want in wanted]
    found = [_load(file, (want[1], workload.dims.vocab)) for file, want in zip(files, wanted, strict=True)]
    missing = [index for index, logits in enumerate(found) if logits is None]
    if missing:
        ids = np.concatenate([tokens(workload, *wanted[index]) for index in missing])
        edges = np.cumsum([wanted[index][1] for index in missing])[:-1]
        for index, logits in zip(missing, np.split(float64_pass(workload, ids), edges), strict=True):
            _save(files[index], logits)
            found[index] = logits
    return tuple(logits for logits in found if logits is not None)


def float64_pass(workload: Workload, ids: NDArray[np.int32]) -> Doubles:
    """Last-token logits [sequences, vocab] of token ids [sequences, seq], one layer's weights at a time."""
    dims, weights = workload.dims, master(workload)
    d = dims.d_model

    def tensor(name: str, layer: int = 0) -> Doubles:
        return np.asarray(weights[name][layer], np.float64)

    x = tensor("embedding")[ids] + tensor("position")
    for layer in range(dims.layers):
        normed = _layernorm(x, tensor("gain1", layer), tensor("shift1", layer))
        qkv = normed @ tensor("wqkv", layer).T + tensor("bqkv", layer)
        mixed = _attention(qkv[..., :d], qkv[..., d : 2 * d], qkv[..., 2 * d :], dims)
        x = x + mixed @ tensor("wo", layer).T + tensor("bo", layer)
        normed = _layernorm(x, tensor("gain2", layer), tensor("shift2", layer))
        hidden = np.maximum(normed @ tensor("w1", layer).T + tensor("b1", layer), 0.0)
        x = x + hidden @ tensor("w2", layer).T + tensor("b2", layer)
    last = _layernorm(x[:, -1], tensor("gainf"), tensor("shiftf"))
    return np.asarray(last @ tensor("whead").T)


def _layernorm(x: Doubles, gain: Doubles, shift: Doubles) -> Doubles:
    mean = x.mean(axis=-1, keepdims=True)
    normed = (x - mean) / np.sqrt(x.var(axis=-1, keepdims=True) + LAYERNORM_EPS)
    return np.asarray(normed * gain + shift)


def _attention(q: Doubles, k: Doubles, v: Doubles, dims: Dims) -> Doubles:
    out = np.empty_like(q)
    future = np.triu(np.ones((dims.seq, dims.seq), bool), 1)
    for head in range(dims.heads):
        own = slice(head * dims.d_head, (head + 1) * dims.d_head)
        scores = q[..., own] @ k[..., own].swapaxes(-1, -2) / np.sqrt(dims.d_head)
        scores[:, future] = -np.inf
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        out[..., own] = weights @ v[..., own] / weights.sum(axis=-1, keepdims=True)
    return out


def _cache_file(workload: Workload, token_set: int, sequences: int) -> Path:
    dims = workload.dims
    model = (dims.layers, dims.d_model, dims.heads, dims.d_ff, dims.seq, dims.vocab)
    asked = repr((model, workload.seed, token_set, sequences, __version__))
    return cache_dir("references") / f"{hashlib.sha256(asked.encode()).hexdigest()[:24]}.npy"


def _load(file: Path, shape: Sequence[int]) -> Doubles | None:
    """The kept logits, or None where there are none that can be trusted."""
    try:
        logits = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    trusted = logits.dtype == np.float64 and logits.shape == tuple(shape) and np.isfinite(logits).all()
    return logits if trusted else None


def _save(file: Path, logits: Doubles) -> None:
    """Whole or not at all; a cache that can't be written costs only the next run's time."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, suffix=".part", delete=False) as part:
            np.save(part, logits)
        os.replace(part.name, file)
    except OSError:
        return
