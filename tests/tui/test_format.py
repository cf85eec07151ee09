"""Cells of fixed width."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from gputop.planner.registry import Registry
from gputop.tui.format import axis, fitted, floor_bar, middle_cut, time_unit
from gputop.util.units import UNKNOWN

times = st.floats(1e-9, 1e4)


@given(
    st.text(st.characters(min_codepoint=32, max_codepoint=0x2FFF), max_size=40),
    st.integers(1, 30),
    st.booleans(),
)
def test_a_cell_is_exactly_as_wide_as_its_column(text: str, width: int, right: bool) -> None:
    assert fitted(text, width, right).cell_len == width


@pytest.mark.parametrize(
    ("largest_s", "value_s", "text"),
    [
        (0.0005, 0.0000123, "12.3"),
        (0.005, 0.0000123, "12.3"),
        (0.04, 0.0000123, "0.012"),
        (0.4, 0.0123, "12.30"),
        (4.0, 0.0123, "12.3"),
        (4.0, None, UNKNOWN),
    ],
)
def test_one_unit_a_table(largest_s: float, value_s: float | None, text: str) -> None:
    assert time_unit([largest_s, None]).write(value_s) == text


def test_a_difference_shows_its_sign_and_nothing_is_neither() -> None:
    unit = time_unit([0.05])
    assert [unit.signed(value) for value in (0.001, -0.001, 1e-9, -1e-9, None)] == [
        "+1.000",
        "−1.000",
        "±0.000",
        "±0.000",
        UNKNOWN,
    ]


@given(times, st.none() | times, times, st.integers(1, 40))
def test_a_bar_is_as_wide_as_its_column(
    time_s: float, floor_s: float | None, largest_s: float, width: int
) -> None:
    assert floor_bar(time_s, floor_s, max(time_s, largest_s), width).cell_len == width


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_a_lower_floor_never_draws_more_solid(one: float, other: float) -> None:
    lower, upper = sorted((one, other))
    assert floor_bar(1.0, lower, 1.0, 20).plain.count("█") <= floor_bar(1.0, upper, 1.0, 20).plain.count("█")


def test_no_time_no_bar() -> None:
    assert floor_bar(None, 1.0, 1.0, 8) == Text(" " * 8)


@given(times, st.integers(1, 120))
def test_an_axis_fills_its_width_and_ends_with_its_largest_value(largest_s: float, width: int) -> None:
    unit = time_unit([largest_s])
    drawn = axis(largest_s, unit, width)
    assert len(drawn) == width
    assert width < 12 or drawn.endswith(f"{largest_s * unit.per_second:.3g}")


@given(st.text("abc_0123456789", min_size=1, max_size=40), st.integers(4, 30))
def test_a_name_is_cut_in_its_middle(name: str, width: int) -> None:
    cut = middle_cut(name, width)
    assert len(cut) <= width
    assert cut == name or (name.startswith(cut.split("…")[0]) and name.endswith(cut.split("…")[1]))


def test_kernels_can_be_told_apart_where_their_names_are_cut() -> None:
    """In the narrowest column that a screen of 80 cells has, and in any wider one. A plan has one math."""
    kernels = Registry.load().kernels.values()
    for math in {math for kernel in kernels for math in kernel.maths}:
        names = [kernel.name for kernel in kernels if math in kernel.maths or not kernel.maths]
        for width in range(16, 30):
            assert len({middle_cut(name, width) for name in names}) == len(names), (math, width)


@given(times, times)
def test_a_difference_fits_its_column_beside_its_mark(largest_s: float, delta_s: float) -> None:
    unit = time_unit([largest_s]).for_values([delta_s])
    whole = len(f"{delta_s * unit.per_second:.0f}")
    assert len(unit.signed(-delta_s)) <= max(7, 1 + whole)
