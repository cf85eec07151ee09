"""What the screen knows, and how each event and key changes it. Pure: no Textual, no clock, no client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from gputop.ipc.protocol import Opened
from gputop.plan.choices import PlanView, RungView, ToggleView
from gputop.plan.plan_string import format_word, parse_word
from gputop.plan.types import PlanRequest, Verdict
from gputop.results.ladder import Ladder, LadderEntry
from gputop.results.records import TOTAL_ROWS, Gate, PlanResult, Row, Window
from gputop.tui.options import Options

WorkerState = Literal["starting", "ready", "restarting", "gone"]


@dataclass(frozen=True, slots=True)
class PlanPair:
    """The plans of one window, as asked for."""

    current: PlanRequest
    pinned: PlanRequest | None = None


@dataclass(frozen=True, slots=True)
class TimedWindow:
    """A window with what was asked for and when it arrived."""

    pair: PlanPair
    window: Window
    at_s: float
    """On the screen's monotonic clock."""


@dataclass(frozen=True, slots=True)
class PairedRatio:
    """How a plan compared with a pinned one, in the window where both ran."""

    ratio: float
    """Time of the pinned plan / time of this one: above 1, this one is faster."""
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """What the last window with a plan in it said of that plan."""

    shot: TimedWindow
    device_s: float | None
    gate: Gate
    strip: tuple[tuple[str, float], ...]
    """Term that binds -> its share of the phases' time, in pass order."""
    paired: Mapping[str, PairedRatio] = field(default_factory=dict)
    """Pinned plan's word -> the comparison."""


@dataclass(frozen=True, slots=True)
class State:
    opened: Opened | None = None
    current: PlanRequest | None = None
    pinned: PlanRequest | None = None
    views: Mapping[PlanRequest, PlanView] = field(default_factory=dict)
    latest: TimedWindow | None = None
    frozen: TimedWindow | None = None
    """The window held on the screen while measuring goes on."""
    seen: Mapping[str, PlanSummary] = field(default_factory=dict)
    """By the plan's word."""
    ladder: Mapping[str, LadderEntry] = field(default_factory=dict)
    """Of a recording: its rungs by word, all measured in one window."""
    measuring: bool = True
    worker: WorkerState = "starting"
    doing: str = ""
    trouble: str = ""
    """The last thing that went wrong, kept until it is mended or put away."""
    undo: PlanPair | None = None
    """The plans before a change that the worker has not yet confirmed."""

    @property
    def shot(self) -> TimedWindow | None:
        """The window on the screen."""
        return self.frozen or self.latest

    @property
    def window(self) -> Window | None:
        return self.shot.window if self.shot else None

    @property
    def lane(self) -> PlanResult | None:
        """The current plan's share of the window on the screen."""
        return self.window.lane("current") if self.window else None

    @property
    def view(self) -> PlanView | None:
        """The current plan, resolved."""
        return self.views.get(self.current) if self.current else None

    @property
    def current_word(self) -> str | None:
        return self.word(self.current)

    @property
    def pinned_word(self) -> str | None:
        return self.word(self.pinned)

    def word(self, request: PlanRequest | None) -> str | None:
        """How the worker spells a plan, or how it was asked for until the worker has said."""
        if request is None:
            return None
        view = self.views.get(request)
        return view.word if view else format_word(request)

    @property
    def pending(self) -> bool:
        """Whether the window on the screen is of another plan than the one chosen."""
        return self.lane is not None and self.lane.plan != self.current_word

    @property
    def pair(self) -> PlanPair | None:
        """What the next window should measure. A plan isn't paired with itself."""
        if self.current is None:
            return None
        alone = self.pinned_word == self.current_word
        return PlanPair(self.current, None if alone else self.pinned)

    @property
    def rungs(self) -> tuple[RungView, ...]:
        return self.opened.rungs if self.opened else ()

    @property
    def replaying(self) -> bool:
        """Whether a recording is shown: windows are looked up in it, and nothing is measured."""
        return self.opened is not None and bool(self.opened.device.recording)

    @property
    def nothing_to_stop(self) -> bool:
        """Whether stopping would stop nothing."""
        return self.replaying and self.measuring

    def rung(self, rung_id: str) -> RungView | None:
        return next((rung for rung in self.rungs if rung.id == rung_id), None)

    def toggle(self, name: str) -> ToggleView | None:
        toggles = self.view.toggles if self.view else ()
        return next((toggle for toggle in toggles if toggle.name == name), None)


# Events


def device_ready(state: State, opened: Opened, options: Options) -> State:
    """The device is open: what was passed over for it is said once, a worker that died is replaced.

    `options` name the plan to begin with, its rung perhaps left to the backend.
    """
    current = state.current or options.request
    if current is None:
        current = PlanRequest("", () if options.batch is None else (("batch", str(options.batch)),))
    current = replace(current, rung=current.rung or opened.default_rung)
    is_mended = state.worker in ("restarting", "gone")
    trouble = opened.note if state.opened is None else "" if is_mended else state.trouble
    return replace(state, opened=opened, current=current, worker="ready", doing="", trouble=trouble)


