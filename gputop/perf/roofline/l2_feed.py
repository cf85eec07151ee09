"""What one SM takes from L2, by how many SMs read at once and whether they read the same words.

See `gputop.backends.cuda.ceilings.l2_feed`, which measures the ceilings used here.
"""

from __future__ import annotations

from gputop.perf.roofline.peaks import Rates

SM_COUNTS = (1, 48, 96)
"""Of the ceilings `l2_read_N` and `l2_panel_N`, beside all SMs."""


def sm_read_rate(rates: Rates, active: int, sm_count: int, *, shared: bool) -> float | None:
    """B/s of each of `active` SMs, on a line between the counts that were measured; None where none was.

    `shared`: tiles of one panel read the same words at the same time.
    """
    points = [
        (count, rate) for count in (*SM_COUNTS, sm_count) if (rate := _of(rates, count, sm_count, shared))
    ]
    if not points:
        return None
    active = min(max(active, points[0][0]), points[-1][0])
    below = max(point for point in points if point[0] <= active)
    above = min(point for point in points if point[0] >= active)
    if below == above:
        return below[1]
    share = (active - below[0]) / (above[0] - below[0])
    return below[1] + share * (above[1] - below[1])


def _of(rates: Rates, count: int, sm_count: int, shared: bool) -> float | None:
    """Each SM's share where `count` read."""
    if count > sm_count:
        return None
    everyone = "l2_read" if count == sm_count else f"l2_read_{count}"
    rate = rates.get(f"l2_panel_{count}" if shared else everyone)
    return None if rate is None else rate / count
