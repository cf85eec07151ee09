"""The roofline's plane: our points lie where the library draws its own, and none covers another's name."""

from __future__ import annotations

from dataclasses import replace
from math import log10

import pytest
from rich.text import Text

from gputop.results.records import Row
from gputop.tui.views.roofline import point_of
from gputop.tui.views.roofline_plane import (
    Geometry,
    Limits,
    Plane,
    Point,
    Roof,
    draw_plane,
    library,
    limits,
    links_of,
    place_labels,
)

ROOFS = (Roof("tf32_wgmma", 482e12), Roof("fp32", 66e12))
POINTS = (Point("w2", 64.0, 70e12), Point("w1@1", 0.5, 1.2e12), Point("qkv", 60.0, 72e12))


def plane(width: int, height: int) -> Plane:
    area = limits(POINTS, ROOFS, zoomed=False)
    return Plane(Geometry(width, height, area), (("dram", 4.69e12),), "dram", ROOFS)


@pytest.mark.parametrize(("width", "height"), [(138, 36), (100, 20), (78, 14)])
def test_a_cell_is_where_the_library_draws_that_point(width: int, height: int) -> None:
    area = Limits((-1.0, 3.0), (9.0, 14.98))
    geometry, figure = Geometry(width, height, area), library().figure
    for step in range(1, 20, 3):
        # None of these lies half way between two cells.
        x, y = (low + step / 20.3 * (high - low) for low, high in (area.x, area.y))
        figure.clear()
        figure.plot_size(width, height)
        for axis, (low, high) in (("x", area.x), ("y", area.y)):
            ticks = list(range(int(low), int(high) + 1))
            figure.ruler(axis).lim(low, high).ticks(ticks, [f"{tick:>6}" for tick in ticks])
        figure.draw(figure.signal([x], [y], marker="@"))
        lines = Text.from_ansi(figure.build().string()).plain.split("\n")
        (found,) = [(line.index("@"), row) for row, line in enumerate(lines) if "@" in line]
        assert geometry.cell(x, y) == found


def test_a_phase_beyond_all_numbers_has_no_point() -> None:
    """A recording may say so, and the plane's decades would be infinite."""
    of = Row("s", "t", 1, 9, "cuda", "A GPU", None, "mini", 1, 128, "graph", "graph", "w2")
    row = replace(of, flops=1e300, dram_bytes=5e-324, l2_bytes=1.0, time_s=1.0)
    assert point_of(row, "dram") is None
    assert point_of(replace(row, time_s=5e-324), "l2") is None
    assert point_of(replace(row, flops=2.0), "l2") == Point("w2", 2.0, 2.0)


def test_a_point_stands_in_the_cell_that_a_click_looks_for() -> None:
    shown = plane(100, 24)
    lines = draw_plane(shown, POINTS, (), (), "w2").plain.split("\n")
    for point in POINTS:
        column, row = shown.geometry.place(point)
        assert lines[row][column] == ("◉" if point.name == "w2" else "●")


def test_names_cover_neither_points_nor_each_other() -> None:
    geometry = plane(100, 24).geometry
    labels = place_labels(geometry, POINTS, "w2")
    cells = [(x + i, y) for name, (x, y) in labels.items() for i in range(len(name))]
    assert len(cells) == len(set(cells))
    assert not {geometry.place(point) for point in POINTS} & set(cells)
    assert "w2" in labels


def test_a_link_joins_the_same_phase_of_two_plans() -> None:
    ((one, two),) = links_of(POINTS, (Point("w2", 32.0, 35e12),))
    assert one == (log10(32.0), log10(35e12))
    assert two == (log10(64.0), log10(70e12))
