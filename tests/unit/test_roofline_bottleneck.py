"""What binds, what is left and what a change would gain: by hand, and as properties of any terms."""

from __future__ import annotations

from dataclasses import replace
from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputop.perf.roofline import TERMS, Terms, binding, forecast, what_is_left, without_gaps

# What binds


def test_the_largest_term_binds_and_the_next_is_named() -> None:
    got = binding(Terms(compute_s=2.0, dram_s=8.0, l2_s=4.0), 10.0)
    assert (got.binds, got.runner_up) == ("dram", "l2")


def test_nothing_binds_where_no_term_reaches_half_of_the_time() -> None:
    """A naive port uses a hundredth of every roof: that is the diagnosis."""
    got = binding(Terms(compute_s=0.8, dram_s=0.5), 100.0)
    assert (got.binds, got.runner_up) == ("unknown", "compute")
    assert binding(Terms(compute_s=50.0), 100.0).binds == "compute"
    assert binding(Terms(compute_s=49.0), 100.0).binds == "unknown"
    assert binding(Terms(), 100.0).binds == "unknown"


def test_without_a_time_the_largest_term_binds() -> None:
    assert binding(Terms(compute_s=1.0, dram_s=0.1), None).binds == "compute"


def test_shape_binds_where_the_factor_is_large() -> None:
    got = binding(Terms(compute_s=3.0, dram_s=1.0, shape_factor=2.5, padding=1.0), 10.0)
    assert (got.binds, got.runner_up) == ("shape", "compute")
    assert binding(Terms(compute_s=6.0, dram_s=1.0, shape_factor=1.5, padding=1.0), 10.0).binds == "compute"


def test_shape_binds_where_removing_it_changes_what_binds() -> None:
    got = binding(Terms(compute_s=4.0, dram_s=3.0, shape_factor=1.8, padding=1.8), 5.0)
    assert (got.binds, got.runner_up) == ("shape", "compute")


def test_shape_does_not_bind_what_it_does_not_slow() -> None:
    """Idle SMs do not lengthen a launch."""
    assert binding(Terms(compute_s=0.1, launch_s=8.0, shape_factor=8.0, padding=1.0), 10.0).binds == "launch"


def test_of_a_launch_a_gap_is_no_part_of_the_time() -> None:
    some = Terms(latency_s=4.0, launch_s=6.0)
    assert without_gaps(some, 4.5) == replace(some, launch_s=1.5)
    assert without_gaps(some, 7.0).launch_s == 0.0, "a gap longer than a launch is another's"
    assert without_gaps(some, None) == some, "where no gaps are seen the time holds them"
    assert without_gaps(Terms(latency_s=4.0), 1.0) == Terms(latency_s=4.0)
    assert binding(some, 5.0).binds == "launch"
    assert binding(without_gaps(some, 4.5), 5.0).binds == "latency"


# What is left


def test_what_is_left_by_hand() -> None:
    split = what_is_left(
        1.0,
        Terms(
            compute_s=3.0,
            dram_s=1.0,
            l2_s=5.0,
            l1_s=2.0,
            issue_s=4.0,
            launch_s=6.0,
            shape_factor=2.0,
            padding=1.5,
        ),
        10.0,
    )
    assert [(part.name, part.seconds) for part in split.parts] == [
        ("floor", 1.0),
        ("work", 1.0),  # 3.0 without its padding is 2.0: a slower pipe, or masked FLOPs
        ("shape", 2.0),  # padded and a third longer for idle SMs: 4.0
        ("l2", 1.0),
        ("l1", 0.0),
        ("issue", pytest.approx(4 / 3 * 4 - 5)),
        ("latency", None),
        ("launch", pytest.approx(6 - 4 / 3 * 4)),
        ("unexplained", pytest.approx(4.0)),
    ]
    assert split.note == ""
    assert split.get("latency") is None


def test_a_model_above_the_time_says_so() -> None:
    split = what_is_left(1.0, Terms(compute_s=1.0, dram_s=0.5, l2_s=3.0), 2.0)
    assert split.get("unexplained") == -1.0
    assert split.note == "modelled at 1.50 times what was measured, by l2 alone"


