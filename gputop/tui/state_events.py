"""How each thing that the measuring thread says changes the state. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from gputop.ipc.protocol import Opened
from gputop.plan.choices import PlanView
from gputop.plan.types import PlanRequest
from gputop.results.flip_forecast import FlipForecasts
from gputop.results.ladder import Ladder
from gputop.results.meta_analysis import pool
from gputop.results.records import Ceilings, Comparison, Window
from gputop.tui.options import Options
from gputop.tui.state import PairedRatio, PlanSummary, State, TimedWindow, rung_before

NEAR = 5.0
"""A largest time within this factor of the scale does not change it."""
MOST_POOLED = 64
"""Windows of one pair that are kept, the latest."""


def device_ready(state: State, opened: Opened, options: Options) -> State:
    """The device is open: what was passed over for it is said once, a worker that died is replaced.

    `options` name the plan to begin with, its rung perhaps left to the backend.
    """
    current = state.current or options.request
    if current is None:
        current = PlanRequest("", () if options.batch is None else (("batch", str(options.batch)),))
    current = replace(current, rung=current.rung or opened.default_rung)
    pinned = state.pinned
    if pinned is None and opened.device.recording and state.opened is None:
        pinned = rung_before(opened.rungs, current)
    is_mended = state.worker in ("restarting", "gone")
    trouble = opened.note if state.opened is None else "" if is_mended else state.trouble
    # The loss stays readable after the new worker is there, which may take no longer than a drawing.
    notice = state.trouble.replace("; a new worker is starting", "") if is_mended else state.notice
    return replace(
        state,
        opened=opened,
        source=Path(options.device or "").stem if opened.device.recording else "",
        current=current,
        pinned=pinned,
        worker="ready",
        doing="",
        trouble=trouble,
        notice=notice,
    )


def plan_ready(state: State, request: PlanRequest, view: PlanView) -> State:
    state = replace(state, views={**state.views, request: view})
    return replace(state, undo=None, last_view=view) if request == state.current else state


def plan_refused(state: State, request: PlanRequest) -> State:
    """Back to the plans before the change that can't be."""
    if request != state.current:
        return state
    before = state.undo
    if before is None:
        default = PlanRequest(state.opened.default_rung) if state.opened else None
        fallback = default if request != default else None
        return replace(state, current=fallback)
    return replace(state, current=before.current, pinned=before.pinned, undo=None)


def window_ready(state: State, shot: TimedWindow) -> State:
    seen = dict(state.seen)
    pinned = shot.window.lane("pinned")
    for lane in shot.window.lanes:
        before = seen.get(lane.plan)
        paired = dict(before.paired) if before else {}
        if pinned is not None and lane is not pinned:
            paired.pop(pinned.plan, None)
            if (comparison := _paired(shot.window)) is not None:
                paired[pinned.plan] = comparison
        asked = shot.pair.current if lane is not pinned else shot.pair.pinned
        request = state.shortest(asked or shot.pair.current)
        seen[lane.plan] = PlanSummary(shot, lane.device_s, lane.gate, lane.batch, request, paired)
    pairs, pooled = _with_comparison(state, shot.window)
    return replace(
        state,
        latest=shot,
        seen=seen,
        pairs=pairs,
        pooled=pooled,
        scale_s=_scale_s(state, shot.window),
        worker="ready",
        doing="",
    )


def _scale_s(state: State, window: Window) -> float | None:
    """Return the scale of the tables: the one before while the current plan's times are near it."""
    lane = window.lane("current")
    times = [lane.device_s, *(row.time_s for row in lane.rows)] if lane else []
    largest_s = max((time_s for time_s in times if time_s), default=None)
    if largest_s is None:
        return state.scale_s
    before_s = state.scale_s
    return before_s if before_s and before_s / NEAR <= largest_s <= before_s * NEAR else largest_s


Pairs = Mapping[tuple[str, str], tuple[Comparison, ...]]
Pooled = Mapping[tuple[str, str], Comparison]


def _with_comparison(state: State, window: Window) -> tuple[Pairs, Pooled]:
    """Return every pair with this window added. A recorded one may be shown again: it is no new evidence."""
    found = window.comparison
    if found is None or window.device.recording:
        return state.pairs, state.pooled
    key = found.plan_a, found.plan_b
    same = (*state.pairs.get(key, ()), found)[-MOST_POOLED:]
    # The worker pools with the windows of earlier processes too, and tells those of another state apart.
    together = window.pooled.comparison if window.pooled else pool(same)
    return {**state.pairs, key: same}, {**state.pooled, key: together}


def forecasts_ready(state: State, forecasts: FlipForecasts) -> State:
    return replace(state, forecasts={**state.forecasts, forecasts.plan: forecasts}, doing="")


def ladder_ready(state: State, ladder: Ladder) -> State:
    return replace(state, ladder={entry.rung: entry for entry in ladder.entries}, doing="")


def _paired(window: Window) -> PairedRatio | None:
    delta = window.comparison.get("device") if window.comparison else None
    if delta is None or delta.ratio is None:
        return None
    return PairedRatio(delta.ratio, delta.verdict)


def window_failed(state: State) -> State:
    """The plan stays chosen; nothing is measured until something is changed."""
    return replace(state, measuring=False, doing="")


def worker_died(state: State, retrying: bool) -> State:
    return replace(
        state,
        worker="restarting" if retrying else "gone",
        measuring=state.measuring and retrying,
        doing="",
    )


def ceilings_ready(state: State, ceilings: Ceilings) -> State:
    return replace(state, ceilings=ceilings)


def recording_ready(
    state: State, windows: tuple[Window, ...], ceilings: Ceilings, batches: Ladder | None
) -> State:
    """The whole recording that is shown."""
    return replace(state, recorded=windows, ceilings=ceilings, batches=batches)
