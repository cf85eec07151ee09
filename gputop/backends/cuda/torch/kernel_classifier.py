"""What a framework's or library's kernel does, by its name as the driver gives it, mangled or not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gputop.backends.cuda.timing.spans import Span, split
from gputop.plan.types import KINDS, KernelKind

NAMES_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Rule:
    """Names in which `pattern` is found are of this kind."""

    kind: KernelKind
    pattern: str
    whose: str


RULES = (
    Rule("attention", r"triton_(per|red|poi)_fused_\w*softmax", "Inductor's, where attention is written out"),
    Rule("pointwise", r"triton_(per|poi|red|for|spl)_", "Inductor's own loops, whatever they fuse"),
    Rule("attention", r"flex_attention", "Inductor's template for it"),
    Rule("gemm", r"triton_(tem|mm|bmm)_", "Inductor's templates"),
    Rule("attention", r"fmha|flash_(fwd|attn)|sdpa|MemEffAttention", "PyTorch's and cuDNN's, FlashAttention"),
    Rule("attention", r"softmax", "PyTorch's, where attention is written out"),
    Rule("gemm", r"gemm|gemv|xmma|nvjet|splitKreduce", "cuBLAS, cuBLASLt and CUTLASS"),
    Rule("gemm", r"cublas", "what they launch around a product: scaling, a bias"),
    Rule("pointwise", r"layer_?norm|rms_?norm", "PyTorch's"),
    Rule("pointwise", r"elementwise_kernel|reduce_kernel", "PyTorch's loops over elements"),
    Rule("pointwise", r"index_?select|gather|embedding|CatArrayBatchedCopy", "PyTorch's lookups and copies"),
    Rule("pointwise", r"multi_tensor_apply", "PyTorch's loops over several tensors: a graph's inputs copied"),
)  # fmt: skip
"""Tried in order: the first that fits decides. A name that none fits is `other`."""

_COMPILED = tuple((rule.kind, re.compile(rule.pattern, re.IGNORECASE)) for rule in RULES)


@dataclass(frozen=True, slots=True)
class KindTimes:
    """All kernels of one kind in a recorded pass."""

    time_s: float
    gap_s: float
    """Before them, with nothing running."""
    overlap_s: float
    launches: int
    names: tuple[str, ...]
    """Once each, in order of first appearance."""


def kind_of(name: str) -> KernelKind:
    """`other` for a name that no rule fits."""
    return next((kind for kind, pattern in _COMPILED if pattern.search(name)), "other")


def by_kind(spans: Sequence[Span]) -> dict[KernelKind, KindTimes]:
    """A recorded pass divided by kind. The first of `spans` is the blocker, and counts for nothing."""
    blocker, *kernels = sorted(spans, key=lambda span: span.start)
    _, *times = split((blocker, *kernels), [1] * (1 + len(kernels)))
    kinds = [kind_of(span.name) for span in kernels]
    found: dict[KernelKind, KindTimes] = {}
    for kind in KINDS:
        at = [index for index, other in enumerate(kinds) if other == kind]
        if at:
            found[kind] = KindTimes(
                time_s=sum(times[i].time_s for i in at),
                gap_s=sum(times[i].gap_s for i in at),
                overlap_s=sum(times[i].overlap_s for i in at),
                launches=len(at),
                names=tuple(dict.fromkeys(kernels[i].name for i in at)),
            )
    return found


def listed(kind: KernelKind, names: Sequence[str]) -> str:
    """The names on one line: of what is not known all of them, else the first few and how many more."""
    if kind == "other" or len(names) <= NAMES_SHOWN:
        return "; ".join(names)
    return "; ".join(names[:NAMES_SHOWN]) + f"; and {len(names) - NAMES_SHOWN} more"
