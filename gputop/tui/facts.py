"""What the views say of a row: its nearest term, its idle SMs, its excess. Pure functions of its figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import prod

from gputop.results.records import TOTAL_ROWS, Ceilings, PlanResult, Row
from gputop.tui.palette import TERMS
from gputop.tui.state import SortKey, State

LEAST_GAIN = 1.005
"""A ratio below this is no step to advise."""
LAUNCH_BY_SETTINGS = ("launch_graph", "launch_queued", "launch_stream")
"""Ceilings that price one launch, the first that is known."""


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
    values = ((mark.term, getattr(row, f"{mark.term}_s", None)) for mark in TERMS)
    shares = [TermShare(term, value, value / row.time_s) for term, value in values if value is not None]
    return tuple(sorted(shares, key=lambda item: -item.value_s))


def nearest_term(row: Row) -> TermShare | None:
    """Return the term that comes nearest to the row's time; None if no term is known or all are 0."""
    shares = term_shares(row)
    return shares[0] if shares and shares[0].value_s > 0 else None


def blocks_of(row: Row) -> int | None:
    """Return the thread blocks of one launch, from its grid as `112x1x1`."""
    if not row.grid:
        return None
    try:
        return prod(int(part) for part in row.grid.split("x"))
    except ValueError:
        return None


def idle_sms(row: Row, sm_count: int | None) -> int | None:
    """Return how many SMs get no block if each gets at most one; None if grid or device is unknown."""
    blocks = blocks_of(row)
    if blocks is None or sm_count is None:
        return None
    return max(0, sm_count - blocks)


def sm_count(state: State) -> int | None:
    """Return the SMs of the GPU that the window on the screen was measured on; None for a CPU."""
    device = state.window.device if state.window else None
    return device.sm_count if device and (device.arch or "").startswith("sm_") else None


def least_launch_s(ceilings: Ceilings | None) -> float | None:
    """Return what one launch and one load from memory take at least: no kernel is shorter than that."""
    if ceilings is None:
        return None
    launch_s = next((value for name in LAUNCH_BY_SETTINGS if (value := ceilings.get(name)) is not None), None)
    load_s = ceilings.get("dram_latency")
    return None if launch_s is None or load_s is None else launch_s + load_s


def times_floor(row: Row, ceilings: Ceilings | None) -> float | None:
    """Return time / floor. None if the floor is below one launch and one load each: it then ranks nothing."""
    if not row.time_s or not row.floor_s:
        return None
    least_s = least_launch_s(ceilings)
    if least_s is not None and row.floor_s < least_s * (row.count or 1):
        return None
    return row.time_s / row.floor_s


def excess_s(row: Row) -> float | None:
    """Return the time above the floor; None if either is unknown."""
    return None if row.time_s is None or row.floor_s is None else row.time_s - row.floor_s


def phases_of(lane: PlanResult | None) -> tuple[Row, ...]:
    """Return the rows of phases, totals left out, in pass order."""
    return tuple(row for row in lane.rows if row.phase not in TOTAL_ROWS) if lane else ()


def totals_of(lane: PlanResult | None) -> Mapping[str, Row]:
    """Return the total rows by name."""
    return {row.phase: row for row in lane.rows if row.phase in TOTAL_ROWS} if lane else {}


def sorted_phases(rows: Iterable[Row], sort: SortKey, ceilings: Ceilings | None) -> tuple[Row, ...]:
    """Return phases with the largest of the chosen figure first; unknown figures come last."""
    rows = tuple(rows)
    figures: Mapping[str, Callable[[Row], float | None]] = {
        "excess": excess_s,
        "time": lambda row: row.time_s,
        "floor": lambda row: times_floor(row, ceilings),
    }
    figure = figures.get(sort)
    if figure is None:
        return rows
    known = {row.phase: figure(row) for row in rows}
    return tuple(sorted(rows, key=lambda row: (known[row.phase] is None, -(known[row.phase] or 0.0))))


def shown_phases(state: State) -> tuple[Row, ...]:
    """Return the phases of the window on the screen as the user sorted them."""
    return sorted_phases(phases_of(state.lane), state.sort, state.ceilings)


def selected_row(state: State) -> Row | None:
    """Return the phase that every view is about: the selected one, else the one with the largest excess."""
    rows = phases_of(state.lane)
    chosen = next((row for row in rows if row.phase == state.site), None)
    return chosen or worst_phase(state.lane)


def worst_phase(lane: PlanResult | None) -> Row | None:
    """Return the phase with the largest excess over its floor; a phase without a floor can't be judged."""
    judged = [row for row in phases_of(lane) if row.time_s and row.floor_s is not None]
    return max(judged, key=lambda row: excess_s(row) or 0.0, default=None)


def site_history(state: State, site: str) -> tuple[tuple[str, float], ...]:
    """Return (plan, time of the site) for every plan that was seen or recorded, in the ladder's order."""
    found: dict[str, float] = {}
    rungs: dict[str, str] = {}
    for window in (*state.recorded, *(seen.shot.window for seen in state.seen.values())):
        for lane in window.lanes:
            row = next((row for row in lane.rows if row.phase == site and row.time_s), None)
            if row is not None and row.time_s is not None:
                found[lane.plan] = row.time_s
                rungs[lane.plan] = lane.rung
    order = [rung.id for rung in state.rungs]
    places = {rung: place for place, rung in enumerate(order)}
    known = sorted(found, key=lambda plan: (places.get(rungs[plan], len(order)), plan))
    return tuple((plan, found[plan]) for plan in known)


def source_of(state: State, kernel: str | None) -> str:
    """Return the file of a kernel below the checkout, if the ladder names it; else nothing."""
    for entry in state.ladder.values():
        for name, file in zip(entry.kernels, entry.files, strict=False):
            if name == kernel and file:
                return f"kernels/{file}"
    return ""


@dataclass(frozen=True, slots=True)
class MeasuredStep:
    """A plan that was measured faster than the current one."""

    rung: str
    ratio: float
    """Time of the current plan / time of that one, of one sequence."""


def measured_step(state: State) -> MeasuredStep | None:
    """Return the best step from the current plan that the recorded ladder has measured, or None.

    A rung that changes the current plan comes before others; PyTorch and library baselines never count.
    """
    here = state.ladder.get(state.current_word or "")
    if here is None or not here.ratio_first:
        return None
    own = [
        entry
        for entry in state.ladder.values()
        if entry.kind == "ladder" and entry.gate.ok and entry.ratio_first and entry.batch == here.batch
    ]
    gains = {entry.rung: (entry.ratio_first or 0.0) / here.ratio_first for entry in own}
    steps = [entry for entry in own if entry.before == here.rung and entry.verdict != "SAME"]
    for candidates in (steps, own):
        best = max(candidates, key=lambda entry: gains[entry.rung], default=None)
        if best is not None and gains[best.rung] > LEAST_GAIN:
            return MeasuredStep(best.rung, gains[best.rung])
    return None
