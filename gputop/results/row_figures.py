"""What tables and sentences say of a row's floor, its reach and what binds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from gputop.util.units import UNKNOWN

if TYPE_CHECKING:
    from gputop.results.records import Row


class Bound(Protocol):
    """A row, or a rung of a ladder."""

    @property
    def binds(self) -> str | None: ...

    @property
    def binds_share(self) -> float | None: ...


def binds_words(bound: Bound, none: str = UNKNOWN) -> str:
    """`l2 40 %`: what binds, and its share of the time. The share is missing in recordings older than it."""
    if bound.binds is None:
        return none
    return bound.binds if bound.binds_share is None else f"{bound.binds} {100 * bound.binds_share:.0f} %"


def floor_ranks(row: Row) -> bool:
    """Whether the floor says what could be won: one below a launch and its first load ranks nothing."""
    if not row.floor_s or row.reach_s is None:
        return bool(row.floor_s)
    return row.floor_s >= (row.launch_s or 0.0) + (row.gap_s or 0.0) + (row.first_load_s or 0.0)


def bound_of(row: Row) -> tuple[str, float | None]:
    """What the time is to be held against, by its name: reach if it is known, else the floor."""
    return ("floor", row.floor_s) if row.reach_s is None else ("reach", row.reach_s)


def excess_s(row: Row) -> float | None:
    """Seconds above that bound; the gap before the launches counts, as reach holds it. None if unknown."""
    name, bound_s = bound_of(row)
    if row.time_s is None or bound_s is None:
        return None
    return row.time_s + ((row.gap_s or 0.0) if name == "reach" else 0.0) - bound_s
