"""Launch arguments as C++ expressions: one renderer for each type of argument."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gputop.model.weights import TENSORS
from gputop.plan.types import Argument, Scratch, TensorMap, View, WeightView
from gputop.util.errors import UsageError

LAYER = "layer"
"""Stands for the layer that a launch belongs to, until it is known whether a loop encloses it."""
IN_LAYERS = frozenset(tensor.name for tensor in TENSORS if tensor.in_layers)


@dataclass(frozen=True, slots=True)
class Place:
    """What an argument's expression depends on beside the argument itself."""

    site: str
    layer: int
    workspaces: Mapping[tuple[str, str], str]
    """(site, name of a scratch) -> the program's variable."""


Renderer = Callable[[Any, Place], str]


def expression(arg: Argument, place: Place) -> str:
    """The argument as it stands in its struct's initialiser. UsageError for a type without a renderer."""
    renderer = RENDERERS.get(type(arg))
    if renderer is None:
        raise UsageError(
            f"emit can't write an argument of type {type(arg).__name__}, which {place.site} takes."
        )
    return renderer(arg, place)


def layer_index(relative: int) -> str:
    """The layer `relative` layers after the launch's own: `layer`, `layer + 1`."""
    sign = "+" if relative > 0 else "-"
    return f"{LAYER} {sign} {abs(relative)}" if relative else LAYER


def _view(view: View, place: Place) -> str:
    assert view.slot == 0, "a timed pass has one slot of each buffer"
    return _plus(view.buffer, view.offset)


def _weight(view: WeightView, place: Place) -> str:
    index = layer_index(view.layer - place.layer) if view.tensor in IN_LAYERS else "0"
    return _plus(f"{view.tensor}[{index}]", view.offset)


def _tensor_map(tensor: TensorMap, place: Place) -> str:
    """A call of templates/tensor_map.cu."""
    lists = (
        "{" + ", ".join(map(str, numbers)) + "}" for numbers in (tensor.sizes, tensor.strides, tensor.box)
    )
    return f"tensor_map({expression(tensor.operand, place)}, {', '.join(lists)})"


def _float(value: float, place: Place) -> str:
    if not math.isfinite(value):
        raise UsageError(f"emit can't write {value} as an argument, which {place.site} takes.")
    return f"{np.float32(value)!s}f"


def _plus(base: str, offset: int) -> str:
    return f"{base} + {offset}" if offset else base


RENDERERS: Mapping[type, Renderer] = {
    TensorMap: _tensor_map,
    View: _view,
    WeightView: _weight,
    Scratch: lambda scratch, place: place.workspaces[place.site, scratch.name],
    bool: lambda value, place: str(int(value)),
    int: lambda value, place: str(value),
    float: _float,
    type(None): lambda value, place: "nullptr",
}
"""Type of an argument -> how it is written."""
