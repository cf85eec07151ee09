"""What a pass's parts leave of it: the arithmetic, and when it says that they are not to be trusted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputop.results.records import SCHEMA_PHASES, Row
from gputop.results.residual import LARGE, reconciled, residual_note, residual_s

times = st.floats(1e-6, 1.0)


@given(times, times, times)
def test_parts_and_residual_add_up_to_the_pass_and_only_a_large_one_is_warned_of(
    device_s: float, sum_s: float, gaps_s: float
) -> None:
    left_s = residual_s(device_s, sum_s, gaps_s)
    assert left_s is not None
    assert sum_s + gaps_s + left_s == pytest.approx(device_s)
    assert bool(residual_note(left_s, device_s)) == (abs(left_s) > LARGE * device_s)


def test_what_is_unknown_is_neither_left_over_nor_warned_of() -> None:
    assert residual_s(None, 1.0, 1.0) is None
    assert residual_note(None, 1.0) == residual_note(1.0, None) == ""


def test_phases_that_took_twice_the_pass_are_said_to() -> None:
    shown = {"device": 0.0667, "sum": 0.1355, "gaps": 0.0005, "residual": 0.0}
    rows = [
        Row(
            schema=SCHEMA_PHASES, time_utc="t", window=1, samples=3, backend="cpu", device="a device",
            driver=None, workload="mini", batch=1, seq=64, rung="cpu-batch", plan="cpu-batch", phase=phase,
            time_s=time_s,
        )
        for phase, time_s in shown.items()
    ]  # fmt: skip
    *_, residual = reconciled(rows)
    assert residual.time_s == pytest.approx(-0.0693)
    assert "104 % of the pass: phases are timed in passes of their own" in (residual.status or "")
