"""What of a pass its parts do not account for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gputop.results import Row


def residual_s(device_s: float | None, sum_s: float | None, gaps_s: float | None) -> float | None:
    """None where a part is unknown. What ran beside the launch before is in the time of that launch alone."""
    if device_s is None or sum_s is None or gaps_s is None:
        return None
    return device_s - sum_s - gaps_s


def reconciled(rows: Sequence[Row]) -> tuple[Row, ...]:
    """A lane's rows with the residual taken from the others anew."""
    times = {row.phase: row.time_s for row in rows}
    left_s = residual_s(*(times.get(name) for name in ("device", "sum", "gaps")))
    return tuple(replace(row, time_s=left_s) if row.phase == "residual" else row for row in rows)
