"""A plan's weights in its layout, fold and number format: gputop/model/rng.py's bits, drawn there, or a
file's, copied.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputop.backends.cuda.runtime.context import Context
from gputop.backends.cuda.runtime.launch import Geometry
from gputop.backends.cuda.runtime.utility_kernels import Tools, halves
from gputop.model import rng
from gputop.model.number_formats import DTYPES, of_weight
from gputop.model.weights import BY_NAME as TENSOR_OF
from gputop.model.weights import (
    FOLDS,
    GEMM_WEIGHTS,
    TENSORS,
    Fold,
    Tensor,
    TensorPart,
    effective,
    layer_count,
    master,
    parts,
)
from gputop.plan.types import WORD_BYTES, Dims, Plan, PlanRequest, WeightView, Workload
from gputop.util.errors import DeviceLost
from gputop.util.heartbeat import beat

FOLD_THREADS = 128
"""Of a block that folds a row, as kernels/measure/fill.cu has room for."""
GAIN_OF = {entry.weight: entry.gain for entry in FOLDS}
CHECKED = ("gain1", "wqkv", "w2", "position")
"""Tensors compared with NumPy at opening: a gain, a tensor of parts, a large one, one outside the layers."""
CHECKED_ELEMENTS = 1 << 16


class DeviceWeights:
    """Every tensor that a plan reads, in its layout; where folded, `bhead` too and no gains and shifts."""

    def __init__(self, context: Context, tools: Tools, workload: Workload, plan: Plan, dims: Dims) -> None:
        """Enqueues the drawing; it is done when the stream is. Weights of a file are there at once."""
        self._tools = tools
        self._seed = workload.seed
        self._dims = dims
        self._transposed = plan.layout == "transposed"
        self._math = plan.math
        self._layer_elements = dict(_sizes(dims, plan.fold))
        self._arrays: dict[str, Any] = {}
        if workload.weights is not None:
            self._copy_in(context, effective(master(workload), plan, dims))
            self._store_rounded(context)
            return
        self._arrays = {
            name: context.array((layers, elements), np.float32, "the weights")
            for name, (layers, elements) in self._layer_elements.items()
        }
        self._parts = {name: [part for part in parts(dims) if part.tensor == name] for name in TENSOR_OF}
        for tensor in TENSORS:
            gain = GAIN_OF.get(tensor.name) if plan.fold else None
            for part in self._parts[tensor.name]:
                if gain is None:
                    self._draw(tensor, part)
                else:
                    self._draw_folded(tensor, part, gain)
        if plan.fold:
            for entry in FOLDS:
                self._fold_biases(entry)
            context.synchronize("drawing the weights")
            for entry in FOLDS:
                del self._arrays[entry.gain], self._arrays[entry.shift]
        self._store_rounded(context)

    def address(self, view: WeightView) -> int:
        """Device address of the view's first element."""
        _, elements = self._layer_elements[view.tensor]
        pointer: int = self._arrays[view.tensor].data.ptr
        return pointer + (view.layer * elements + view.offset) * int(self._arrays[view.tensor].itemsize)

    def array(self, tensor: str, layer: int) -> Any:
        """One layer of a tensor as a flat CuPy array."""
        return self._arrays[tensor][layer]

    def close(self) -> None:
        self._arrays.clear()

    def _address(self, tensor: str, layer: int, offset: int = 0) -> int:
        return self.address(WeightView(tensor, layer, 0, 0, offset=offset))

    def _copy_in(self, context: Context, stored: dict[str, NDArray[np.float32]]) -> None:
        """Weights of a file, in the plan's layout and fold already."""
        for name, array in stored.items():
            self._arrays[name] = context.array(self._layer_elements[name], np.float32, "the weights")
            context.copy_in(self._arrays[name], array.reshape(len(array), -1))
            beat()

    def _store_rounded(self, context: Context) -> None:
        """Rounds what the plan stores in bf16, one tensor after the other; each one's floats are freed."""
        for name, exact in self._arrays.items():
            if of_weight(name, self._math) != "bf16":
                continue
            stored = context.array(exact.shape, DTYPES["bf16"], "the weights")
            arguments = struct.pack("<QQii", exact.data.ptr, stored.data.ptr, *halves(exact.size))
            self._tools.launch("fill.cu", "round_to_bf16", self._tools.spread(exact.size), arguments)()
            context.synchronize("rounding the weights")
            self._arrays[name] = stored

    def _draw(self, tensor: Tensor, part: TensorPart) -> None:
        shape = tensor.shape(self._dims)
        inner = shape[-1] if len(shape) == 2 else part.count
        arguments = struct.pack(
            "<Qiiiiiiiif4x",
            self._address(tensor.name, part.layer, 0 if len(shape) == 2 else part.offset),
            *halves(rng.key(self._seed, part.name)),
            part.count,
            inner,
            part.offset // inner if len(shape) == 2 else 0,
            prod(shape) // inner,
            int(self._transposed and tensor.name in GEMM_WEIGHTS),
            int(part.gain),
            float(rng.scale(part.std)),
        )
        self._tools.launch("fill.cu", "fill_weights", self._tools.spread(part.count), arguments)()

    def _draw_folded(self, tensor: Tensor, part: TensorPart, gain: str) -> None:
        """Enqueued after the gain that it reads: `TENSORS` has a gain before the weight that carries it."""
        rows, inner = tensor.shape(self._dims)
        arguments = struct.pack(
            "<QQiiiiiif4x",
            self._address(tensor.name, part.layer),
            self._address(gain, part.layer),
            *halves(rng.key(self._seed, part.name)),
            inner,
            part.offset // inner,
            rows,
            int(self._transposed),
            float(rng.scale(part.std)),
        )
        geometry = Geometry((part.count // inner, 1, 1), (FOLD_THREADS, 1, 1))
        self._tools.launch("fill.cu", "fold_weights", geometry, arguments)()

    def _fold_biases(self, entry: Fold) -> None:
        """Adds what the fold carries over; each row reads its own bias before it writes it."""
        tensor = TENSOR_OF[entry.weight]
        inner = tensor.shape(self._dims)[-1]
        has_bias = entry.bias in TENSOR_OF
        for part in self._parts[entry.weight]:
            rows = part.count // inner
            bias = self._address(entry.bias, part.layer, part.offset // inner)
            arguments = struct.pack(
                "<QQQiiiif4x",
                bias,
                self._address(entry.shift, part.layer),
                bias if has_bias else 0,
                *halves(rng.key(self._seed, part.name)),
                rows,
                inner,
                float(rng.scale(part.std)),
            )
            geometry = Geometry((rows, 1, 1), (FOLD_THREADS, 1, 1))
            self._tools.launch("fill.cu", "fold_bias", geometry, arguments)()


def check_fill(context: Context, tools: Tools, workload: Workload) -> None:
    """Compare drawn weights with NumPy's, bit for bit. DeviceLost when the device computes otherwise.

    Weights of a file are copied: there is nothing to compare.
    """
    if workload.weights is not None:
        return
    device = DeviceWeights(context, tools, workload, Plan("cuda", PlanRequest(""), ()), workload.dims)
    context.synchronize("drawing the weights")
    for name in CHECKED:
        part = next(part for part in reversed(list(parts(workload.dims))) if part.tensor == name)
        count = min(part.count, CHECKED_ELEMENTS)
        expected = np.empty(count, np.float32)
        rng.fill(workload.seed, [rng.Draw(part.name, part.std, part.gain, expected)])
        drawn = context.copy_out(device.array(name, part.layer)[part.offset : part.offset + count])
        if not np.array_equal(drawn.view(np.int32), expected.view(np.int32)):
            raise DeviceLost(
                f"The device draws other weights than NumPy does ({part.name}): it can't be trusted."
            )
    device.close()


def _sizes(dims: Dims, folded: bool) -> Iterator[tuple[str, tuple[int, int]]]:
    """Tensor -> (layers, elements of one layer)."""
    for tensor in TENSORS:
        yield tensor.name, (layer_count(tensor, dims), prod(tensor.shape(dims)))
    if folded:
        for entry in FOLDS:
            if entry.bias not in TENSOR_OF:
                weight = TENSOR_OF[entry.weight]
                yield entry.bias, (layer_count(weight, dims), weight.shape(dims)[0])


def plan_weight_bytes(dims: Dims, plan: Plan) -> int:
    """Memory that `DeviceWeights` takes at its peak."""
    return sum(layers * elements for _, (layers, elements) in _sizes(dims, plan.fold)) * WORD_BYTES
