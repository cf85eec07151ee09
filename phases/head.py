"""head: logits of each sequence's last token. It has no bias, unless a folded lnf leaves one."""

from __future__ import annotations

from gputop.model import activations
from gputop.phases import gemm
from gputop.plan.types import WORD_BYTES, Dims, Phase, Plan, Site, Task
from gputop.plan.work import Work


def work(site: Site, dims: Dims) -> Work:
    """As asked: without the bias that a fold adds."""
    asked = gemm.work(site, extra=0, residual=False)
    return Work(asked.flops, asked.weight_bytes - WORD_BYTES * site.columns, asked.in_bytes, asked.out_bytes)


def sites(dims: Dims, pruned: bool) -> tuple[Site, ...]:
    return (Site("head", "head", dims.batch, dims.vocab, dims.d_model, (0, 1)),)


def task(site: Site, layer: int, plan: Plan, dims: Dims, keep_layers: bool) -> Task:
    w = activations.weight("whead", 0, 0, dims.vocab, dims.vocab, dims.d_model, plan.layout)
    bias = activations.vector("bhead", 0, 0, dims.vocab) if plan.fold else None
    inputs = gemm.operands(activations.whole("xnf", dims), w, bias)
    return Task(site, 0, inputs, activations.whole("logits", dims))


PHASE = Phase(
    name="head",
    title="logits",
    order=9,
    work=work,
    reference=gemm.reference,
    rounded=gemm.rounded,
    sites=sites,
    task=task,
    tolerances=gemm.TOLERANCES,
    place="after",
    kind="gemm",
)
