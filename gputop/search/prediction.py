"""Port 3: what a candidate will take. The term model is the prior, a regression learns its residual.

A residual is log(measured / modelled). Its prior is a sum of normal effects: one of all kernels of ours and
one of all of a library, one of each physical feature, one of each kernel, one of each site, and what is a
cell's own. Gaussian process regression with that (linear) kernel gives every candidate a mean and a standard
deviation, which shrinks as its relatives are measured. Without scikit-learn the residual is taken to be the
mean of those seen.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gputop.results.search_space import FEATURES, SpaceCandidate
from gputop.search.menu import Cell, Menu

if TYPE_CHECKING:
    from gputop.results.search_space import Features

Floats = NDArray[np.float64]

COMMON_SD, FEATURE_SD, KERNEL_SD, SITE_SD, CELL_SD = 0.8, 0.25, 0.4, 0.3, 0.15
"""Prior standard deviations of the effects, in natural logarithms of a time."""
LOGARITHMIC = frozenset({"waves", "splits", "bytes_in_flight"})
"""Features that act by their powers of two."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Natural logarithm of a candidate's seconds: mean and standard deviation."""

    log_s: float
    sd: float

    @property
    def time_s(self) -> float:
        """The median."""
        return math.exp(self.log_s)

    def expected_gain(self, incumbent_s: float) -> float:
        """Seconds that trying it is expected to save: it is taken only if it is faster."""
        m, s = self.log_s - math.log(incumbent_s), self.sd
        if s == 0:
            return max(0.0, -incumbent_s * math.expm1(m))
        return incumbent_s * (_normal(-m / s) - math.exp(m + s * s / 2) * _normal(-m / s - s))

    def hopeless(self, incumbent_s: float, sds: float) -> bool:
        """Whether it is slower even if it is `sds` standard deviations better than its mean."""
        return self.log_s - sds * self.sd > math.log(incumbent_s)


class Predictor:
    """Forecasts the candidates of one menu, from the seconds of those that were measured."""

    def __init__(self, menu: Menu) -> None:
        self._cells = [(site.site, found.choice) for site in menu.sites for found in site.candidates]
        self._row = {cell: number for number, cell in enumerate(self._cells)}
        self._log_price = np.array([math.log(price_s(menu, cell)) for cell in self._cells])
        self._design = _design(menu, self._cells)

    def forecast(self, measured_s: Mapping[Cell, float]) -> dict[Cell, Forecast]:
        """Return a forecast of every cell of the menu. A cell that was measured is as it was measured."""
        rows = [self._row[cell] for cell in measured_s]
        residuals = np.log(np.array(list(measured_s.values()))) - self._log_price[rows]
        mean, sd = _regressed(self._design, rows, residuals)
        found = {
            cell: Forecast(float(price + mean[row]), float(sd[row]))
            for row, (cell, price) in enumerate(zip(self._cells, self._log_price, strict=True))
        }
        return found | {cell: Forecast(math.log(time_s), 0.0) for cell, time_s in measured_s.items()}


def price_s(menu: Menu, cell: Cell) -> float:
    """Return what the model says of a cell; if it says nothing, what it says of the site's own kernel, or the
    site's bound."""
    site = menu.at(cell[0])
    own = menu.candidate((site.site, site.own))
    prices = (menu.candidate(cell).model_s, own.model_s, site.bound_s)
    return next((price for price in prices if price), 1.0)


def feature_value(features: Features, name: str) -> float | None:
    """Return a feature as it enters a regression: some of them by their powers of two."""
    value: float | None = getattr(features, name)
    if value is None or name not in LOGARITHMIC:
        return value
    return math.log2(value) if value > 0 else None


@cache
def can_learn() -> bool:
    """Whether scikit-learn is installed."""
    return importlib.util.find_spec("sklearn") is not None


def _design(menu: Menu, cells: Sequence[Cell]) -> Floats:
    """One row a cell, one column an effect, each scaled by its prior standard deviation."""
    candidates = [menu.candidate(cell) for cell in cells]
    kernels = list(dict.fromkeys(cell[1].kernel for cell in cells))
    sites = [site.site for site in menu.sites]
    library = np.array([candidate.library for candidate in candidates])
    return np.column_stack(
        [
            # A library declares nothing: its price is another kind of figure, and errs by itself.
            COMMON_SD * library,
            COMMON_SD * ~library,
            *(FEATURE_SD * column for column in _feature_columns(candidates)),
            *(KERNEL_SD * np.array([cell[1].kernel == kernel for cell in cells]) for kernel in kernels),
            *(SITE_SD * np.array([cell[0] == site for cell in cells]) for site in sites),
        ]
    )


def _feature_columns(candidates: Sequence[SpaceCandidate]) -> list[Floats]:
    """Each feature that differs between candidates, with mean 0 and spread 1; 0 where it is not known."""
    columns = []
    for name in FEATURES:
        values = [feature_value(candidate.features, name) for candidate in candidates]
        known = np.array([value for value in values if value is not None])
        if known.size < 2 or known.std() == 0:
            continue
        filled = np.array([known.mean() if value is None else value for value in values])
        columns.append((filled - known.mean()) / known.std())
    return columns


def load() -> None:
    """Import what forecasts need, before anything is measured: one that ^C cuts short can't be repeated."""
    if can_learn():
        importlib.import_module("sklearn.gaussian_process")


def _regressed(design: Floats, rows: list[int], residuals: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of every row's residual."""
    count = len(design)
    if not rows:
        prior = np.sqrt((design**2).sum(axis=1) + CELL_SD**2)
        return np.zeros(count), prior
    if not can_learn():
        spread = float(residuals.std()) if len(rows) > 1 else COMMON_SD
        return np.full(count, residuals.mean()), np.full(count, max(spread, KERNEL_SD))
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import DotProduct, WhiteKernel

    kernel = DotProduct(sigma_0=0.0, sigma_0_bounds="fixed") + WhiteKernel(CELL_SD**2, "fixed")
    process = GaussianProcessRegressor(kernel=kernel, optimizer=None, alpha=1e-10)
    mean, sd = process.fit(design[rows], residuals).predict(design, return_std=True)
    return mean, sd


def _normal(x: float) -> float:
    """P(Z < x) of a standard normal."""
    return 0.5 * math.erfc(-x / math.sqrt(2))