def plan_ready(state: State, request: PlanRequest, view: PlanView) -> State:
    state = replace(state, views={**state.views, request: view})
    return replace(state, undo=None) if request == state.current else state


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
        seen[lane.plan] = PlanSummary(shot, lane.device_s, lane.gate, strip_of(lane), paired)
    return replace(state, latest=shot, seen=seen, worker="ready", doing="")


def ladder_ready(state: State, ladder: Ladder) -> State:
    return replace(state, ladder={entry.rung: entry for entry in ladder.entries}, doing="")


def ladder_ratio(state: State, word: str) -> float | None:
    """The pinned plan's time / this one's, of one sequence, where the recorded ladder has both."""
    entry, pinned = state.ladder.get(word), state.ladder.get(state.pinned_word or "")
    if entry is None or pinned is None or not entry.ratio_first or not pinned.ratio_first:
        return None
    return entry.ratio_first / pinned.ratio_first


def _paired(window: Window) -> PairedRatio | None:
    delta = window.comparison.get("device") if window.comparison else None
    if delta is None or delta.ratio is None:
        return None
    return PairedRatio(delta.ratio, delta.verdict)


def strip_of(lane: PlanResult) -> tuple[tuple[str, float], ...]:
    """Which term binds for which share of the phases' time; neighbours with one term are joined.

    Empty where that was not asked: before there are ceilings.
    """
    timed = [row for row in lane.rows if row.phase not in TOTAL_ROWS and row.time_s]
    if not any(row.binds for row in timed):
        return ()
    total_s = sum(row.time_s or 0.0 for row in timed)
    strip: list[tuple[str, float]] = []
    for row in timed:
        term, share = row.binds or "unknown", (row.time_s or 0.0) / total_s
        if strip and strip[-1][0] == term:
            strip[-1] = (term, strip[-1][1] + share)
        else:
            strip.append((term, share))
    return tuple(strip)


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


# Keys


def change_plan(state: State, request: PlanRequest) -> State:
    """Another current plan. The one before is pinned, so that the next window pairs the two.

    Not where another is pinned already, nor where its answer is wrong: nothing can be paired with that.
    """
    if state.current is None or request == state.current:
        return state
    before = state.undo or PlanPair(state.current, state.pinned)
    seen = state.seen.get(state.current_word or "")
    worth_pinning = seen is None or seen.gate.ok
    pinned = state.pinned or (state.current if worth_pinning else None)
    return replace(state, current=request, pinned=pinned, undo=before, trouble="")


def choose_rung(state: State, rung: str) -> State:
    """A rung as it stands on the ladder; a batch that was asked for stays, since it is the question."""
    kept = tuple(item for item in state.current.sets if item[0] == "batch") if state.current else ()
    return change_plan(state, PlanRequest(rung, kept))


def with_toggle(state: State, name: str, value: str) -> State:
    """The current plan with a toggle set."""
    asked = _asked(state)
    if asked is None:
        return state
    kept = tuple(item for item in asked.sets if item[0] != name)
    return change_plan(state, replace(asked, sets=(*kept, (name, value))))


def with_kernel(state: State, site: str, kernel: str) -> State:
    """The current plan with another kernel at a site."""
    asked = _asked(state)
    if asked is None:
        return state
    kept = tuple(item for item in asked.uses if item[0] != site)
    return change_plan(state, replace(asked, uses=(*kept, (site, kernel))))


def _asked(state: State) -> PlanRequest | None:
    """The current plan in the fewest words, so that flipping there and back asks for the same plan."""
    return parse_word(state.view.word) if state.view else state.current


def next_value(toggle: ToggleView) -> str | None:
    """The value that a flip gives, or None when every other value is refused."""
    refused = dict(toggle.refused)
    if toggle.value not in toggle.values:
        return next((value for value in toggle.values if value not in refused), None)
    at = toggle.values.index(toggle.value)
    others = toggle.values[at + 1 :] + toggle.values[:at]
    return next((value for value in others if value not in refused), None)


def pin_or_unpin(state: State) -> State:
    """Pins the current plan; where it is the pinned one, unpins it."""
    if state.current is None:
        return state
    is_pinned = state.pinned is not None and state.pinned_word == state.current_word
    return replace(state, pinned=None if is_pinned else state.current)


def stop_or_go(state: State) -> State:
    return replace(state, measuring=not state.measuring)


def freeze_or_thaw(state: State) -> State:
    """Holds the window on the screen, or lets go of it. Nothing to hold before the first window."""
    return replace(state, frozen=None if state.frozen else state.latest)


def export_rows(shot: TimedWindow, gate: Gate) -> tuple[Row, ...]:
    """The current plan's rows of a window, with both gates' outcome."""
    lane = shot.window.lane("current")
    rows = lane.rows if lane else ()
    return tuple(replace(row, gate=gate.status, gate_error=gate.pass_error) for row in rows)
