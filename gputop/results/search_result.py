"""What a search measured, and the table that it found, as rows of a file. None is unknown."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gputop.plan.types import Verdict
from gputop.results.records import Delta, DeviceFacts

SCHEMA_SEARCH = "gputop.search/1"
OF_TABLE, OF_STRUCK = "table", "struck"
"""Stages of rows that are no window: a cell of the found table, a candidate that has no time."""


@dataclass(frozen=True, slots=True)
class SearchRow:
    """A candidate in a window; or a cell of the found table; or a candidate that was struck."""

    stage: str
    """`search finals closing`, `table` or `struck`."""
    trial: int | None
    window: int | None
    time_utc: str
    site: str
    kernel: str
    incumbent: str
    """The kernel beside it in the window; of a table's row the plan's own."""
    forecast_s: float | None = None
    forecast_sd: float | None = None
    incumbent_s: float | None = None
    time_s: float | None = None
    ratio: float | None = None
    ratio_lo: float | None = None
    ratio_hi: float | None = None
    aa_floor: float | None = None
    verdict: Verdict | None = None
    accepted: bool | None = None
    gate: str | None = None
    status: str = ""

    def paired(self, delta: Delta | None) -> SearchRow:
        """The row with what a delta from the incumbent to the candidate says."""
        if delta is None:
            return self
        return replace(
            self,
            incumbent_s=delta.a_s,
            time_s=delta.b_s,
            ratio=delta.ratio,
            ratio_lo=delta.ratio_lo,
            ratio_hi=delta.ratio_hi,
            aa_floor=delta.aa_floor,
            verdict=delta.verdict,
        )


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One search, resumed or not."""

    time_utc: str
    device: DeviceFacts
    workload: str
    plan: str
    """The plan that it began with."""
    found: str
    """The plan with the found table."""
    seed: int
    rows: tuple[SearchRow, ...]
    """In the order in which they were measured, then what was struck, then the table."""
