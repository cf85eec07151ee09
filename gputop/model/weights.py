"""The model's weights: what tensors there are, their values, and the layernorm fold.

Canonical shape is [out, in]; tensors of the layers are stacked along a leading axis of layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from gputop.model.rng import Draw, fill
from gputop.plan.types import WORD_BYTES, Dims, Plan, Workload
from gputop.util.aligned_array import aligned
from gputop.util.heartbeat import beat

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Doubles = NDArray[np.float64]

STD = 0.02
STD_QUERY_KEY = 0.05
STD_WO = 0.06
STD_GAIN = 0.1


@dataclass(frozen=True, slots=True)
class Tensor:
    """One weight tensor; `shape` is that of one layer where it stands in the layers."""

    name: str
    shape: Callable[[Dims], tuple[int, ...]]
    in_layers: bool = True
    std: float = STD
    gain: bool = False
    """Drawn about 1."""
    parts: tuple[tuple[str, float], ...] = ()
    """Names and standard deviations of equal parts along the first axis, drawn each with its own key."""

    def draws(self) -> tuple[tuple[str, float], ...]:
        """(name, std) of each part in order; the tensor itself where it has none."""
        return self.parts or ((self.name, self.std),)


TENSORS = (
    Tensor("embedding", lambda d: (d.vocab, d.d_model), in_layers=False),
    Tensor("position", lambda d: (d.seq, d.d_model), in_layers=False),
    Tensor("gain1", lambda d: (d.d_model,), std=STD_GAIN, gain=True),
    Tensor("shift1", lambda d: (d.d_model,)),
    Tensor(
        "wqkv",
        lambda d: (3 * d.d_model, d.d_model),
        parts=(("wq", STD_QUERY_KEY), ("wk", STD_QUERY_KEY), ("wv", STD)),
    ),
    Tensor("bqkv", lambda d: (3 * d.d_model,)),
    Tensor("wo", lambda d: (d.d_model, d.d_model), std=STD_WO),
    Tensor("bo", lambda d: (d.d_model,)),
    Tensor("gain2", lambda d: (d.d_model,), std=STD_GAIN, gain=True),
    Tensor("shift2", lambda d: (d.d_model,)),
    Tensor("w1", lambda d: (d.d_ff, d.d_model)),
    Tensor("b1", lambda d: (d.d_ff,)),
    Tensor("w2", lambda d: (d.d_model, d.d_ff)),
    Tensor("b2", lambda d: (d.d_model,)),
    Tensor("gainf", lambda d: (d.d_model,), in_layers=False, std=STD_GAIN, gain=True),
    Tensor("shiftf", lambda d: (d.d_model,), in_layers=False),
    Tensor("whead", lambda d: (d.vocab, d.d_model), in_layers=False),
)
BY_NAME = {tensor.name: tensor for tensor in TENSORS}


@dataclass(frozen=True, slots=True)
class Fold:
    """A layernorm's gain and shift, and the weight and bias that can carry them."""

    gain: str
    shift: str
    weight: str
    bias: str


FOLDS = (
    Fold("gain1", "shift1", "wqkv", "bqkv"),
    Fold("gain2", "shift2", "w1", "b1"),
    Fold("gainf", "shiftf", "whead", "bhead"),
)
"""The head has no bias of its own: `bhead` exists only where folded."""
GEMM_WEIGHTS = ("wqkv", "wo", "w1", "w2", "whead")
"""The tensors whose layout a plan chooses."""


@dataclass(frozen=True, slots=True)
class TensorPart:
    """A run of consecutive elements of a stored tensor that is drawn with one key."""

    name: str
    """As hashed: `3/wq`."""
    tensor: str
    layer: int
    offset: int
    """Elements from the start of the tensor's layer."""
    count: int
    std: float
    gain: bool


TIED = {"whead": "embedding"}
"""Of a model with a tied head: the tensor that is another one, element by element."""


def draws_of(tensor: Tensor, dims: Dims) -> tuple[tuple[str, float], ...]:
    """As `Tensor.draws`; a tied head is drawn with the embedding's key: the same numbers."""
    return BY_NAME[TIED.get(tensor.name, tensor.name)].draws() if dims.tied_head else tensor.draws()


def parts(dims: Dims) -> Iterator[TensorPart]:
    """Every run of elements of the canonical weights, tensor by tensor."""
    for tensor in TENSORS:
        draws = draws_of(tensor, dims)
        count = int(np.prod(tensor.shape(dims))) // len(draws)
        for layer in range(layer_count(tensor, dims)):
            for index, (name, std) in enumerate(draws):
                full = f"{layer}/{name}" if tensor.in_layers else name
                yield TensorPart(full, tensor.name, layer, index * count, count, std, tensor.gain)


