"""What follows from one row of the phase table: what binds it, its idle SMs, its excess, its history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from gputop.perf.block_shape import BlockShape
from gputop.perf.roofline import TERMS
from gputop.results.records import TOTAL_ROWS, DeviceFacts, PlanResult, Row, Window
from gputop.results.row_figures import excess_s, floor_ranks


@dataclass(frozen=True, slots=True)
class TermShare:
    """One term of the model beside the time that it explains."""

    term: str
    value_s: float
    share: float
    """Of the measured time; above 1 the term claims more than was measured."""


def term_shares(row: Row) -> tuple[TermShare, ...]:
    """Return the known terms of a row with their shares of its time, largest first."""
    if not row.time_s:
        return ()
    values = ((term, getattr(row, f"{term.replace(' ', '_')}_s", None)) for term in TERMS)
    shares = [TermShare(term, value, value / row.time_s) for term, value in values if value is not None]
    return tuple(sorted(shares, key=lambda item: -item.value_s))


def bound_by(row: Row) -> TermShare | None:
    """Return what binds the row with its share of the time, or `unknown` with the part that is unexplained.

    None if nothing is known of it.
    """
    if row.binds is None or row.binds_share is None or not row.time_s:
        return None
    return TermShare(row.binds, row.binds_share * row.time_s, row.binds_share)


def extent_of(text: str | None) -> int | None:
    """Return how many a grid or a block written as `112x1x1` holds; None if it is not known."""
    if not text:
        return None
    try:
        return prod(int(part) for part in text.split("x"))
    except ValueError:
        return None


def block_shape(row: Row) -> BlockShape | None:
    """Return what a row's blocks need of an SM; None if any part of it is unknown."""
    blocks, threads = extent_of(row.grid), extent_of(row.block)
    if not blocks or not threads or row.registers is None or row.smem_bytes is None:
        return None
    return BlockShape(threads, row.registers, row.smem_bytes, blocks)


def idle_sms(row: Row, sm_count: int | None) -> int | None:
    """Return how many SMs get no block if each gets at most one; None if grid or device is unknown."""
    blocks = extent_of(row.grid)
    if blocks is None or sm_count is None:
        return None
    return max(0, sm_count - blocks)


def sm_count(device: DeviceFacts | None) -> int | None:
    """Return the SMs of a GPU; None for a CPU, whose `sm_count` are cores."""
    return device.sm_count if device and (device.arch or "").startswith("sm_") else None


def times_floor(row: Row) -> float | None:
    """Return time / floor; None if one is unknown, or if the floor ranks nothing."""
    return row.time_s / row.floor_s if row.time_s and row.floor_s and floor_ranks(row) else None


def times_reach(row: Row) -> float | None:
    """Return time / reach, with the gap before the launches, which reach holds too; None if unknown."""
    return (row.time_s + (row.gap_s or 0.0)) / row.reach_s if row.time_s and row.reach_s else None


def phases_of(lane: PlanResult | None) -> tuple[Row, ...]:
    """Return the rows of phases, totals left out, in pass order."""
    return tuple(row for row in lane.rows if row.phase not in TOTAL_ROWS) if lane else ()


def totals_of(lane: PlanResult | None) -> Mapping[str, Row]:
    """Return the total rows by name."""
    return {row.phase: row for row in lane.rows if row.phase in TOTAL_ROWS} if lane else {}


def worst_phase(lane: PlanResult | None) -> Row | None:
    """Return the phase with the largest excess; a phase without a floor can't be judged."""
    judged = [row for row in phases_of(lane) if row.time_s and row.floor_s is not None]
    return max(judged, key=lambda row: excess_s(row) or 0.0, default=None)


def chosen_phase(lane: PlanResult | None, site: str | None) -> Row | None:
    """Return the phase of that name; the one with the largest excess if there is none."""
    return next((row for row in phases_of(lane) if row.phase == site), None) or worst_phase(lane)


def site_history(windows: Iterable[Window], own: Row, rungs: Sequence[str]) -> tuple[tuple[str, float], ...]:
    """Return (plan, time in s) of a row's site for every plan in the windows, in the order of `rungs`.

    Only passes of as many sequences are comparable. The window with the highest number decides, but of the
    row's own plan the row does; plans of no such rung come last.
    """
    found: dict[str, float] = {}
    rung_of: dict[str, str] = {}
    for window in sorted(windows, key=lambda window: window.number):
        for lane in window.lanes:
            row = next((row for row in lane.rows if row.phase == own.phase and row.time_s), None)
            if row is not None and row.time_s is not None and row.batch == own.batch:
                found[lane.plan] = row.time_s
                rung_of[lane.plan] = lane.rung
    if own.time_s and own.plan in found:
        found[own.plan] = own.time_s
    places = {rung: place for place, rung in enumerate(rungs)}
    known = sorted(found, key=lambda plan: (places.get(rung_of[plan], len(rungs)), plan))
    return tuple((plan, found[plan]) for plan in known)
