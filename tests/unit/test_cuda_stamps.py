"""What a kernel notes of its own tasks becomes seconds that add up to the whole."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gputop.backends.cuda.timing.stamps import seconds_apart
from gputop.util.errors import UsageError

CLOCK_HZ = 1.755e9


def noted(cycles: list[int]) -> NDArray[np.uint8]:
    """Stamps of tasks that took these cycles at `CLOCK_HZ`, from some moment on."""
    ends = np.cumsum([5_000_000, *cycles])
    nanoseconds = np.round(ends / CLOCK_HZ * 1e9).astype(np.int64)
    return np.stack([ends, nanoseconds], axis=1).astype(np.int64).view(np.uint8).reshape(-1)


@given(st.lists(st.integers(min_value=1_000, max_value=10_000_000), min_size=1, max_size=40))
def test_each_task_has_its_share(cycles: list[int]) -> None:
    found = seconds_apart(noted(cycles))
    assert found == pytest.approx([count / CLOCK_HZ for count in cycles], rel=5e-3)


@pytest.mark.parametrize("cycles", [[0, 0], [5_000, -4_000, 6_000], [-5_000, -5_000]])
def test_times_that_do_not_rise_are_refused(cycles: list[int]) -> None:
    with pytest.raises(UsageError, match="do not rise"):
        seconds_apart(noted(cycles))
