"""The phases sorted by any column of their table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from gputop.results.phase_facts import bound_by, times_floor, times_reach
from gputop.results.records import Row
from gputop.results.row_figures import excess_s

SORT_FIGURES: Mapping[str, Callable[[Row], float | str | None]] = {
    "count": lambda row: row.count,
    "kernel": lambda row: row.kernel,
    "time_s": lambda row: row.time_s,
    "time_mad_s": lambda row: row.time_mad_s,
    "bar": excess_s,
    "floor_s": lambda row: row.floor_s,
    "over": times_floor,
    "over_reach": times_reach,
    "binds": lambda row: bound.share if (bound := bound_by(row)) else None,
    "delta_s": lambda row: None if row.delta_s is None else abs(row.delta_s),
    "ratio": lambda row: row.ratio,
    "occupancy_theoretical": lambda row: row.occupancy_theoretical,
}
"""Column -> what its rows are sorted by: numbers from the largest down, names from A on."""


def sorted_phases(rows: Iterable[Row], column: str, backwards: bool = False) -> tuple[Row, ...]:
    """Return phases sorted by a column, rows whose figure is unknown last.

    A column without a figure, as the phase's name, gives the order of the pass.
    """
    rows = tuple(rows)
    figure = SORT_FIGURES.get(column)
    if figure is None:
        return rows[::-1] if backwards else rows
    figures = {row.phase: figure(row) for row in rows}
    known = [row for row in rows if figures[row.phase] is not None]
    known.sort(key=lambda row: _rank(figures[row.phase]))
    if backwards:
        known.reverse()
    return (*known, *(row for row in rows if figures[row.phase] is None))


def _rank(figure: float | str | None) -> tuple[float, str]:
    return (0.0, figure) if isinstance(figure, str) else (-(figure or 0.0), "")