def test_without_a_floor_nothing_is_split() -> None:
    split = what_is_left(None, Terms(compute_s=1.0), 2.0)
    assert {part.seconds for part in split.parts} == {None}
    assert what_is_left(1.0, Terms(), None).get("unexplained") is None


# Forecasts


def test_a_saving_in_a_currency_that_does_not_bind_is_forecast_at_nothing() -> None:
    before = Terms(compute_s=1.0, dram_s=2.0, launch_s=8.0)
    got = forecast(before, replace(before, dram_s=0.1), 10.0)
    assert got is not None
    assert (got.saved_s, got.after_s, got.gain) == (0.0, 10.0, 1.0)


def test_a_saving_ends_where_the_next_term_binds() -> None:
    got = forecast(Terms(dram_s=6.0, launch_s=8.0), Terms(dram_s=6.0, launch_s=1.0), 10.0)
    assert got is not None
    assert (got.saved_s, got.gain) == (2.0, 1.25)


def test_a_loss_is_forecast_as_one() -> None:
    got = forecast(Terms(compute_s=2.0), Terms(compute_s=4.0), 4.0)
    assert got is not None
    assert got.saved_s == -2.0


def test_becoming_unknown_saves_nothing() -> None:
    got = forecast(Terms(compute_s=1.0, l2_s=8.0), Terms(compute_s=1.0), 10.0)
    assert got is not None
    assert got.saved_s == 0.0
    assert forecast(Terms(), Terms(), 10.0) is None
    assert forecast(Terms(compute_s=1.0), Terms(compute_s=1.0), None) is None


def test_a_saving_from_a_model_above_the_time_is_scaled_down() -> None:
    got = forecast(Terms(compute_s=20.0), Terms(compute_s=10.0), 10.0)
    assert got is not None
    assert got.gain == 2.0


# Properties of any phase

SECONDS = st.floats(1e-9, 1e3)
MAYBE = st.none() | SECONDS
FACTORS = st.floats(1, 64)


@st.composite
def any_terms(draw: st.DrawFn) -> Terms:
    known = {f"{name}_s": draw(MAYBE) for name in TERMS}
    if draw(st.booleans()):
        return Terms(**known)
    padding = draw(FACTORS)
    return Terms(**known, shape_factor=padding * draw(FACTORS), padding=padding)


@given(floor_s=SECONDS, some=any_terms(), time_s=SECONDS)
def test_what_is_left_sums_to_the_time(floor_s: float, some: Terms, time_s: float) -> None:
    split = what_is_left(floor_s, some, time_s)
    known = [part.seconds for part in split.parts if part.seconds is not None]
    largest = max(abs(seconds) for seconds in known)
    assert fsum(known) == pytest.approx(time_s, abs=4e-16 * largest, rel=4e-16)
    assert all(seconds >= 0 for seconds in known[:-1])


@given(floor_s=SECONDS, some=any_terms(), time_s=SECONDS)
def test_the_floor_is_below_every_model(floor_s: float, some: Terms, time_s: float) -> None:
    model_s = 0.0
    for part in what_is_left(floor_s, some, time_s).parts[:-1]:
        model_s += part.seconds or 0.0
        assert model_s >= floor_s


@given(floor_s=MAYBE, some=any_terms(), time_s=MAYBE)
def test_an_unknown_term_stays_unknown(floor_s: float | None, some: Terms, time_s: float | None) -> None:
    split = what_is_left(floor_s, some, time_s)
    for name in TERMS[2:]:
        if getattr(some, f"{name}_s") is None:
            assert split.get(name) is None
            assert binding(some, time_s).binds != name


@given(some=any_terms(), other=any_terms(), time_s=SECONDS)
def test_a_forecast_leaves_a_time_that_can_be(some: Terms, other: Terms, time_s: float) -> None:
    got = forecast(some, other, time_s)
    if got is not None:
        assert got.after_s >= -1e-12 * time_s
        assert got.saved_s + got.after_s == pytest.approx(time_s, abs=1e-12 * abs(got.saved_s))
