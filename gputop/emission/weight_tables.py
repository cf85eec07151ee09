"""The weights of a plan as tables, from which an emitted program draws them."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from gputop.emission.cpp_text import boolean, wrapped
from gputop.model.weights import BY_NAME, FOLDS, GEMM_WEIGHTS, TENSORS, Fold, Tensor, draws_of, layer_count
from gputop.plan.types import Dims, Plan


def draw_tables(plan: Plan, dims: Dims) -> Iterator[str]:
    """Lines that declare every tensor and what it is drawn from, in C and C++ alike."""
    folds = FOLDS if plan.fold else ()
    created = [entry for entry in folds if entry.bias not in BY_NAME]
    yield "// in layers, layers, rows, columns, transposed, memory"
    for tensor in TENSORS:
        yield _tensor(tensor.name, tensor, _matrix(tensor.shape(dims)), plan, dims)
    for entry in created:
        weight = BY_NAME[entry.weight]
        yield _tensor(entry.bias, weight, (1, weight.shape(dims)[0]), plan, dims)
    yield ""
    names = (*BY_NAME, *(entry.bias for entry in created))
    yield "Tensor* const TENSORS[] = {"
    yield from wrapped(", ".join(f"&{name}" for name in names) + ",", "    ", "    ")
    yield "};"
    yield ""
    yield "// tensor, name, first row, rows, standard deviation, whether 1 is added, gain to fold in"
    yield "const Draw DRAWS[] = {"
    gains = {entry.weight: entry.gain for entry in folds}
    for tensor in TENSORS:
        yield from _draws(tensor, gains.get(tensor.name), dims)
    yield "};"


def fold_table(plan: Plan) -> Iterator[str]:
    """Lines of C++ that say which layernorm shifts are folded into which biases."""
    yield "// weight, shift, bias, whether the unfolded model has this bias"
    yield "const std::vector<Fold> FOLDS = {"
    yield from (_fold(entry) for entry in (FOLDS if plan.fold else ()))
    yield "};"


def _tensor(name: str, like: Tensor, shape: tuple[int, int], plan: Plan, dims: Dims) -> str:
    """`like`: the tensor in whose layers it stands."""
    transposed = plan.layout == "transposed" and name in GEMM_WEIGHTS
    fields = (boolean(like.in_layers), layer_count(like, dims), *shape, boolean(transposed), "NULL")
    return f"Tensor {name} = {{{', '.join(map(str, fields))}}};"


def _draws(tensor: Tensor, gain: str | None, dims: Dims) -> Iterator[str]:
    draws = draws_of(tensor, dims)
    rows = _matrix(tensor.shape(dims))[0] // len(draws)
    for index, (name, std) in enumerate(draws):
        fields = (f"&{tensor.name}", f'"{name}"', index * rows, rows, std, boolean(tensor.gain))
        folded = (f"&{gain}",) if gain else ()
        yield f"    {{{', '.join(map(str, (*fields, *folded)))}}},"


def _fold(entry: Fold) -> str:
    fields = (f"&{entry.weight}", f"&{entry.shift}", f"&{entry.bias}", boolean(entry.bias in BY_NAME))
    return f"    {{{', '.join(fields)}}},"


def _matrix(shape: tuple[int, ...]) -> tuple[int, int]:
    """[rows, columns]; a vector is one row."""
    return prod(shape[:-1]), shape[-1]
