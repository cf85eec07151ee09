"""The bottom line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gputop.tui.state import State
from gputop.tui.widgets.key_bar import key_bar


@given(st.integers(45, 200), st.sampled_from(["ladder", "phases", "toggles", "dispatch", None]))
def test_fits_and_keeps_help_and_quit(width: int, pane: str | None) -> None:
    bar = key_bar(State(), pane, width).plain.rstrip()
    assert len(bar) <= width
    assert "? help" in bar
    assert "q quit" in bar
