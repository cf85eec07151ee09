"""The roofline: roofs of memory, L2 and arithmetic as measured, and each phase as a point below them.

plotext draws it: nothing else here imports that library. Its axes are linear, so logarithms are plotted and
the ticks are labelled with powers of ten.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import ceil, floor, hypot, log10
from typing import Any, ClassVar, Literal

from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import BindingType
from textual.message import Message

from gputop.results import phase_facts
from gputop.results.records import Ceilings, PlanResult, Row
from gputop.tui import facts
from gputop.tui.actions import bindings_of
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
from gputop.tui.state import State, View
from gputop.tui.views.pane import ViewPane
from gputop.util.units import si

Level = Literal["dram", "l2"]
LEVELS: tuple[Level, ...] = ("dram", "l2")
LEVEL_CEILINGS: dict[Level, str] = {"dram": "dram_read", "l2": "l2_read"}
PIPES = ("fp32", "fp32_1", "tf32_mma", "tf32_wgmma", "bf16_mma", "bf16_wgmma")
"""Ceilings of arithmetic, in the order of their legend."""
Y_TICK_WIDTH = 6
LEGEND_LINES = 3
LEAST_WIDTH, LEAST_HEIGHT = 44, 12
REACH_CELLS = 4.0
"""How near a click must be to a point, in cells."""
OFFSETS = ((2, 0), (-1, 0), (0, -1), (0, 1), (2, -1), (2, 1), (-1, -1), (-1, 1))
"""Where a label may stand beside its point; a negative column means to its left."""


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


def points_of(lane: PlanResult | None, level: Level) -> tuple[Point, ...]:
    """Return the phases of a plan that have work and bytes at this level."""
    found = (point_of(row, level) for row in phase_facts.phases_of(lane))
    return tuple(point for point in found if point is not None)


def point_of(row: Row, level: Level) -> Point | None:
    """Return FLOP/byte and FLOP/s of a row; None if its work, bytes or time is unknown."""
    moved = row.dram_bytes if level == "dram" else row.l2_bytes
    if not row.flops or not moved or not row.time_s:
        return None
    return Point(row.phase, row.flops / moved, row.flops / row.time_s)


def bandwidths(ceilings: Ceilings | None) -> dict[Level, Roof]:
    """Return the measured bandwidth of each level that is known."""
    found = {level: ceilings.get(name) if ceilings else None for level, name in LEVEL_CEILINGS.items()}
    return {level: Roof(level, value) for level, value in found.items() if value}


def pipes(ceilings: Ceilings | None, math: str | None) -> tuple[Roof, ...]:
    """Return the measured pipes that a plan may use: fp32 always, and those of its own math."""
    wanted = (name for name in PIPES if name.startswith("fp32") or (math and name.startswith(math)))
    known = ((name, ceilings.get(name) if ceilings else None) for name in wanted)
    return tuple(Roof(name, value) for name, value in known if value)


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
        return left, 1, max(2, self.width - left - 1), max(2, self.height - 4)

    def cell(self, x: float, y: float) -> tuple[int, int]:
        """Return the cell of a point given by its logarithms."""
        left, top, width, height = self._box
        (x0, x1), (y0, y1) = self.limits.x, self.limits.y
        return (
            left + round((x - x0) / (x1 - x0) * (width - 1)),
            top + round((1 - (y - y0) / (y1 - y0)) * (height - 1)),
        )

    def data(self, column: int, line: int) -> tuple[float, float]:
        """Return the logarithms at a cell."""
        left, top, width, height = self._box
        (x0, x1), (y0, y1) = self.limits.x, self.limits.y
        return x0 + (column - left) / (width - 1) * (x1 - x0), y0 + (1 - (line - top) / (height - 1)) * (
            y1 - y0
        )

    def holds(self, column: int, line: int) -> bool:
        left, top, width, height = self._box
        return left <= column < left + width and top <= line < top + height


def place_labels(
    geometry: Geometry, points: Iterable[Point], first: str | None
) -> dict[str, tuple[int, int]]:
    """Return where each name can stand without covering a point or another name; `first` is placed first."""
    ordered = sorted(points, key=lambda point: point.name != first)
    taken = {geometry.cell(log10(p.intensity), log10(p.rate)) for p in ordered}
    placed: dict[str, tuple[int, int]] = {}
    for point in ordered:
        column, line = geometry.cell(log10(point.intensity), log10(point.rate))
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


def draw_plane(
    geometry: Geometry,
    points: tuple[Point, ...],
    before: tuple[Point, ...],
    path: tuple[Point, ...],
    levels: dict[Level, Roof],
    level: Level,
    roofs: tuple[Roof, ...],
    selected: str | None,
) -> Text:
    """Return the plane as text of the geometry's size.

    `before` are the pinned plan's points, joined with the current ones; `path` is the selected phase on its
    way up the ladder.
    """
    figure: Any = library().figure
    figure.clear()
    figure.plot_size(geometry.width, geometry.height)
    library().add_theme("gputop", text=_pixel(MUTED), grid=_pixel(GRID))
    figure.theme("gputop")
    for axis, (low, high) in (("x", geometry.limits.x), ("y", geometry.limits.y)):
        decades = list(range(ceil(low), floor(high) + 1))
        ticks = [_tick(10.0**decade).rjust(Y_TICK_WIDTH if axis == "y" else 0) for decade in decades]
        figure.ruler(axis).lim(low, high).ticks(decades, ticks).grid(True, pixel=_pixel(GRID))
    top = max((roof.value for roof in roofs), default=10 ** geometry.limits.y[1])
    for name, roof in levels.items():
        color = FLOOR if name == level else LINE
        _line(figure, _slope(roof.value, top, geometry.limits), color)
    for roof in roofs:
        start = log10(roof.value / levels[level].value) if level in levels else geometry.limits.x[0]
        _line(
            figure,
            ((start, log10(roof.value)), (geometry.limits.x[1], log10(roof.value))),
            CURRENT,
        )
        _label(figure, geometry, f"{roof.name} {si(roof.value, 'FLOP/s')}", log10(roof.value), CURRENT)
    old = {point.name: point for point in before}
    for point in points:
        if point.name in old:
            other = old[point.name]
            ends = ((log10(other.intensity), log10(other.rate)), (log10(point.intensity), log10(point.rate)))
            _line(figure, ends, PINNED_LINE)
            _mark(figure, other, "◇", PINNED)
    for one, two in pairwise(path):
        ends = ((log10(one.intensity), log10(one.rate)), (log10(two.intensity), log10(two.rate)))
        _line(figure, ends, PATH_LINE)
    for step in path:
        _mark(figure, step, "·", CURRENT)
    labels = place_labels(geometry, points, selected)
    for point in points:
        is_selected = point.name == selected
        _mark(figure, point, "◉" if is_selected else "●", EXCESS_MOST if is_selected else TEXT)
        if point.name in labels:
            x, y = geometry.data(*labels[point.name])
            color = EXCESS_MOST if is_selected else TEXT
            figure.draw(figure.text(x, y, library().colorize(point.name, _pixel(color))))
    return Text.from_ansi(figure.build().string())


def _slope(bandwidth: float, top: float, limits: Limits) -> tuple[tuple[float, float], ...]:
    """Return the ends of a bandwidth's roof, cut to what is drawn."""
    low = max(limits.x[0], limits.y[0] - log10(bandwidth))
    high = min(limits.x[1], log10(top / bandwidth))
    return ((low, low + log10(bandwidth)), (high, high + log10(bandwidth)))


