"""What the screen knows, as one frozen record. Pure: no Textual, no clock, no client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from gputop.ipc.protocol import Opened
from gputop.plan.choices import PlanView, RungView, ToggleView
from gputop.plan.types import PlanRequest, Verdict
from gputop.results.flip_forecast import FlipForecasts
from gputop.results.ladder import Ladder, LadderEntry
from gputop.results.records import Ceilings, Comparison, Gate, PlanResult, Window
from gputop.results.whatif import WhatIf, WhatIfAsked

if TYPE_CHECKING:
    from gputop.tui.own_kernel import OwnKernel

WorkerState = Literal["starting", "ready", "restarting", "gone"]
View = Literal["phases", "roofline", "ladder", "inspect", "whatif", "diff"]
VIEWS: tuple[View, ...] = ("phases", "roofline", "ladder", "inspect", "whatif", "diff")
"""In the order of their keys, 1 to 6."""
PinSource = Literal["rung", "flip", "user"]
SORTS = ("bar", "time_s", "over", "over_reach", "binds", "delta_s", "phase")
"""Columns in the order in which `s` sorts by them; `bar` is the excess, `phase` the order of the pass."""


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
class WhatIfAnswer:
    """What the model said of a change of a recorded plan."""

    asked: WhatIfAsked
    found: WhatIf | None
    refused: str = ""
    """Why there is none."""


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
    pairs: Mapping[tuple[str, str], tuple[Comparison, ...]] = field(default_factory=dict)
    """The two plans -> what each live window with both said of them, the oldest first."""
    pooled: Mapping[tuple[str, str], Comparison] = field(default_factory=dict)
    """The same with the windows of a pair taken together."""
    ladder: Mapping[str, LadderEntry] = field(default_factory=dict)
    """Of a recording: its rungs by word, all measured in one window."""
    forecasts: Mapping[str, FlipForecasts] = field(default_factory=dict)
    """Of a recording: plan string -> what the model expects of its flips that were not recorded."""
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
    scale_s: float | None = None
    """About the largest time of the tables: units change only with it, not with every window."""
    source: str = ""
    """The name or file of the recording that is shown."""
    sort: str = "bar"
    """The column of the phases that sorts them."""
    sorted_backwards: bool = False
    ceilings: Ceilings | None = None
    """Measured peaks of the device, or of the recording's device; None until they are known."""
    recorded: tuple[Window, ...] = ()
    """Every window of the recording that is shown."""
    batches: Ladder | None = None
    """A recording's sweep over batches."""
    whatif: WhatIfAnswer | None = None
    """The model's last answer to the what-if view."""
    own: OwnKernel | None = None
    """The user's own kernel that was saved last."""

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
    def known_windows(self) -> tuple[Window, ...]:
        """Every window of the recording, and the last one of each plan that was measured."""
        return (*self.recorded, *(seen.shot.window for seen in self.seen.values()))

    @property
    def comparison(self) -> Comparison | None:
        """The two plans of the window on the screen, by all of their windows."""
        found = self.window.comparison if self.window else None
        return found and self.pooled.get((found.plan_a, found.plan_b), found)

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


def rung_before(rungs: tuple[RungView, ...], request: PlanRequest) -> PlanRequest | None:
    """Return the plan that a rung changes, if it can run here; None for a plan with other kernels."""
    by_id = {rung.id: rung for rung in rungs}
    rung = by_id.get(request.rung)
    before = by_id.get(rung.before or "") if rung else None
    if before is None or before.refused or request.uses:
        return None
    return PlanRequest(before.id, request.sets)
