"""The activation buffers of a pass, and views of them for the phases' operands.

A buffer has one slot when timed; when every layer is kept, one slot a layer, and `x` one more, since
slot l of `x` is what goes into layer l. Slots of one buffer follow each other in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from gputop.plan.types import WORD_BYTES, Dims, Layout, Task, View, WeightView


@dataclass(frozen=True, slots=True)
class Buffer:
    """One activation, named; rows and width by dims."""

    name: str
    width: Callable[[Dims], int]
    rows: Callable[[Dims], int]
    slots: Callable[[Dims], int]
    """When every layer is kept; 1 when timed."""
    dtype: Literal["float32", "int32"] = "float32"
    pruned_only: bool = False

    def size(self, dims: Dims) -> int:
        """Elements of one slot."""
        return self.rows(dims) * self.width(dims)


def _all(dims: Dims) -> int:
    return dims.tokens


def _last(dims: Dims) -> int:
    return dims.batch


def _layers(dims: Dims) -> int:
    return dims.layers


def _once(dims: Dims) -> int:
    return 1


def _d(dims: Dims) -> int:
    return dims.d_model


def _ff(dims: Dims) -> int:
    return dims.d_ff


BUFFERS = (
    Buffer("tokens", _once, _all, _once, dtype="int32"),
    Buffer("x", _d, _all, lambda d: d.layers + 1),
    Buffer("xn1", _d, _all, _layers),
    Buffer("qkv", lambda d: 3 * d.d_model, _all, _layers),
    Buffer("att", _d, _all, _layers),
    Buffer("x_mid", _d, _all, _layers),
    Buffer("xn2", _d, _all, _layers),
    Buffer("h", _ff, _all, _layers),
    Buffer("q_last", _d, _last, _once, pruned_only=True),
    Buffer("att_last", _d, _last, _once, pruned_only=True),
    Buffer("x_mid_last", _d, _last, _once, pruned_only=True),
    Buffer("xn2_last", _d, _last, _once, pruned_only=True),
    Buffer("h_last", _ff, _last, _once, pruned_only=True),
    Buffer("x_last", _d, _last, _once, pruned_only=True),
    Buffer("xnf", _d, _last, _once),
    Buffer("logits", lambda d: d.vocab, _last, _once),
)
BY_NAME = {buffer.name: buffer for buffer in BUFFERS}


def table(pruned: bool) -> tuple[Buffer, ...]:
    """The buffers that a pass needs."""
    return tuple(buffer for buffer in BUFFERS if pruned or not buffer.pruned_only)


def slots(buffer: Buffer, dims: Dims, keep_layers: bool) -> int:
    """Copies of the buffer to allocate."""
    return buffer.slots(dims) if keep_layers else 1


def activation_bytes(dims: Dims, pruned: bool, keep_layers: bool = False) -> int:
    """Memory for all buffers of a pass."""
    return sum(b.size(dims) * slots(b, dims, keep_layers) * WORD_BYTES for b in table(pruned))


def whole(name: str, dims: Dims, slot: int = 0) -> View:
    """Return all rows and columns of a slot."""
    buffer = BY_NAME[name]
    width = buffer.width(dims)
    return View(name, slot, buffer.rows(dims), width, width)


def columns(view: View, start: int, count: int) -> View:
    """The columns [start, start + count) of a view."""
    return replace(view, columns=count, offset=view.offset + start)


def last_tokens(view: View, dims: Dims) -> View:
    """Return the last row of each sequence from a view of all tokens: row b * seq + seq - 1."""
    return replace(
        view,
        rows=dims.batch,
        ld=dims.seq * view.ld,
        offset=view.offset + (dims.seq - 1) * view.ld,
    )


def weight(
    tensor: str, layer: int, start: int, outs: int, total: int, inner: int, layout: Layout
) -> WeightView:
    """Outputs [start, start + outs) of a GEMM weight that has `total` of them, each over `inner` inputs."""
    if layout == "row":
        return WeightView(tensor, layer, start, outs, ld=inner, offset=start * inner)
    return WeightView(tensor, layer, start, outs, ld=total, offset=start)


def vector(tensor: str, layer: int, start: int, outs: int) -> WeightView:
    """Elements [start, start + outs) of a bias, gain or shift."""
    return WeightView(tensor, layer, start, outs, offset=start)


def split(task: Task, width: int, layout: Layout) -> tuple[Task, ...]:
    """The same GEMM as several that give `width` outputs each: q, k and v where qkv is not fused."""
    return tuple(_piece(task, start, width, layout) for start in range(0, task.output.columns, width))


def _piece(task: Task, start: int, width: int, layout: Layout) -> Task:
    def narrowed(role: str, operand: View | WeightView) -> View | WeightView:
        if isinstance(operand, View):
            return columns(operand, start, width) if role == "residual" else operand
        step = operand.ld if role == "w" and layout == "row" else 1
        return replace(
            operand,
            start=operand.start + start,
            outs=width,
            offset=operand.offset + start * step,
        )

    return replace(
        task,
        site=replace(task.site, columns=width),
        inputs=tuple((role, narrowed(role, operand)) for role, operand in task.inputs),
        output=columns(task.output, start, width),
    )
