"""How far an output is from what it should be: by rows against a norm, by elements against their bounds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gputop.results.records import ElementCheck, PhaseCheck

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gputop.plan.types import Array, Rounded

    Floats = NDArray[np.float32]
    Doubles = NDArray[np.float64]

SMALL_ROW = 0.1
"""A row below this share of all rows' root mean square is held against that share of it: what a row of few
outputs loses where they cancel says nothing of the kernel."""


def worst_row(out: Floats, expected: Array) -> tuple[float | None, int]:
    """The largest ||out - expected|| / ||expected|| over rows, and its row; None at the first not finite.

    See `SMALL_ROW` for rows much smaller than the others.
    """
    finite = np.isfinite(out).all(axis=1) & np.isfinite(expected).all(axis=1)
    if not finite.all():
        return None, int(np.argmin(finite))
    norms = np.linalg.norm(expected, axis=1)
    least = max(SMALL_ROW * math.sqrt(np.mean(norms**2)), np.finfo(np.float64).tiny)
    errors = np.linalg.norm(out - expected, axis=1) / np.maximum(norms, least)
    row = int(np.argmax(errors))
    return float(errors[row]), row


def worst_element(out: Floats, expected: Rounded) -> ElementCheck:
    """The element of finite `out` that is farthest from its value as a share of its bound.

    One that differs where nothing may is farther than any other.
    """
    apart = out - expected.value
    bounds = np.nan_to_num(np.where(apart < 0, expected.below, expected.above), nan=0.0, posinf=np.inf)
    errors = abs(apart)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(errors <= 0, 0.0, errors / bounds)
    row, column = np.unravel_index(np.argmax(shares), shares.shape)
    bound = float(bounds[row, column])
    known = bound if math.isfinite(bound) else None
    return ElementCheck(int(row), int(column), float(errors[row, column]), known)


def badness(check: PhaseCheck) -> float:
    """The largest share of what is allowed that a check found."""
    if check.error is None:
        return math.inf
    return max(check.error / check.tolerance, check.element.share if check.element else 0.0)


def within(error: float | None, tolerance: float) -> bool:
    """Whether an error is finite and allowed."""
    return error is not None and error <= tolerance
