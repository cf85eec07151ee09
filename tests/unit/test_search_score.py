"""How a result is scored, and which rule stops a search."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gputop.search.score import Score, StopRules, score, stopped
from tests.unit.search_menus import menu

seconds = st.floats(1e-7, 1e-2)
TWO = menu({"w1": {"own": 4e-6, "other": 2e-6}, "w2": {"own": 8e-6}})


@given(seconds, seconds)
def test_an_efficiency_is_bound_over_time_and_of_the_whole_too(w1_s: float, w2_s: float) -> None:
    found = score(TWO, {"w1": w1_s, "w2": w2_s})
    assert found.sites == {"w1": 1e-6 / w1_s, "w2": 1e-6 / w2_s}
    assert found.whole == 2e-6 / (w1_s + w2_s)


def test_what_was_never_timed_has_no_efficiency() -> None:
    assert score(TWO, {}) == Score({"w1": None, "w2": None}, None, None, None)


@given(
    st.floats(0.01, 2.0),
    st.integers(0, 60),
    st.integers(0, 50),
    st.none() | st.floats(0, 1e-5),
    st.floats(0.1, 1),
)
def test_the_rule_that_is_named_holds_and_none_before_it(
    whole: float, measured: int, left: int, gain_s: float | None, asked: float
) -> None:
    rules = StopRules(efficiency=asked)
    found = Score({}, whole, whole * 1e-3, 1e-3)
    holds = {
        "menu": left == 0,
        "efficiency": whole >= asked,
        "no expected gain": gain_s is not None and gain_s < rules.least_gain * 1e-3,
        "budget": measured >= rules.budget,
    }
    first = next((rule for rule, true in holds.items() if true), None)
    why = stopped(rules, found, measured=measured, left=left, gain_s=gain_s)
    assert (why.rule if why else None) == first
