"""The memory of one prepared plan: weights, activation buffers and workspaces, bound by name.

Everything is allocated while a plan is prepared and starts on a 64-byte boundary, so that neither
page faults nor alignment differ between plans.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from gputop.model import activations
from gputop.plan.types import WORD_BYTES, Dims, Plan, Scratch, View, WeightView
from gputop.util.aligned_array import aligned
from gputop.util.heartbeat import beat

Floats = NDArray[np.float32]
Words = NDArray[Any]


def own_copy(weights: Mapping[str, Floats]) -> dict[str, Floats]:
    """Copy each tensor into separate memory."""
    copies = {}
    for name, source in weights.items():
        copies[name] = aligned(source.shape)
        np.copyto(copies[name], source)
        beat()
    return copies


class Memory:
    """Arrays behind the views of one plan's tasks."""

    def __init__(self, plan: Plan, dims: Dims, weights: Mapping[str, Floats], keep_layers: bool) -> None:
        """`weights`: tensor -> [layers, ...] in the plan's layout, as `weights.effective` returns them."""
        self._weights = weights
        self._layout = plan.layout
        self._buffers: dict[str, Words] = {
            buffer.name: aligned(
                (activations.slots(buffer, dims, keep_layers), buffer.size(dims)), np.dtype(buffer.dtype)
            )
            for buffer in activations.table(plan.prune)
        }
        self._scratch: dict[tuple[str, tuple[int, ...]], Floats] = {}
        self.tokens: NDArray[np.int32] = self._buffers["tokens"][0]
        """Where the pass reads its tokens, flat."""
        self.logits: Floats = self._buffers["logits"][0]
        """Where the pass leaves its logits, flat."""

    def view(self, view: View) -> Words:
        """[rows, columns] of an activation buffer; int32 for the tokens."""
        slot = self._buffers[view.buffer][view.slot]
        shape, strides = (view.rows, view.columns), (view.ld * WORD_BYTES, WORD_BYTES)
        return as_strided(slot[view.offset :], shape, strides)

    def vector(self, view: WeightView) -> Floats:
        """[outs] of a bias, gain or shift."""
        vector: Floats = self._weights[view.tensor][view.layer]
        return vector[view.start : view.start + view.outs]

    def table(self, view: WeightView) -> Floats:
        """[rows, d_model] of an embedding table, which every layout stores by rows."""
        table: Floats = self._weights[view.tensor][view.layer]
        return table

    def matrix(self, view: WeightView, inner: int) -> Floats:
        """[inner, outs] of a weight matrix, whatever the layout it is stored in."""
        stored: Floats = self._weights[view.tensor][view.layer].reshape(-1)[view.offset :]
        across, along = view.ld * WORD_BYTES, WORD_BYTES
        if self._layout == "row":
            across, along = along, across
        return as_strided(stored, (inner, view.outs), (across, along))

    def address(self, operand: View | WeightView | Scratch) -> int:
        """Where an operand's first element lies."""
        if isinstance(operand, Scratch):
            return int(self.scratch(operand.name, (operand.size_bytes // WORD_BYTES,)).ctypes.data)
        if isinstance(operand, View):
            return int(self._buffers[operand.buffer][operand.slot].ctypes.data) + operand.offset * WORD_BYTES
        stored = self._weights[operand.tensor][operand.layer]
        return int(stored.ctypes.data) + operand.offset * WORD_BYTES

    def scratch(self, name: str, shape: tuple[int, ...]) -> Floats:
        """A workspace shared by all steps that ask for this name and shape."""
        if (name, shape) not in self._scratch:
            self._scratch[name, shape] = aligned(shape)
        return self._scratch[name, shape]

    def poison(self, value: float) -> None:
        """Fill every activation and workspace, so that a value not written shows."""
        for name, buffer in self._buffers.items():
            if name != "tokens":
                buffer.fill(value)
        for workspace in self._scratch.values():
            workspace.fill(value)

    def close(self) -> None:
        """Let go of everything but the views still held elsewhere."""
        self._weights = {}
        self._buffers.clear()
        self._scratch.clear()
