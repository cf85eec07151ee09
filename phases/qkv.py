"""qkv: queries, keys and values, one GEMM over three stacked weights.

A plan without fused qkv runs it as one GEMM for each of the three (`activations.split`). A pruned
last layer needs keys and values of every token (`kv`), but the query of the last one only (`q@1`).
"""

from __future__ import annotations

from gputop.model import activations
from gputop.phases import gemm
from gputop.phases.sites import present
from gputop.plan.types import Dims, Phase, Plan, Site, Task
from gputop.plan.work import Work


def work(site: Site, dims: Dims) -> Work:
    return gemm.work(site, extra=1, residual=False)


def sites(dims: Dims, pruned: bool) -> tuple[Site, ...]:
    d, tokens = dims.d_model, dims.tokens
    last = dims.layers - 1 if pruned else dims.layers
    return present(
        Site("qkv", "qkv", tokens, 3 * d, d, (0, last)),
        Site("kv", "qkv", tokens, 2 * d, d, (last, dims.layers)),
        Site("q@1", "qkv", dims.batch, d, d, (last, dims.layers)),
    )


def task(site: Site, layer: int, plan: Plan, dims: Dims, keep_layers: bool) -> Task:
    slot = layer if keep_layers else 0
    d = dims.d_model
    a = activations.whole("xn1", dims, slot)
    output = activations.whole("qkv", dims, slot)
    start = 0
    if site.name == "kv":
        start, output = d, activations.columns(output, d, 2 * d)
    elif site.name == "q@1":
        a, output = activations.last_tokens(a, dims), activations.whole("q_last", dims)
    w = activations.weight("wqkv", layer, start, site.columns, 3 * d, d, plan.layout)
    bias = activations.vector("bqkv", layer, start, site.columns)
    return Task(site, layer, gemm.operands(a, w, bias), output)


PHASE = Phase(
    name="qkv",
    title="queries, keys, values",
    order=2,
    work=work,
    reference=gemm.reference,
    rounded=gemm.rounded,
    sites=sites,
    task=task,
    tolerances=gemm.TOLERANCES,
    kind="gemm",
)
