"""What fits where."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gputop.tui.layout import GAP, LayoutColumn, fit, ladder_height, too_small
from gputop.tui.widgets import dispatch_table, ladder_table, phase_table, toggle_table

TABLES = (ladder_table.COLUMNS, phase_table.COLUMNS, toggle_table.COLUMNS, dispatch_table.COLUMNS)


@pytest.mark.parametrize("columns", TABLES)
@settings(max_examples=30)
@given(width=st.integers(1, 250))
def test_columns_fit_or_only_the_indispensable_stay(columns: tuple[LayoutColumn, ...], width: int) -> None:
    fitted = fit(columns, width)
    used = sum(item.width for item in fitted) + GAP * (len(fitted) - 1)
    assert used <= width or all(item.column.priority == 0 for item in fitted)


@pytest.mark.parametrize("columns", TABLES)
@settings(max_examples=30)
@given(width=st.integers(1, 250))
def test_columns_leave_by_priority_and_stay_in_order(columns: tuple[LayoutColumn, ...], width: int) -> None:
    kept = [item.column for item in fit(columns, width)]
    gone = [column for column in columns if column not in kept]
    assert kept == [column for column in columns if column in kept]
    assert not gone or max(c.priority for c in kept) <= min(c.priority for c in gone)


@given(st.integers(5, 80), st.integers(1, 40), st.integers(1, 20))
def test_the_ladder_leaves_the_plan_what_it_needs_or_has_most(height: int, rungs: int, plan: int) -> None:
    ladder = ladder_height(height, rungs, plan)
    assert 0 <= ladder <= min(height, rungs)
    assert height - ladder >= plan or ladder in (rungs, height * 3 // 5)


def test_too_small_says_how_large() -> None:
    assert "50x12" in too_small(50, 12)
    assert "60x15" in too_small(50, 12)
    assert too_small(60, 15) == ""
