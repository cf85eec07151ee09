"""The roofline: roofs of memory, caches and arithmetic as measured, and each phase as a point below them."""

from __future__ import annotations

from math import hypot, inf
from typing import ClassVar, Literal

from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import BindingType
from textual.message import Message

from gputop.results import phase_facts
from gputop.results.records import Ceilings, PlanResult, Row
from gputop.tui import facts
from gputop.tui.actions import bindings_of
from gputop.tui.palette import MUTED, TEXT
from gputop.tui.state import State, View
from gputop.tui.views.pane import ViewPane
from gputop.tui.views.roofline_plane import (
    Geometry,
    Plane,
    Point,
    Roof,
    draw_plane,
    limits,
    links_of,
    path_lines,
)
from gputop.util.units import si

Level = Literal["dram", "l2"]
LEVELS: tuple[Level, ...] = ("dram", "l2")
LEVEL_CEILINGS: dict[Level, str] = {"dram": "dram_read", "l2": "l2_read"}
PIPES = ("fp32", "fp32_1", "tf32_mma", "tf32_wgmma", "bf16_mma", "bf16_wgmma")
"""Ceilings of arithmetic, in the order of their legend."""
LEGEND_LINES = 3
LEAST_WIDTH, LEAST_HEIGHT = 44, 12
REACH_CELLS = 4.0
"""How near a click must be to a point, in cells."""


def points_of(lane: PlanResult | None, level: Level) -> tuple[Point, ...]:
    """Return the phases of a plan that have work and bytes at this level."""
    found = (point_of(row, level) for row in phase_facts.phases_of(lane))
    return tuple(point for point in found if point is not None)


def point_of(row: Row, level: Level) -> Point | None:
    """Return FLOP/byte and FLOP/s of a row; None if its work, bytes or time is unknown or beyond numbers."""
    moved = row.dram_bytes if level == "dram" else row.l2_bytes
    if not row.flops or not moved or not row.time_s:
        return None
    intensity, rate = row.flops / moved, row.flops / row.time_s
    return Point(row.phase, intensity, rate) if 0 < intensity < inf and 0 < rate < inf else None


def bandwidths(ceilings: Ceilings | None) -> dict[Level, Roof]:
    """Return the measured bandwidth of each level that is known."""
    found = {level: ceilings.get(name) if ceilings else None for level, name in LEVEL_CEILINGS.items()}
    return {level: Roof(level, value) for level, value in found.items() if value}


def pipes(ceilings: Ceilings | None, math: str | None) -> tuple[Roof, ...]:
    """Return the measured pipes that a plan may use: fp32 always, and those of its own math."""
    wanted = (name for name in PIPES if name.startswith("fp32") or (math and name.startswith(math)))
    known = ((name, ceilings.get(name) if ceilings else None) for name in wanted)
    return tuple(Roof(name, value) for name, value in known if value)


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
        ceilings = tuple((name, roof.value) for name, roof in levels.items())
        links = links_of(self.points, before)
        plane = Plane(self.geometry, ceilings, self.level, roofs, links, path_lines(path))
        drawn = draw_plane(plane, self.points, before, path, selected)
        return Text.assemble(drawn, "\n", self._legend(state, levels, width))

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
            x, y = geometry.place(point)
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
