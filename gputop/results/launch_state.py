"""Which windows were measured in one state of their process: where launches cost the same.

A library can make every later launch of its process dearer. A plan of many launches is then slower against
one of few, which no interval within a window shows, so that windows of different states are not pooled.
"""

from __future__ import annotations

from collections.abc import Sequence

from gputop.results.records import Window

LAUNCH_COST_WITHIN = 0.10
"""Launch costs that differ by no more than this share are of one state."""


def of_one_state(windows: Sequence[Window]) -> tuple[Window, ...]:
    """The windows in which launches cost what they do in the first that tells; one that does not tell
    stays.
    """
    costs = [window.health.launch_s for window in windows]
    first_s = next((cost_s for cost_s in costs if cost_s is not None), None)
    if first_s is None:
        return tuple(windows)
    return tuple(
        window
        for window, cost_s in zip(windows, costs, strict=True)
        if cost_s is None or is_one_state(cost_s, first_s)
    )


def is_one_state(cost_s: float | None, other_s: float | None) -> bool:
    """Whether launches cost the same in both; what is not known is a state by itself."""
    if cost_s is None or other_s is None:
        return cost_s is other_s
    return other_s > 0 and abs(cost_s / other_s - 1) <= LAUNCH_COST_WITHIN