def _line(figure: Any, ends: tuple[tuple[float, float], ...], color: str) -> None:
    xs, ys = [x for x, _ in ends], [y for _, y in ends]
    figure.draw(figure.signal(xs, ys, marker=library().marker("braille", pixel=_pixel(color))).lines())


def _mark(figure: Any, point: Point, mark: str, color: str) -> None:
    x, y = log10(point.intensity), log10(point.rate)
    figure.draw(figure.signal([x], [y], marker=library().marker(mark, pixel=_pixel(color))))


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


class RooflineView(ViewPane):
    """Points can be clicked; ↑ and ↓ go to the next phase."""

    view: ClassVar[View] = "roofline"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of("roofline")

    class Picked(Message):
        def __init__(self, site: str) -> None:
            super().__init__()
            self.site = site

    def __init__(self) -> None:
        super().__init__()
        self.level: Level = "dram"
        self.zoomed = False
        self.linked = True
        self.shows_path = False
        self.geometry: Geometry | None = None
        self.points: tuple[Point, ...] = ()

    def draw(self, state: State, width: int, height: int) -> Text:
        levels = bandwidths(state.ceilings)
        if self.level not in levels and levels:
            self.level = next(iter(levels))
        self.points = points_of(state.lane, self.level)
        roofs = pipes(state.ceilings, state.view.math if state.view else None)
        if not self.points or not levels:
            return Text(_nothing(state, self.level), Style(color=MUTED))
        if width < LEAST_WIDTH or height < LEAST_HEIGHT:
            return Text(f"The roofline needs {LEAST_WIDTH}x{LEAST_HEIGHT} cells here.", Style(color=MUTED))
        row = facts.selected_row(state)
        selected = row.phase if row else None
        pinned = state.window.lane("pinned") if state.window else None
        before = points_of(pinned, self.level) if self.linked else ()
        path = path_of(state, selected, self.level) if self.shows_path and selected else ()
        area = (*self.points, *before, *path)
        self.geometry = Geometry(width, height - LEGEND_LINES, limits(area, roofs, self.zoomed))
        plane = draw_plane(self.geometry, self.points, before, path, levels, self.level, roofs, selected)
        return Text.assemble(plane, "\n", self._legend(state, levels, width))

    def _legend(self, state: State, levels: dict[Level, Roof], width: int) -> Text:
        unseen = [row.phase for row in phase_facts.phases_of(state.lane) if point_of(row, self.level) is None]
        axis = (
            f"x: FLOP per byte of {self.level}   y: FLOP/s   l: other level   + - zoom   v: pinned ◇   "
            "u: up the ladder ·"
        )
        said = sentence(state, self.level, levels)
        missing = f"without {self.level} bytes: {', '.join(unseen)}" if unseen else ""
        lines = []
        for text, color in ((axis, MUTED), (said, TEXT), (missing, MUTED)):
            line = Text(text, Style(color=color), no_wrap=True)
            line.truncate(width, overflow="ellipsis")
            lines.append(line)
        return Text("\n").join(lines)

    def explain(self, state: State) -> str:
        return (
            "Memory limits under the slope, arithmetic under the flat line; the gap to the roof can be won."
        )

    def nearest(self, column: int, line: int) -> str | None:
        """Return the phase whose point is nearest to a cell, if one is near."""
        if self.geometry is None or not self.points:
            return None
        geometry = self.geometry

        def distance(point: Point) -> float:
            x, y = geometry.cell(log10(point.intensity), log10(point.rate))
            return hypot(x - column, 2 * (y - line))

        best = min(self.points, key=distance)
        return best.name if distance(best) <= REACH_CELLS else None

    def on_mouse_move(self, event: events.MouseMove) -> None:
        self.tooltip = self.nearest(event.x, event.y)

    def on_click(self, event: events.Click) -> None:
        site = self.nearest(event.x, event.y)
        if site is not None:
            self.post_message(self.Picked(site))

    def action_level(self) -> None:
        self.level = LEVELS[(LEVELS.index(self.level) + 1) % len(LEVELS)]
        self.show(self._state)

    def action_zoom(self, zoomed: bool) -> None:
        self.zoomed = zoomed
        self.show(self._state)

    def action_link(self) -> None:
        self.linked = not self.linked
        self.show(self._state)

    def action_path(self) -> None:
        self.shows_path = not self.shows_path
        self.show(self._state)


