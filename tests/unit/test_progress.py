"""What a window says while it samples."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputop.perf.verdicts import Paired
from gputop.session.progress import RoundBudget, ratio_so_far, round_words

BUDGET = RoundBudget(budget_s=4.0, least_rounds=8)


@pytest.mark.parametrize(
    ("done", "spent_s", "so_far", "said"),
    [
        (0, 0.0, "", "round 1: graph"),
        (4, 8.0, "", "round 5 of 8: graph, at most 8.00 s to go"),
        (4, 0.5, "1.05×", "round 5 of 32: graph, 1.05× so far, at most 4.00 s to go"),
        (31, 3.9, "", "round 32 of 32: graph"),
    ],
)
def test_a_round_is_told_with_those_to_come(done: int, spent_s: float, so_far: str, said: str) -> None:
    assert round_words(BUDGET, done, spent_s, "graph", so_far) == said


def test_the_ratio_gets_its_interval_as_soon_as_there_is_one() -> None:
    early = Paired(math.log(1.05), -math.inf, math.inf, 3, "too few rounds")
    late = Paired(math.log(1.05), math.log(1.02), math.log(1.08), 9)
    assert ratio_so_far(Paired(None, -math.inf, math.inf, 0)) == ""
    assert ratio_so_far(early) == "1.05×"
    assert ratio_so_far(late) == "1.05× [1.02, 1.08]"


@given(done=st.integers(1, 200), spent_s=st.floats(1e-3, 1e3))
def test_there_is_always_this_round_to_go(done: int, spent_s: float) -> None:
    rounds, left_s = BUDGET.rounds(done, spent_s), BUDGET.left_s(done, spent_s)
    assert rounds is not None
    assert left_s is not None
    assert rounds > done
    assert left_s > 0
