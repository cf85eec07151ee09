"""The functions that may stand between the feed-forward products: names, cost, and values in float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gputop.plan.types import Activation

if TYPE_CHECKING:
    from gputop.plan.types import Array


@dataclass(frozen=True, slots=True)
class ActivationFunction:
    """One function of an element."""

    title: str
    """As tables and sentences write it."""
    flops: int
    """An element, an elementary function counted as one."""
    float64: Callable[[Array], Array]
    macro: str = ""
    """What kernels/include/activation.cuh is compiled with; none for ReLU."""


def _relu(x: Array) -> Array:
    return np.maximum(x, 0.0)


def _gelu(x: Array) -> Array:
    """x P(X <= x) of a standard normal X; Hendrycks and Gimpel 2016, arXiv:1606.08415."""
    erf = np.fromiter(map(math.erf, (x * math.sqrt(0.5)).flat), np.float64, x.size)
    return np.asarray(0.5 * x * (1.0 + erf.reshape(x.shape)))


def _gelu_new(x: Array) -> Array:
    """The same paper's approximation."""
    return np.asarray(0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3))))


FUNCTIONS: Mapping[Activation, ActivationFunction] = {
    "relu": ActivationFunction("ReLU", 1, _relu),
    "gelu": ActivationFunction("GELU", 5, _gelu, "GELU_ERF"),
    "gelu_new": ActivationFunction("GELU (tanh)", 9, _gelu_new, "GELU_TANH"),
}
