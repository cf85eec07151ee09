"""The memory that one variant of a plan runs in: activation buffers and workspaces, bound by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputop.backends.cuda.runtime.context import Context
from gputop.backends.cuda.runtime.launch import KernelLaunch
from gputop.backends.cuda.runtime.utility_kernels import Tools, float_word
from gputop.backends.cuda.weights import DeviceWeights
from gputop.model import activations
from gputop.model.number_formats import DTYPES, Format, of_buffer, widened
from gputop.plan.types import WORD_BYTES, Argument, Dims, Launch, Plan, Scratch, View, WeightView

TOKENS = "tokens"


class PlanMemory:
    """Arrays behind the operands of a plan's launches. With `keep_layers`, a slot for every layer."""

    def __init__(
        self,
        context: Context,
        tools: Tools,
        weights: DeviceWeights,
        plan: Plan,
        dims: Dims,
        launches: Iterable[tuple[str, Launch]],
        keep_layers: bool,
    ) -> None:
        """`launches`: every launch with its step's site, whose workspaces it shares."""
        self._context = context
        self._tools = tools
        self._weights = weights
        self._formats: dict[str, Format] = {
            buffer.name: of_buffer(buffer.name, plan.math) for buffer in activations.table(plan.prune)
        }
        self._slot_elements = {buffer.name: buffer.size(dims) for buffer in activations.table(plan.prune)}
        self._buffers: dict[str, Any] = {
            buffer.name: context.array(
                (activations.slots(buffer, dims, keep_layers), buffer.size(dims)),
                DTYPES[self._formats[buffer.name]],
                "the activations",
            )
            for buffer in activations.table(plan.prune)
        }
        self._scratch: dict[tuple[str, str], Any] = {
            key: context.array((-(-size // WORD_BYTES),), np.uint32, "a workspace")
            for key, size in scratch_bytes(launches).items()
        }
        self.tokens = self._buffers[TOKENS][0]
        """Flat int32, where the pass reads its tokens."""
        self.logits = self._buffers["logits"][0]
        """Flat float32, where the pass leaves its logits."""
        self._fills: dict[float, tuple[KernelLaunch, ...]] = {}

    def address(self, site: str, operand: View | WeightView | Scratch) -> int:
        """Device address of an operand's first element, for a launch of the step at `site`."""
        if isinstance(operand, WeightView):
            return self._weights.address(operand)
        if isinstance(operand, Scratch):
            pointer: int = self._scratch[site, operand.name].data.ptr
            return pointer
        elements = operand.slot * self._slot_elements[operand.buffer] + operand.offset
        base: int = self._buffers[operand.buffer].data.ptr
        element_bytes: int = DTYPES[self._formats[operand.buffer]].itemsize
        return base + elements * element_bytes

    def poison(self, value: float) -> None:
        """Enqueue filling every activation and workspace, so that a value not written shows."""
        if value not in self._fills:
            word = float_word(value)
            upper = word >> 16
            words = {"float32": word, "bf16": upper << 16 | upper}
            targets = [
                (array, words[self._formats[name]]) for name, array in self._buffers.items() if name != TOKENS
            ]
            targets += [(array, word) for array in self._scratch.values()]
            # Memory is allocated in whole words.
            self._fills[value] = tuple(
                self._tools.fill_words(array.data.ptr, -(-array.nbytes // WORD_BYTES), filled_with)
                for array, filled_with in targets
            )
        for fill in self._fills[value]:
            fill()

    def read(self, view: View) -> NDArray[Any]:
        """The view as [rows, columns] on the host."""
        slot = self._context.copy_out(self._buffers[view.buffer][view.slot])
        if self._formats[view.buffer] == "bf16":
            slot = widened(slot)
        shape, strides = (view.rows, view.columns), (view.ld * WORD_BYTES, WORD_BYTES)
        return np.lib.stride_tricks.as_strided(slot[view.offset :], shape, strides).copy()

    def workspace(self, site: str, name: str) -> NDArray[np.uint8]:
        """The bytes of a workspace on the host."""
        words: NDArray[np.uint32] = self._context.copy_out(self._scratch[site, name])
        return words.view(np.uint8)

    def close(self) -> None:
        self._fills.clear()
        self._buffers.clear()
        self._scratch.clear()
        self.tokens = self.logits = None


def scratch_bytes(launches: Iterable[tuple[str, Launch]]) -> dict[tuple[str, str], int]:
    """(site, name) -> the largest size that any launch of the site asks for."""
    sizes: dict[tuple[str, str], int] = {}
    for site, launch in launches:
        for scratch in filter(_is_scratch, launch.args):
            assert isinstance(scratch, Scratch)
            key = (site, scratch.name)
            sizes[key] = max(sizes.get(key, 0), scratch.size_bytes)
    return sizes


def _is_scratch(arg: Argument) -> bool:
    return isinstance(arg, Scratch)
