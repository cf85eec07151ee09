"""The roofline's plane: grid, roofs and lines by plotext, and above them each point with its name.

Nothing else here imports that library. Its axes are linear, so logarithms are plotted and the ticks are
labelled with powers of ten.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from math import ceil, floor, log10
from typing import Any

from rich.style import Style
from rich.text import Text

from gputop.tui.format import Cell, text_of_cells
from gputop.tui.palette import (
    CURRENT,
    EXCESS_MOST,
    FLOOR,
    GRID,
    LINE,
    MUTED,
    PATH_LINE,
    PINNED,
    PINNED_LINE,
    TEXT,
)
from gputop.util.units import si

Y_TICK_WIDTH = 6
OFFSETS = ((2, 0), (-1, 0), (0, -1), (0, 1), (2, -1), (2, 1), (-1, -1), (-1, 1))
"""Where a label may stand beside its point; a negative column means to its left."""
Ends = tuple[tuple[float, float], tuple[float, float]]
"""A line's two ends, as logarithms."""


@cache
def library() -> Any:
    """Return plotext, loaded with the first drawing: a screen without this view need not wait for it."""
    import plotext

    # It clamps a figure to the terminal's size, and under a test there is none.
    plotext.terminal.limit(False, False)
    return plotext


@dataclass(frozen=True, slots=True)
class Point:
    """A phase on the plane."""

    name: str
    intensity: float
    """FLOP / byte at the level."""
    rate: float
    """FLOP/s."""


@dataclass(frozen=True, slots=True)
class Roof:
    """A bandwidth in B/s, or a pipe in FLOP/s."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class Limits:
    """The part of the plane that is drawn, as powers of ten."""

    x: tuple[float, float]
    y: tuple[float, float]


def limits(points: Iterable[Point], roofs: Iterable[Roof], zoomed: bool) -> Limits:
    """Return whole decades around the points, and around the roofs unless zoomed."""
    shown = tuple(points)
    xs = [log10(point.intensity) for point in shown] or [0.0]
    ys = [log10(point.rate) for point in shown] or [9.0]
    if zoomed:
        return Limits((min(xs) - 0.3, max(xs) + 0.5), (min(ys) - 0.3, max(ys) + 0.4))
    ys += [log10(roof.value) for roof in roofs]
    xs += [0.0, 3.0]
    return Limits((floor(min(xs)), ceil(max(xs))), (floor(min(ys)), max(ys) + 0.3))


@dataclass(frozen=True, slots=True)
class Geometry:
    """Where the plane lies inside the widget: data to cells and back."""

    width: int
    height: int
    limits: Limits

    @property
    def _box(self) -> tuple[int, int, int, int]:
        """Left, top, width and height of the plane in cells."""
        left = Y_TICK_WIDTH + 1
        return left, 1, max(2, self.width - left - 1), max(2, self.height - 3)

    def cell(self, x: float, y: float) -> tuple[int, int]:
        """Return the cell of a point given by its logarithms."""
        left, top, width, height = self._box
        (x0, x1), (y0, y1) = self.limits.x, self.limits.y
        return (
            left + floor((x - x0) / (x1 - x0) * (width - 1) + 0.5),
            top + height - 1 - floor((y - y0) / (y1 - y0) * (height - 1) + 0.5),
        )

    def data(self, column: int, line: int) -> tuple[float, float]:
        """Return the logarithms at a cell."""
        left, top, width, height = self._box
        (x0, x1), (y0, y1) = self.limits.x, self.limits.y
        return x0 + (column - left) / (width - 1) * (x1 - x0), y0 + (1 - (line - top) / (height - 1)) * (
            y1 - y0
        )

    def place(self, point: Point) -> tuple[int, int]:
        """Return the cell of a phase's point."""
        return self.cell(log10(point.intensity), log10(point.rate))

    def holds(self, column: int, line: int) -> bool:
        left, top, width, height = self._box
        return left <= column < left + width and top <= line < top + height


def place_labels(
    geometry: Geometry, points: Iterable[Point], first: str | None
) -> dict[str, tuple[int, int]]:
    """Return where each name can stand without covering a point or another name; `first` is placed first."""
    ordered = sorted(points, key=lambda point: point.name != first)
    taken = {geometry.place(point) for point in ordered}
    placed: dict[str, tuple[int, int]] = {}
    for point in ordered:
        column, line = geometry.place(point)
        length = len(point.name)
        for right, down in OFFSETS:
            start = (
                column + right if right > 0 else column - length // 2 if right == 0 else column - length - 1
            )
            cells = {(start + i, line + down) for i in range(-1, length + 1)}
            if not cells & taken and all(geometry.holds(*cell) for cell in cells):
                taken |= cells
                placed[point.name] = (start, line + down)
                break
    return placed


@dataclass(frozen=True, slots=True)
class Plane:
    """All that is drawn below the points; equal ones are drawn once."""

    geometry: Geometry
    bandwidths: tuple[tuple[str, float], ...]
    """Level -> B/s."""
    level: str
    """The one that the axis is of."""
    pipes: tuple[Roof, ...]
    links: tuple[Ends, ...] = ()
    """From the pinned plan's points to the current ones."""
    path: tuple[Ends, ...] = ()
    """Up the ladder."""


