"""What of a pass its parts do not account for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gputop.results.records import Row
from gputop.util.units import significant

LARGE = 0.1
"""Share of a pass from which on its parts are not to be trusted: timers and noise leave a few hundredths."""


def residual_s(device_s: float | None, sum_s: float | None, gaps_s: float | None) -> float | None:
    """Return time minus parts; None if a part is unknown. Work beside the launch before counts in that launch
    only.
    """
    if device_s is None or sum_s is None or gaps_s is None:
        return None
    return device_s - sum_s - gaps_s


def residual_note(left_s: float | None, device_s: float | None) -> str:
    """Return a sentence on a large residual; empty if it is small."""
    if left_s is None or not device_s or abs(left_s) <= LARGE * device_s:
        return ""
    share = f"{significant(100 * abs(left_s) / device_s)} %"
    return (
        f"{share} of the pass: phases are timed in passes of their own, and something else ran beside one of "
        "the two; take no phase's time for its share"
    )


def reconciled(rows: Sequence[Row]) -> tuple[Row, ...]:
    """A lane's rows with the residual taken from the others anew."""
    times = {row.phase: row.time_s for row in rows}
    device_s = times.get("device")
    left_s = residual_s(device_s, times.get("sum"), times.get("gaps"))
    note = residual_note(left_s, device_s) or None
    return tuple(replace(row, time_s=left_s, status=note) if row.phase == "residual" else row for row in rows)
