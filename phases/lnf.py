"""lnf: the final layernorm, of each sequence's last token only, in every plan."""

from __future__ import annotations

from gputop.model import activations
from gputop.phases import layernorm
from gputop.plan.types import Dims, Phase, Plan, Site, Task


def sites(dims: Dims, pruned: bool) -> tuple[Site, ...]:
    return (Site("lnf", "lnf", dims.batch, dims.d_model, 0, (0, 1)),)


def task(site: Site, layer: int, plan: Plan, dims: Dims, keep_layers: bool) -> Task:
    if plan.prune:
        x = activations.whole("x_last", dims)
    else:
        x = activations.last_tokens(activations.whole("x", dims, dims.layers if keep_layers else 0), dims)
    inputs = layernorm.operands(x, "gainf", "shiftf", 0, plan)
    return Task(site, 0, inputs, activations.whole("xnf", dims))


PHASE = Phase(
    name="lnf",
    title="final layernorm",
    order=8,
    work=layernorm.work,
    reference=layernorm.reference,
    rounded=layernorm.rounded,
    sites=sites,
    task=task,
    tolerances=layernorm.TOLERANCES,
    place="after",
)
