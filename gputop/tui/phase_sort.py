"""The phases sorted by any column of their table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from gputop.results.phase_facts import excess_s, nearest_term, times_floor
from gputop.results.records import Ceilings, Row

SORT_FIGURES: Mapping[str, Callable[[Row, Ceilings | None], float | str | None]] = {
    "count": lambda row, _: row.count,
    "kernel": lambda row, _: row.kernel,
    "time_s": lambda row, _: row.time_s,
    "time_mad_s": lambda row, _: row.time_mad_s,
    "bar": lambda row, _: excess_s(row),
    "floor_s": lambda row, _: row.floor_s,
    "over": lambda row, ceilings: times_floor(row, ceilings),
    "nearest": lambda row, _: near.share if (near := nearest_term(row)) else None,
    "delta_s": lambda row, _: None if row.delta_s is None else abs(row.delta_s),
    "ratio": lambda row, _: row.ratio,
    "occupancy_theoretical": lambda row, _: row.occupancy_theoretical,
}
"""Column -> what its rows are sorted by: numbers from the largest down, names from A on."""


def sorted_phases(
    rows: Iterable[Row], column: str, ceilings: Ceilings | None, backwards: bool = False
) -> tuple[Row, ...]:
    """Return phases sorted by a column, rows whose figure is unknown last.

    A column without a figure, as the phase's name, gives the order of the pass.
    """
    rows = tuple(rows)
    figure = SORT_FIGURES.get(column)
    if figure is None:
        return rows[::-1] if backwards else rows
    figures = {row.phase: figure(row, ceilings) for row in rows}
    known = [row for row in rows if figures[row.phase] is not None]
    known.sort(key=lambda row: _rank(figures[row.phase]))
    if backwards:
        known.reverse()
    return (*known, *(row for row in rows if figures[row.phase] is None))


def _rank(figure: float | str | None) -> tuple[float, str]:
    return (0.0, figure) if isinstance(figure, str) else (-(figure or 0.0), "")
