"""What the screen knows, and how each event and key changes it. Pure: no Textual, no clock, no client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from gputop.ipc.protocol import Opened
from gputop.plan.choices import PlanView, RungView, ToggleView
from gputop.plan.types import PlanRequest, Verdict
from gputop.results.ladder import Ladder, LadderEntry
from gputop.results.records import Ceilings, Gate, PlanResult, Row, Window
from gputop.tui.options import Options

WorkerState = Literal["starting", "ready", "restarting", "gone"]
View = Literal["phases", "roofline", "ladder", "inspect", "whatif", "diff"]
VIEWS: tuple[View, ...] = ("phases", "roofline", "ladder", "inspect", "whatif", "diff")
"""In the order of their keys, 1 to 6."""
PinSource = Literal["rung", "flip", "user"]
SortKey = Literal["excess", "time", "floor", "site"]
SORTS: tuple[SortKey, ...] = ("excess", "time", "floor", "site")
"""In the order in which `s` goes through them."""


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
    batch: int | None
    """Sequences of one pass."""
    request: PlanRequest
    """What asks for it."""
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
    notice: str = ""
    """What a key could not do or has done, until the next change."""
    undo: PlanPair | None = None
    """The plans before a change that the worker has not yet confirmed."""
    pin_from: PinSource = "rung"
    """What pinned `pinned`: choosing a rung, flipping something, or the user."""
    last_view: PlanView | None = None
    """The plan resolved last: shown, dimmed, until the worker has resolved the next one."""
    view_name: View = "phases"
    site: str | None = None
    """The phase that the user selected, in every view."""
    sort: SortKey = "excess"
    ceilings: Ceilings | None = None
    """Measured peaks of the device, or of the recording's device; None until they are known."""
    recorded: tuple[Window, ...] = ()
    """Every window of the recording that is shown."""
    batches: Ladder | None = None
    """A recording's sweep over batches."""

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
    def shown_view(self) -> PlanView | None:
        """The current plan as resolved, or the plan before it while the worker resolves this one."""
        return self.view or self.last_view

    @property
    def current_word(self) -> str | None:
        return self.word(self.current)

    @property
    def pinned_word(self) -> str | None:
        return self.word(self.pinned)

    def word(self, request: PlanRequest | None) -> str | None:
        """How the worker spells a plan, or how it was asked for until the worker has said."""
        return None if request is None else str(self.shortest(request))

    def shortest(self, request: PlanRequest) -> PlanRequest:
        """The same plan in the fewest words, as far as the worker has said."""
        view = self.views.get(request)
        return view.request if view else request

    @property
    def tried(self) -> tuple[PlanRequest, ...]:
        """Every plan that was measured, pinned or chosen, each in the fewest words, but for bare rungs."""
        plans = (*(seen.request for seen in self.seen.values()), self.pinned, self.current)
        shortest = dict.fromkeys(self.shortest(plan) for plan in plans if plan is not None)
        return tuple(plan for plan in shortest if plan.sets or plan.uses)

    @property
    def pending(self) -> bool:
        """Whether the window on the screen is of another plan than the one chosen."""
        return self.lane is not None and self.lane.plan != self.current_word

    @property
    def pair(self) -> PlanPair | None:
        """What the next window should measure. A plan isn't paired with itself."""
        if self.current is None:
            return None
        return PlanPair(self.current, None if self.is_pinned else self.pinned)

    @property
    def is_pinned(self) -> bool:
        """Whether the current plan is the pinned one, however each was asked for."""
        if self.current is None or self.pinned is None:
            return False
        current, pinned = self.views.get(self.current), self.views.get(self.pinned)
        if current is None or pinned is None:
            return self.current == self.pinned
        return current.plan == pinned.plan

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
        toggles = self.shown_view.toggles if self.shown_view else ()
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
    pinned = state.pinned
    if pinned is None and opened.device.recording and state.opened is None:
        pinned = _before(opened.rungs, current)
    is_mended = state.worker in ("restarting", "gone")
    trouble = opened.note if state.opened is None else "" if is_mended else state.trouble
    # The loss stays readable after the new worker is there, which may take no longer than a drawing.
    notice = state.trouble.replace("; a new worker is starting", "") if is_mended else state.notice
    return replace(
        state,
        opened=opened,
        current=current,
        pinned=pinned,
        worker="ready",
        doing="",
        trouble=trouble,
        notice=notice,
    )


