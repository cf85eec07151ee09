"""The residual report: whether measured over modelled depends on a physical feature, and so which term is
mispriced.

log(measured / modelled) of every measured candidate is regressed on its features by least squares. What the
search forecasts with (`prediction`) has priors; this has none, so that nothing pulls a coefficient to 0.
A coefficient is of one doubling of waves, parts or bytes in flight, and of the whole range of occupancy and
tile fill. Below 0 the model overprices what has more of the feature, above 0 it underprices it. A feature is
named only if the interval of its coefficient excludes 0; else the report says that none is. All intervals
together are at 99 %: each alone is wider.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gputop.perf.student import student
from gputop.perf.verdicts import CONFIDENCE
from gputop.results.search_space import FEATURES
from gputop.search.menu import Cell, Menu
from gputop.search.prediction import feature_value

Floats = NDArray[np.float64]

SPARE = 3
"""Cells beyond the coefficients that a regression needs at the least."""


@dataclass(frozen=True, slots=True)
class Coefficient:
    """How the residual changes with a feature, with its interval."""

    feature: str
    value: float
    lo: float
    hi: float

    @property
    def named(self) -> bool:
        """Whether the interval excludes 0."""
        return self.lo > 0 or self.hi < 0

    @property
    def direction(self) -> str:
        """What the model does to what has more of the feature."""
        return "overprices" if self.value < 0 else "underprices"


@dataclass(frozen=True, slots=True)
class Residuals:
    """The report. No coefficients: `why` says why not."""

    coefficients: tuple[Coefficient, ...]
    cells: int
    spread: float | None
    """Standard deviation of what the features leave."""
    why: str = ""

    @property
    def named(self) -> tuple[Coefficient, ...]:
        """The features that are mispriced, the surest first."""
        found = [one for one in self.coefficients if one.named]
        return tuple(sorted(found, key=lambda one: -abs(one.value) / (one.hi - one.lo)))


def residuals(menu: Menu, measured_s: Mapping[Cell, float]) -> Residuals:
    """Regress the residuals of measured cells. A cell without a price or a feature is left out."""
    priced = {
        cell: math.log(time_s / model_s)
        for cell, time_s in measured_s.items()
        if (model_s := menu.candidate(cell).model_s)
    }
    values = {
        name: {cell: feature_value(menu.candidate(cell).features, name) for cell in priced}
        for name in FEATURES
    }
    # A feature that half of the cells lack says more of who has it than of what it does.
    names = [name for name in FEATURES if _known(values[name].values()) * 2 > len(priced)]
    cells = [cell for cell in priced if all(values[name][cell] is not None for name in names)]
    names = [name for name in names if len({values[name][cell] for cell in cells}) > 1]
    if not names:
        return Residuals((), len(priced), None, "no physical feature differs between what was measured")
    if len(cells) < len(names) + 1 + SPARE:
        return Residuals((), len(cells), None, f"{len(cells)} cells are too few for {len(names)} features")
    columns = [[values[name][cell] for cell in cells] for name in names]
    return _fitted(names, np.array(columns, dtype=float).T, np.array([priced[cell] for cell in cells]))


def _known(values: Iterable[float | None]) -> int:
    return sum(value is not None for value in values)


def _fitted(names: Sequence[str], x: Floats, y: Floats) -> Residuals:
    """Least squares with an intercept; intervals by Student's t, for all features at once (Bonferroni)."""
    count, features = x.shape
    centred = x - x.mean(axis=0)
    if np.linalg.matrix_rank(centred / centred.std(axis=0)) < features:
        why = f"{', '.join(names)} go together in what was measured and can't be told apart"
        return Residuals((), count, None, why)
    values, *_ = np.linalg.lstsq(centred, y - y.mean(), rcond=None)
    left = y - y.mean() - centred @ values
    degrees = count - features - 1
    variance = float(left @ left) / degrees
    half_widths = student(1 - (1 - CONFIDENCE) / features, degrees) * np.sqrt(
        variance * np.diag(np.linalg.inv(centred.T @ centred))
    )
    coefficients = tuple(
        Coefficient(name, float(value), float(value - half), float(value + half))
        for name, value, half in zip(names, values, half_widths, strict=True)
    )
    return Residuals(coefficients, count, math.sqrt(variance))
