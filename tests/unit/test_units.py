"""Numbers on screen."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputop.util import units
from gputop.util.interval import Interval

PREFIXES = {prefix: 10.0 ** (3 * place) for place, prefix in enumerate([*"pnµm", "", *"kMGTP"], start=-4)}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.23e-3, "1.23 ms"),
        (0.0, "0 s"),
        (9.996e-4, "1.00 ms"),
        (0.99951, "1.00 s"),
        (123.4e-6, "123 µs"),
        (-45e-6, "-45.0 µs"),
        (None, "–"),
        (math.nan, "–"),
        (math.inf, "–"),
    ],
)
def test_seconds(value: float | None, text: str) -> None:
    assert units.seconds(value) == text


@given(st.floats(min_value=1e-12, max_value=9.9e17))
def test_si_reads_back_to_three_digits(value: float) -> None:
    figure, unit = units.si(value, "B").split(" ")
    assert float(figure) * PREFIXES[unit.removesuffix("B")] == pytest.approx(value, rel=5.01e-3)
    assert 1 <= float(figure) < 1000


@given(st.floats(min_value=1e-6, max_value=1e6))
def test_significant_keeps_three_digits(value: float) -> None:
    assert float(units.significant(value)) == pytest.approx(value, rel=5.01e-3)


def test_a_difference_shows_its_sign() -> None:
    assert units.signed_seconds(1e-3) == "+1.00 ms"
    assert units.signed_seconds(-1e-3) == "-1.00 ms"
    assert units.signed_seconds(0.0) == "0 s"
    assert units.signed_seconds(None) == units.UNKNOWN


def test_fractions_ratios_and_words() -> None:
    assert units.percent(0.1234) == "12.3 %"
    assert units.percent(1.0) == "100 %"
    assert units.ratio(5.3) == "5.30×"
    assert units.ratio_within(Interval(1.0, 0.999, 1.08)) == "1.00× [0.999, 1.08]"
    assert units.ratio_within(Interval(1.0, None, 1.08)) == "1.00×"
    assert units.yes_no(False) == "no"
    assert units.yes_no(None) == units.UNKNOWN
    assert units.text("") == units.UNKNOWN
    assert units.whole(0) == "0"


def test_an_interval_that_says_nothing_is_not_spelled_out() -> None:
    assert units.ratio_within(Interval(0.769, 1.28e-10, 4.63e9)) == "0.769× [–, –]"
    assert units.ratio_within(Interval(0.769, 0.7, 4.63e9)) == "0.769× [–, –]"
    assert units.ratio_within(Interval(2.0, 0.01, 900.0)) == "2.00× [0.0100, 900]"


@given(st.floats())
def test_any_number_has_a_text(value: float) -> None:
    for show in (units.seconds, units.percent, units.ratio, units.number, units.scientific, units.celsius):
        text = show(value)
        assert text
        assert "inf" not in text
        assert "nan" not in text