def _before(rungs: tuple[RungView, ...], request: PlanRequest) -> PlanRequest | None:
    """The plan that a rung is a change of, if it can run here; None for a plan with changes of its own."""
    by_id = {rung.id: rung for rung in rungs}
    rung = by_id.get(request.rung)
    before = by_id.get(rung.before or "") if rung else None
    if before is None or before.refused or request.uses:
        return None
    return PlanRequest(before.id, request.sets)


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
        seen[lane.plan] = PlanSummary(shot, lane.device_s, lane.gate, _batch_of(lane), request, paired)
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


def _batch_of(lane: PlanResult) -> int | None:
    return lane.rows[0].batch if lane.rows else None


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
    """Make a changed plan current. Pin the plan before the change, unless the user or a change pinned one."""
    keep = state.pinned is not None and state.pin_from != "rung"
    return _change(
        state, request, state.pinned if keep else state.current, state.pin_from if keep else "flip"
    )


def _change(state: State, request: PlanRequest, against: PlanRequest | None, pin_from: PinSource) -> State:
    """Make a plan current, paired with `against` unless that one's answer is wrong."""
    if state.current is None or request == state.current:
        return state
    before = state.undo or PlanPair(state.current, state.pinned)
    seen = state.seen.get(state.word(against) or "")
    pinned = None if seen is not None and not seen.gate.ok else against
    return replace(state, current=request, pinned=pinned, pin_from=pin_from, undo=before, trouble="")


def choose_rung(state: State, rung: str) -> State:
    """Make a rung current and compare it with the rung that it changes: what did this step buy?

    A batch that was asked for stays, since it is the question.
    """
    kept = tuple(item for item in state.current.sets if item[0] == "batch") if state.current else ()
    request = PlanRequest(rung, kept)
    if state.pinned is not None and state.pin_from == "user":
        return _change(state, request, state.pinned, "user")
    return _change(state, request, _before(state.rungs, request) or state.current, "rung")


def choose_plan(state: State, word: str) -> State:
    """Make a plan that was tried before current again, by its plan string."""
    found = next((plan for plan in state.tried if str(plan) == word), None)
    return state if found is None else change_plan(state, found)


def with_toggle(state: State, name: str, value: str) -> State:
    """The current plan with a toggle set."""
    asked = _asked(state)
    if asked is None:
        return state
    return change_plan(state, asked.with_set(name, value))


def _asked(state: State) -> PlanRequest | None:
    """The current plan in the fewest words, so that flipping there and back asks for the same plan."""
    return state.view.request if state.view else state.current


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
    pinned = None if state.is_pinned else state.current
    return replace(state, pinned=pinned, pin_from="user")


def stop_or_go(state: State) -> State:
    return replace(state, measuring=not state.measuring)


def freeze_or_thaw(state: State) -> State:
    """Holds the window on the screen, or lets go of it. Nothing to hold before the first window."""
    return replace(state, frozen=None if state.frozen else state.latest)


def show_view(state: State, view: View) -> State:
    """Another view of the same selection."""
    return replace(state, view_name=view)


def select_site(state: State, site: str | None) -> State:
    """Select a phase in every view."""
    return replace(state, site=site)


def next_sort(state: State) -> State:
    """Sort the phases by the next key."""
    return replace(state, sort=SORTS[(SORTS.index(state.sort) + 1) % len(SORTS)])


def ceilings_ready(state: State, ceilings: Ceilings) -> State:
    return replace(state, ceilings=ceilings)


def recording_ready(
    state: State, windows: tuple[Window, ...], ceilings: Ceilings, batches: Ladder | None
) -> State:
    """The whole recording that is shown."""
    return replace(state, recorded=windows, ceilings=ceilings, batches=batches)


def export_rows(shot: TimedWindow, gate: Gate) -> tuple[Row, ...]:
    """The current plan's rows of a window, with both gates' outcome."""
    lane = shot.window.lane("current")
    rows = lane.rows if lane else ()
    return tuple(replace(row, gate=gate.status, gate_error=gate.pass_error) for row in rows)