def draw_plane(
    plane: Plane,
    points: tuple[Point, ...],
    before: tuple[Point, ...],
    path: tuple[Point, ...],
    selected: str | None,
) -> Text:
    """Return the plane as text of the geometry's size.

    `before` are the pinned plan's points; `path` is the selected phase on its way up the ladder.
    """
    lines = [list(line) for line in _drawn(plane)]
    geometry = plane.geometry
    for other in before:
        _put(lines, geometry.place(other), "◇", PINNED)
    for step in path:
        _put(lines, geometry.place(step), "·", CURRENT)
    labels = place_labels(geometry, points, selected)
    for point in sorted(points, key=lambda point: point.name == selected):
        color = EXCESS_MOST if point.name == selected else TEXT
        _put(lines, geometry.place(point), "◉" if point.name == selected else "●", color)
        if point.name in labels:
            _put(lines, labels[point.name], point.name, color)
    return Text("\n").join(text_of_cells(line) for line in lines)


def links_of(points: Iterable[Point], before: Iterable[Point]) -> tuple[Ends, ...]:
    """Return the lines from each point of `before` to the one of the same name."""
    old = {point.name: point for point in before}
    return tuple(_ends(old[point.name], point) for point in points if point.name in old)


def path_lines(path: tuple[Point, ...]) -> tuple[Ends, ...]:
    """Return the lines from each point of a path to the next."""
    return tuple(_ends(one, two) for one, two in pairwise(path))


def _ends(one: Point, two: Point) -> Ends:
    return (log10(one.intensity), log10(one.rate)), (log10(two.intensity), log10(two.rate))


def _put(lines: list[list[Cell]], at: tuple[int, int], text: str, color: str) -> None:
    """Write over what stands there; what would lie outside is left out."""
    column, line = at
    for offset, char in enumerate(text):
        if 0 <= line < len(lines) and 0 <= column + offset < len(lines[line]):
            lines[line][column + offset] = (char, color)


@lru_cache(maxsize=8)
def _drawn(plane: Plane) -> tuple[tuple[Cell, ...], ...]:
    """Return the lines of the plane without its points."""
    figure: Any = library().figure
    geometry, levels = plane.geometry, dict(plane.bandwidths)
    figure.clear()
    figure.plot_size(geometry.width, geometry.height)
    library().add_theme("gputop", text=_pixel(MUTED), grid=_pixel(GRID))
    figure.theme("gputop")
    for axis, (low, high) in (("x", geometry.limits.x), ("y", geometry.limits.y)):
        decades = list(range(ceil(low), floor(high) + 1))
        ticks = [_tick(10.0**decade).rjust(Y_TICK_WIDTH if axis == "y" else 0) for decade in decades]
        figure.ruler(axis).lim(low, high).ticks(decades, ticks).grid(True, pixel=_pixel(GRID))
    top = max((roof.value for roof in plane.pipes), default=10 ** geometry.limits.y[1])
    for name, value in levels.items():
        _line(figure, _slope(value, top, geometry.limits), FLOOR if name == plane.level else LINE)
    for roof in plane.pipes:
        start = log10(roof.value / levels[plane.level]) if plane.level in levels else geometry.limits.x[0]
        _line(figure, ((start, log10(roof.value)), (geometry.limits.x[1], log10(roof.value))), CURRENT)
        _label(figure, geometry, f"{roof.name} {si(roof.value, 'FLOP/s')}", log10(roof.value), CURRENT)
    for ends in plane.links:
        _line(figure, ends, PINNED_LINE)
    for ends in plane.path:
        _line(figure, ends, PATH_LINE)
    return tuple(_cells(line) for line in Text.from_ansi(figure.build().string()).split("\n"))


def _cells(line: Text) -> tuple[Cell, ...]:
    colors = [""] * len(line.plain)
    for span in line.spans:
        style = span.style if isinstance(span.style, Style) else Style.parse(span.style)
        if style.color is not None and style.color.triplet is not None:
            colors[span.start : span.end] = [style.color.triplet.hex] * (span.end - span.start)
    return tuple(zip(line.plain, colors, strict=True))


def _slope(bandwidth: float, top: float, limits: Limits) -> Ends:
    """Return the ends of a bandwidth's roof, cut to what is drawn."""
    low = max(limits.x[0], limits.y[0] - log10(bandwidth))
    high = min(limits.x[1], log10(top / bandwidth))
    return ((low, low + log10(bandwidth)), (high, high + log10(bandwidth)))


def _line(figure: Any, ends: Ends, color: str) -> None:
    xs, ys = [x for x, _ in ends], [y for _, y in ends]
    figure.draw(figure.signal(xs, ys, marker=library().marker("braille", pixel=_pixel(color))).lines())


def _label(figure: Any, geometry: Geometry, text: str, y: float, color: str) -> None:
    """Write a pipe's name at the right end of its roof, one line below it."""
    column, line = geometry.cell(geometry.limits.x[1], y)
    start = column - len(text)
    if geometry.holds(start, line + 1):
        x, below = geometry.data(start, line + 1)
        figure.draw(figure.text(x, below, library().colorize(text, _pixel(color))))


def _pixel(color: str) -> Any:
    return library().pixel(tuple(int(color[i : i + 2], 16) for i in (1, 3, 5)))


def _tick(value: float) -> str:
    return si(value, "", 3).replace(" ", "")
