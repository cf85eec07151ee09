"""What the screen knows of the user's own kernel since it was last saved. Pure, as `state` is."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from gputop.plan.types import PlanRequest
from gputop.results.kernel_report import KernelReport
from gputop.results.records import Gate
from gputop.tui.state import State
from gputop.tui.state_keys import change_pair


@dataclass(frozen=True, slots=True)
class OwnKernel:
    """The kernel that was saved last, and how far its trial has come."""

    report: KernelReport
    others: tuple[KernelReport, ...] = ()
    """Saved with it, and compiled only."""
    gate: Gate | None = None
    """None: not checked so far."""
    lost: str = ""
    """Why its check could not be ended: it faulted, or never ended."""


def kernels_built(state: State, reports: tuple[KernelReport, ...]) -> State:
    """Show the first that can be tried, else the first that can't; a plan with one that can't be is left."""
    if not reports:
        return state
    first = next((report for report in reports if report.trial), reports[0])
    others = tuple(report for report in reports if report is not first)
    state = replace(state, own=OwnKernel(first, others), doing="")
    for report in reports:
        state = _forgotten(state, report.kernel)
    return state if first.trial else _without(state, first.kernel)


def kernel_checked(state: State, report: KernelReport, gate: Gate) -> State:
    """Pair a right answer with the kernel that it would replace; leave a wrong one."""
    own = state.own
    if own is None or own.report != report:
        return state
    state = replace(state, own=replace(own, gate=gate), doing="")
    if not gate.ok or report.trial is None:
        return _without(state, report.kernel)
    return replace(change_pair(state, report.trial, report.base), site=report.site)


def kernel_lost(state: State, report: KernelReport, why: str) -> State:
    """Leave a kernel whose check could not be ended."""
    own = state.own
    if own is None or own.report != report:
        return state
    return _without(replace(state, own=replace(own, lost=why), doing=""), report.kernel)


def _forgotten(state: State, kernel: str) -> State:
    """Without what was measured of a kernel's plans: its name stands for other code now."""

    def runs_it(*plans: str) -> bool:
        return any(re.search(rf":{re.escape(kernel)}(/\d+)?(,|$)", plan) for plan in plans)

    return replace(
        state,
        seen={plan: summary for plan, summary in state.seen.items() if not runs_it(plan)},
        pairs={pair: windows for pair, windows in state.pairs.items() if not runs_it(*pair)},
        pooled={pair: together for pair, together in state.pooled.items() if not runs_it(*pair)},
    )


def _without(state: State, kernel: str) -> State:
    """Back to the plan that a kernel was paired with, if the current one runs it."""
    runs_it = state.current is not None and any(use.kernel == kernel for _, use in state.current.uses)
    if not runs_it or state.current is None:
        return state
    base = state.pinned or PlanRequest(state.current.rung, state.current.sets)
    return change_pair(state, base, None)