def path_of(state: State, site: str, level: Level) -> tuple[Point, ...]:
    """Return a phase's points along the recorded ladder, slowest first."""
    found: dict[str, Point] = {}
    for window in state.known_windows:
        for lane in window.lanes:
            row = next((row for row in lane.rows if row.phase == site), None)
            point = point_of(row, level) if row is not None else None
            if point is not None:
                found[lane.plan] = point
    return tuple(sorted(found.values(), key=lambda point: point.rate))


def sentence(state: State, level: Level, levels: dict[Level, Roof]) -> str:
    """Return how far the selected phase is from the roof of this level and from its pipe."""
    row = facts.selected_row(state)
    point = point_of(row, level) if row else None
    if row is None or point is None or level not in levels:
        return ""
    allowed = point.intensity * levels[level].value
    roofs = pipes(state.ceilings, state.view.math if state.view else None)
    said = f"▸ {row.phase}: {point.intensity:.3g} FLOP/B at {si(point.rate, 'FLOP/s')}. "
    said += f"The {level} roof allows {si(allowed, 'FLOP/s')}, {allowed / point.rate:.2g}×"
    if roofs:
        best = max(roofs, key=lambda roof: roof.value)
        said += f"; {best.name} {si(best.value, 'FLOP/s')}, {best.value / point.rate:.2g}×"
    return said + "."


def _nothing(state: State, level: Level) -> str:
    if state.lane is None:
        return "The first window is under way."
    if state.ceilings is None:
        return "This device's ceilings are not measured yet: the window after the first one needs them."
    return f"No phase of this window has both FLOPs and bytes of {level}."
