"""A figure with its interval, turned round and composed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputop.util.interval import Interval

positive = st.floats(1e-6, 1e6)


@st.composite
def ratios(draw: st.DrawFn) -> Interval:
    lo, value, hi = sorted(draw(st.tuples(positive, positive, positive)))
    return Interval(value, lo, hi)


@given(ratios())
def test_turned_round_it_still_holds_its_value_and_turned_again_it_is_the_same(found: Interval) -> None:
    turned = found.inverse
    assert turned.lo is not None
    assert turned.value is not None
    assert turned.hi is not None
    assert turned.lo <= turned.value <= turned.hi
    again = turned.inverse
    assert (again.value, again.lo, again.hi) == pytest.approx((found.value, found.lo, found.hi))


@given(ratios(), ratios(), st.floats(0, 1), st.floats(0, 1))
def test_a_ratio_of_ratios_holds_that_of_any_two_inside(
    a: Interval, b: Interval, at: float, other: float
) -> None:
    over = a.over(b)
    ends = (a.lo, a.hi, b.lo, b.hi, over.lo, over.hi)
    assert None not in ends
    a_lo, a_hi, b_lo, b_hi, lo, hi = (end or 0.0 for end in ends)
    inside = (a_lo + at * (a_hi - a_lo)) / (b_lo + other * (b_hi - b_lo))
    assert lo * (1 - 1e-9) <= inside <= hi * (1 + 1e-9)


def test_what_is_not_known_stays_unknown() -> None:
    assert Interval(2.0).inverse == Interval(0.5)
    assert Interval(None).inverse == Interval(None) == Interval(None).negated
    assert Interval(0.0).inverse == Interval(None), "no ratio is the inverse of 0"
    assert Interval(6.0, 5.0, 7.0).over(Interval(2.0)) == Interval(3.0)
    assert Interval(-1.0, -2.0, 3.0).negated == Interval(1.0, -3.0, 2.0)
    assert not Interval(1.0, 0.5).is_known
    assert not Interval(1.0, None, 1e9).is_uninformative, "half an interval is none"
