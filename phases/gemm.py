"""What the phases that multiply by a weight share: work, reference, operands.

A bias, an activation and a residual add belong to the GEMM they follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from gputop.model import activations
from gputop.model.activation_functions import FUNCTIONS
from gputop.phases import rounding
from gputop.phases.sites import in_every_layer
from gputop.plan.types import WORD_BYTES, Dims, Math, Phase, Plan, Rounded, Site, Task, View, WeightView
from gputop.plan.work import Work

if TYPE_CHECKING:
    from gputop.plan.types import Array

TOLERANCES: Mapping[Math, float] = {"fp32": 1e-5, "tf32": 3e-3, "bf16": 1e-2}


def work(site: Site, extra: int, residual: bool) -> Work:
    """2 x rows x columns x inner FLOPs and `extra` per output: bias and residual one each."""
    outputs = site.rows * site.columns
    return Work(
        flops=2.0 * outputs * site.inner + extra * outputs,
        weight_bytes=WORD_BYTES * site.columns * (site.inner + 1.0),
        in_bytes=WORD_BYTES * (site.rows * site.inner + (outputs if residual else 0.0)),
        out_bytes=float(WORD_BYTES * outputs),
    )


def reference(operands: Mapping[str, Array], task: Task, dims: Dims) -> Array:
    """a w^T + bias, activation where the task asks for it, + residual; float64 [rows, columns]."""
    out: Array = operands["a"] @ operands["w"].T
    if "bias" in operands:
        out += operands["bias"]
    if task.activation is not None:
        out = FUNCTIONS[task.activation].float64(out)
    if "residual" in operands:
        out += operands["residual"]
    return out


def rounded(
    operands: Mapping[str, Array], slack: Mapping[str, Array], task: Task, dims: Dims, math: Math
) -> Rounded:
    """`reference` with its bounds: the sum's, then each rounding of the epilogue (phases/rounding.py)."""
    out, error = rounding.product(operands["a"], operands["w"].T, slack.get("a"), None, math)
    magnitude = abs(out)
    if "bias" in operands:
        out = out + operands["bias"]
        magnitude = magnitude + abs(operands["bias"])
    error = error + 2 * rounding.UNIT * magnitude
    below = above = error
    if task.activation is not None:
        out, below, above = rounding.activated(out, error, task.activation)
    if "residual" in operands:
        added = 2 * rounding.UNIT * (abs(out) + abs(operands["residual"]))
        if "residual" in slack:
            added = added + slack["residual"]
        out, below, above = out + operands["residual"], below + added, above + added
    return Rounded(out, below, above)


def operands(
    a: View, w: WeightView, bias: WeightView | None, residual: View | None = None
) -> tuple[tuple[str, View | WeightView], ...]:
    """Role -> operand, without the absent ones."""
    roles = (("a", a), ("w", w), ("bias", bias), ("residual", residual))
    return tuple((role, operand) for role, operand in roles if operand is not None)


def layer_phase(
    *,
    name: str,
    title: str,
    order: int,
    bias: str,
    source: str,
    target: str,
    width: Callable[[Dims], int],
    inner: Callable[[Dims], int],
    activated: bool = False,
    residual: str | None = None,
) -> Phase:
    """A GEMM phase of the layers that reads buffer `source` and writes `target` (`x`: the next layer's).

    `activated`: the model's activation function follows the bias. The one-row site in a pruned last layer
    uses the buffers' `_last` namesakes; `residual` too, except that `x`, which has none before the layer
    ends, is read at each sequence's last row.
    """

    def sites(dims: Dims, pruned: bool) -> tuple[Site, ...]:
        return in_every_layer(name, dims, pruned, width(dims), inner(dims))

    def task(site: Site, layer: int, plan: Plan, dims: Dims, keep_layers: bool) -> Task:
        slot = layer if keep_layers else 0
        one_row = site.name != name
        kept = None if residual is None else _residual(residual, dims, slot, one_row)
        if one_row:
            a, output = activations.whole(f"{source}_last", dims), activations.whole(f"{target}_last", dims)
        else:
            next_slot = slot + 1 if target == "x" and keep_layers else slot
            a, output = activations.whole(source, dims, slot), activations.whole(target, dims, next_slot)
        w = activations.weight(name, layer, 0, site.columns, site.columns, site.inner, plan.layout)
        b = activations.vector(bias, layer, 0, site.columns)
        return Task(site, layer, operands(a, w, b, kept), output, dims.activation if activated else None)

    def layer_work(site: Site, dims: Dims) -> Work:
        activation = FUNCTIONS[dims.activation].flops if activated else 0
        return work(site, 1 + activation + (residual is not None), residual is not None)

    return Phase(
        name=name,
        title=title,
        order=order,
        work=layer_work,
        reference=reference,
        rounded=rounded,
        sites=sites,
        task=task,
        tolerances=TOLERANCES,
        kind="gemm",
    )


def _residual(name: str, dims: Dims, slot: int, one_row: bool) -> View:
    if not one_row:
        return activations.whole(name, dims, slot)
    if name == "x":
        return activations.last_tokens(activations.whole("x", dims, slot), dims)
    return activations.whole(f"{name}_last", dims)
