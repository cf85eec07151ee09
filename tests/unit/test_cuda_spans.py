"""Kernel records become step times: nothing is counted twice, and all of it adds up to the span."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputop.backends.cuda.timing.spans import Span, split, step_and_spread_s

NS = 1e-9
spans = st.lists(
    st.tuples(st.integers(0, 10_000), st.integers(1, 3_000)).map(
        lambda pair: Span(pair[0], pair[0] + pair[1])
    ),
    min_size=1,
    max_size=30,
)


def test_times_gaps_and_overlaps_of_a_pass() -> None:
    # The second kernel starts 20 ns after the first, the third while the second still runs.
    records = [Span(100, 200), Span(220, 400), Span(350, 500)]
    first, second, third = split(records, (1, 1, 1))
    assert (first.time_s, first.gap_s, first.overlap_s) == pytest.approx((100 * NS, 0, 0))
    assert (second.time_s, second.gap_s, second.overlap_s) == pytest.approx((180 * NS, 20 * NS, 0))
    assert (third.time_s, third.gap_s, third.overlap_s) == pytest.approx((100 * NS, 0, 50 * NS))


def test_a_step_of_several_kernels_adds_them() -> None:
    (step,) = split([Span(0, 10), Span(15, 30), Span(30, 31)], (3,))
    assert step.time_s == pytest.approx(26 * NS)
    assert step.gap_s == pytest.approx(5 * NS)


def test_records_come_in_any_order() -> None:
    records = [Span(220, 400), Span(100, 200)]
    assert split(records, (1, 1)) == split(records[::-1], (1, 1))


@given(spans)
def test_times_and_gaps_fill_the_span_from_first_begin_to_last_end(records: list[Span]) -> None:
    steps = split(records, [1] * len(records))
    whole = max(span.end for span in records) - min(span.start for span in records)
    assert sum(step.time_s + step.gap_s for step in steps) == pytest.approx(whole * NS)
    assert all(step.time_s >= 0 and step.gap_s >= 0 and step.overlap_s >= 0 for step in steps)


@given(spans, st.integers(1, 5))
def test_grouping_moves_nothing(records: list[Span], size: int) -> None:
    alone = split(records, [1] * len(records))
    counts = [size] * (len(records) // size) + [len(records) % size]
    grouped = split(records, counts)
    assert sum(step.time_s for step in grouped) == pytest.approx(sum(step.time_s for step in alone))
    assert sum(step.overlap_s for step in grouped) == pytest.approx(sum(step.overlap_s for step in alone))


def test_a_clocks_floor_is_its_step_and_what_its_readings_differ_by() -> None:
    steady = [Span(at, at + 1056) for at in range(0, 64 * 2016, 2016)]
    assert step_and_spread_s(steady) == pytest.approx(96 * NS), "all readings are 96 ns apart, or multiples"
    unsteady = [Span(span.start + 32 * (i % 3), span.end + 64 * (i % 3)) for i, span in enumerate(steady)]
    assert step_and_spread_s(unsteady) == pytest.approx((32 + 32) * NS)


@given(spans.filter(lambda records: len(records) > 1), st.integers(2, 100))
def test_a_coarser_clock_has_a_higher_floor(records: list[Span], factor: int) -> None:
    coarse = [Span(span.start * factor, span.end * factor) for span in records]
    assert step_and_spread_s(coarse) == pytest.approx(factor * step_and_spread_s(records))
    assert step_and_spread_s(records) >= NS * (1 - 1e-9)