def layer_count(tensor: Tensor, dims: Dims) -> int:
    return dims.layers if tensor.in_layers else 1


def parameter_count(dims: Dims) -> int:
    """Weights of the canonical model, a tied head's counted once."""
    tied = int(np.prod(BY_NAME["whead"].shape(dims))) if dims.tied_head else 0
    return weight_bytes(dims) // WORD_BYTES - tied


def weight_bytes(dims: Dims) -> int:
    """Bytes of the canonical model in fp32. A tied head is stored twice: a plan may fold its one."""
    return sum(int(np.prod(t.shape(dims))) * layer_count(t, dims) for t in TENSORS) * WORD_BYTES


@lru_cache(maxsize=1)
def master(workload: Workload) -> dict[str, Floats]:
    """The canonical weights, read-only: [layers, out, in], or [1, ...] outside the layers.

    UsageError for a file of weights that can't be read.
    """
    arrays = _drawn(workload) if workload.weights is None else _from_file(workload)
    for array in arrays.values():
        array.flags.writeable = False
    return arrays


def _from_file(workload: Workload) -> dict[str, Floats]:
    # Not above: it knows the tensors, which stand here.
    from gputop.model import weights_file

    return weights_file.read(workload)


def _drawn(workload: Workload) -> dict[str, Floats]:
    dims = workload.dims
    arrays = {tensor.name: aligned((layer_count(tensor, dims), *tensor.shape(dims))) for tensor in TENSORS}
    draws = []
    for part in parts(dims):
        run = arrays[part.tensor][part.layer].reshape(-1)[part.offset : part.offset + part.count]
        draws.append(Draw(part.name, part.std, part.gain, run))
    fill(workload.seed, draws)
    return arrays


def fold(weight: Doubles, bias: Doubles | None, gain: Doubles, shift: Doubles) -> tuple[Doubles, Doubles]:
    """Weight and bias that take a layernorm's unscaled output and give what the scaled one gave.

    w (x * gain + shift) + b = (w * gain) x + (w shift + b), in float64. The unscaled output x has mean 0, so
    that a constant may be added to a row of w * gain: its mean is subtracted (rounded to float32), and
    the product is then the same of a row from which the mean was never subtracted.
    """
    carried = weight @ shift
    scaled = weight * gain
    scaled -= scaled.mean(axis=-1, keepdims=True).astype(np.float32)
    return scaled, carried if bias is None else carried + bias


def reference_tensor(workload: Workload, tensor: str, layer: int, folded: bool) -> Doubles:
    """One tensor of one layer in float64, canonical [out, in], from the master weights alone."""
    arrays = master(workload)
    if folded:
        for entry in FOLDS:
            if tensor in (entry.weight, entry.bias):
                return _folded(arrays, entry, layer)[0 if tensor == entry.weight else 1]
    return np.asarray(arrays[tensor][layer], np.float64)


def effective(arrays: dict[str, Floats], plan: Plan, dims: Dims) -> dict[str, Floats]:
    """The weights as a plan stores them: layout and fold applied, folds rounded once from float64.

    Same leading axis as the master; a plan that changes nothing gets the master's own arrays.
    """
    out = dict(arrays)
    with ThreadPoolExecutor() as pool:
        if plan.fold:
            for entry in FOLDS:
                _store_folded(pool, arrays, entry, out)
        if plan.layout == "transposed":
            for name in GEMM_WEIGHTS:
                out[name] = _transposed(pool, out[name])
    return out


def _folded(arrays: dict[str, Floats], entry: Fold, layer: int) -> tuple[Doubles, Doubles]:
    weight, gain, shift = (
        arrays[name][layer].astype(np.float64) for name in (entry.weight, entry.gain, entry.shift)
    )
    bias = arrays[entry.bias][layer].astype(np.float64) if entry.bias in arrays else None
    return fold(weight, bias, gain, shift)


def _store_folded(pool: Executor, arrays: dict[str, Floats], entry: Fold, out: dict[str, Floats]) -> None:
    weight = aligned(arrays[entry.weight].shape)
    bias = aligned(weight.shape[:2])

    def store(layer: int) -> None:
        weight[layer], bias[layer] = _folded(arrays, entry, layer)

    for _ in pool.map(store, range(len(weight))):
        beat()
    out[entry.weight], out[entry.bias] = weight, bias
    del out[entry.gain], out[entry.shift]


def _transposed(pool: Executor, weight: Floats) -> Floats:
    """[layers, out, in] -> [layers, in, out]."""
    turned = aligned(weight.transpose(0, 2, 1).shape)
    for _ in pool.map(lambda layer: np.copyto(turned[layer], weight[layer].T), range(len(weight))):
        beat()
    return turned
