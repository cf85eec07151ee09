"""The thread that owns the client: it measures what the screen wishes for, one window after another.

The screen never waits for it. A new wish ends the window under way; everything it learns crosses
over as one frozen message.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from textual.message import Message

from gputop.ipc.answers import PlanImpossible
from gputop.ipc.conversation import Conversation
from gputop.ipc.protocol import Opened, Planned
from gputop.plan.choices import PlanView
from gputop.plan.types import PlanRequest
from gputop.results.whatif import WhatIfAsked
from gputop.tui import forecast
from gputop.tui.messages import (
    CannotOpen,
    CeilingsReady,
    CheckFailed,
    ChoicesFailed,
    ChoicesReady,
    DeviceReady,
    ForecastsReady,
    GateChecked,
    KernelChecked,
    KernelLost,
    KernelsBuilt,
    KernelsNotWatched,
    LadderReady,
    NotReopened,
    PlanReady,
    PlanRefused,
    RecordingReady,
    Reopened,
    Said,
    WhatIfReady,
    WindowFailed,
    WindowReady,
    WorkerDied,
)
from gputop.tui.options import Options
from gputop.tui.state import PlanPair, State, WhatIfAnswer
from gputop.tui.state_events import device_ready
from gputop.util.errors import GputopError, WorkerLost

Answer = TypeVar("Answer")

LOSSES_IN_A_ROW = 3
"""A worker that dies this often without one window between is not started again by itself."""
FIRST_LOOK_S = 0.5
"""The first window takes a sample or two, so that something stands on the screen soon."""
FIRST_VERDICT_S = 1.0
"""The first window that pairs a saved kernel with the one before; those after it join its verdict."""
FAREWELL_S = 1.0
"""How long quitting waits for the call under way before the worker is killed."""


@dataclass(frozen=True, slots=True)
class MeasureRequest:
    """What the screen would like to see measured."""

    pair: PlanPair | None = None
    measuring: bool = True


@dataclass(frozen=True, slots=True)
class SavedKernels:
    """Files of the user's own kernels that were saved, and what they are to be tried in."""

    request: PlanRequest
    site: str | None
    changed: frozenset[str]


class Sampler(threading.Thread):
    """Owns one client from its start to its end."""

    def __init__(self, client: Conversation, options: Options, post: Callable[[Message], object]) -> None:
        """`post` must be safe to call from another thread, as Textual's post_message is."""
        super().__init__(name="sampler", daemon=True)
        self._client = client
        self._options = options
        self._post = post
        self._changed = threading.Condition()
        self._wish = MeasureRequest()
        self._resolved: set[PlanRequest] = set()
        self._checks: deque[PlanRequest] = deque()
        self._asked_site: tuple[PlanRequest, str] | None = None
        """The plan and its site whose kernels are to be listed."""
        self._what_if: WhatIfAsked | None = None
        """The change that the model is to be asked about."""
        self._rebuild: SavedKernels | None = None
        """The user's own kernels that are to be compiled and tried."""
        self._new_trial: PlanRequest | None = None
        """The plan with a saved kernel that no window has measured yet."""
        self._next_options: Options | None = None
        """What to open in place of what is open."""
        self._settled: PlanPair | None = None
        """A pair that needs no further window: it is refused, recorded, fails its gate, or can't be run."""
        self._under_way: PlanPair | None = None
        self._losses = 0
        self._lost = False
        self._shown = False
        """Whether a window has come back yet."""
        self._drawn = False
        """Whether a window stands on the screen."""
        self._ladder_asked = True
        """Whether there is nothing to ask: only a recording's ladder is there for the asking."""
        self._forecasts = False
        """Whether flips are forecast: in a recording only."""
        self._forecast_asked: set[PlanRequest] = set()
        self._ceilings_asked = False
        """Whether the ceilings were asked for: a recording brings its own."""
        self._finished = False
        self._waiting = False

    @property
    def is_idle(self) -> bool:
        """Whether it waits for another wish."""
        return self._waiting

    # Called from the screen's thread

    def want(self, wish: MeasureRequest) -> None:
        """Measure this from here on; a window of anything else ends early."""
        with self._changed:
            if wish == self._wish:
                return
            self._wish = wish
            self._settled = None
            if wish.measuring and self._lost:
                self._losses = 0
            cut = self._under_way is not None and (not wish.measuring or self._under_way != wish.pair)
            self._changed.notify()
        if cut:
            self._client.stop()

    def window_drawn(self) -> None:
        """Go on with what may be asked for once the first window stands on the screen."""
        with self._changed:
            self._drawn = True
            self._changed.notify()

    def check(self, request: PlanRequest) -> None:
        """Run both gates of a plan, before its next window."""
        with self._cutting():
            self._checks.append(request)

    def list_choices(self, request: PlanRequest, site: str) -> None:
        """List the kernels of one site of a plan, before its next window."""
        with self._cutting():
            self._asked_site = request, site

    def what_if(self, asked: WhatIfAsked) -> None:
        """Ask the model about a change of a recorded plan; only the last that was asked is answered."""
        with self._changed:
            self._what_if = asked
            self._changed.notify()

    def rebuild(self, saved: SavedKernels) -> None:
        """Compile what was saved, and check one of it, before the next window."""
        with self._cutting():
            waiting = self._rebuild.changed if self._rebuild else frozenset()
            self._rebuild = replace(saved, changed=saved.changed | waiting)

    def reopen(self, options: Options) -> None:
        """Open something else; where that can't be had, go on with what is open."""
        with self._cutting():
            self._next_options = options
            if self._lost:
                self._losses = 0

    @contextmanager
    def _cutting(self) -> Iterator[None]:
        """Change what is asked for; a window under way ends early."""
        with self._changed:
            yield
            cut = self._under_way is not None
            self._changed.notify()
        if cut:
            self._client.stop()

    def finish(self) -> None:
        """End the thread and the worker; returns when both are gone."""
        with self._changed:
            self._finished = True
            self._changed.notify()
        self._client.stop()
        self.join(FAREWELL_S)
        while self.is_alive():
            # Again, if a restart begins a new worker just then.
            self._client.kill()
            self.join(FAREWELL_S)

    # The thread

    def run(self) -> None:
        try:
            if self._open():
                while (job := self._next_job()) is not None:
                    self._guarded(job)
        finally:
            self._client.close()

    def _open(self) -> bool:
        """Open the device and the named plan; return whether there is something to show."""
        view = None
        try:
            self._client.start()
            opened = self._open_with(self._options)
            # What the screen is going to wish for; it may still be busy putting itself together.
            pair = device_ready(State(), opened, self._options).pair
            if pair is not None and self._options.names_plan:
                view = self._client.resolve(pair.current)
        except GputopError as error:
            if not self._finished:
                self._post(CannotOpen(str(error), error.exit_code))
            return False
        with self._changed:
            self._wish = MeasureRequest(pair)
            self._ladder_asked = not opened.device.recording
            self._forecasts = bool(opened.device.recording)
        self._post(DeviceReady(opened))
        self._read_recording()
        if pair is not None and view is not None:
            self._know(pair.current, view)
        return True

    def _open_with(self, options: Options) -> Opened:
        self._say(f"opening {options.backend}")
        return self._client.open(
            options.backend,
            options.workload,
            device=options.device,
            kernels_dir=options.kernels_dir,
            on_progress=self._say,
        )

    def _reopen(self, options: Options) -> None:
        self._next_options = None
        opened = self._answer_or(NotReopened, lambda: self._open_with(options))
        if opened is None:
            return
        with self._changed:
            self._options = options
            self._drawn = False
            self._wish, self._settled = MeasureRequest(), None
            self._ladder_asked = not opened.device.recording
            self._forecasts = bool(opened.device.recording)
        self._forecast_asked.clear()
        self._resolved.clear()
        self._checks.clear()
        self._ceilings_asked = False
        self._asked_site = self._what_if = None
        self._post(Reopened(options, opened))
        self._read_recording()

    def _read_recording(self) -> None:
        """Post all that a recording holds: it is asked for one window at a time, the views want all."""
        if self._client.recording is not None:
            self._ceilings_asked = True
            self._post(RecordingReady(self._client.recording))

    def _next_job(self) -> Callable[[], None] | None:
        """Waits until there is something to do; None when the screen is closing."""
        with self._changed:
            while True:
                if self._finished:
                    return None
                if (job := self._job()) is not None:
                    return job
                self._waiting = True
                self._changed.wait()
                self._waiting = False

    def _job(self) -> Callable[[], None] | None:
        pair = self._wish.pair
        if self._lost:
            return self._restart if self._losses < LOSSES_IN_A_ROW else None
        if (options := self._next_options) is not None:
            return lambda: self._reopen(options)
        if (asked := self._asked_site) is not None:
            return lambda: self._list_choices(*asked)
        if (change := self._what_if) is not None:
            return lambda: self._ask_model(change)
        if (saved := self._rebuild) is not None:
            return lambda: self._try_kernels(saved)
        if self._checks:
            request = self._checks[0]
            return lambda: self._check(request)
        if pair is None:
            return None
        if pair == self._settled:
            return self._after_window(pair)
        if not self._wish.measuring:
            unknown = self._unknown(pair)
            return (lambda: self._resolve(pair, unknown[0])) if unknown else None
        if self._shown and not self._ceilings_asked:
            return self._calibrate
        return lambda: self._measure(pair)

    def _unknown(self, pair: PlanPair) -> list[PlanRequest]:
        """Return the plans of which the screen does not know yet what can be chosen on them."""
        return [plan for plan in (pair.current, pair.pinned) if plan and plan not in self._resolved]

    def _after_window(self, pair: PlanPair) -> Callable[[], None] | None:
        """What a recording is still to be asked for once the window is on the screen."""
        if not self._drawn:
            return None
        if not self._ladder_asked:
            return self._ladder
        if self._forecasts and pair.current not in self._forecast_asked:
            return lambda: self._forecast_flips(pair.current)
        return None

    def _guarded(self, job: Callable[[], None]) -> None:
        try:
            job()
        except WorkerLost as error:
            if self._finished:
                return
            self._losses += 1
            self._lost = True
            self._post(WorkerDied(str(error), retrying=self._losses < LOSSES_IN_A_ROW))

    def _restart(self) -> None:
        self._say("restarting the worker")
        try:
            opened = self._client.restart(on_progress=self._say)
        except WorkerLost:
            raise
        except GputopError as error:
            self._losses = LOSSES_IN_A_ROW
            self._post(WorkerDied(str(error), retrying=False))
            return
        self._lost = False
        if opened is not None:
            self._post(DeviceReady(opened))

    def _resolve(self, pair: PlanPair, request: PlanRequest) -> None:
        view = self._answer_or(partial(PlanRefused, request), lambda: self._client.resolve(request))
        if view is None:
            self._settle(pair)
        else:
            self._know(request, view)

    def _know(self, request: PlanRequest, view: PlanView) -> None:
        self._resolved.add(request)
        self._post(PlanReady(request, view))

    def _know_both(self, pair: PlanPair, planned: Planned) -> None:
        self._know(pair.current, planned.current)
        if pair.pinned is not None and planned.pinned is not None:
            self._know(pair.pinned, planned.pinned)

    def _measure(self, pair: PlanPair) -> None:
        with self._changed:
            if pair != self._wish.pair or not self._wish.measuring:
                return
            self._under_way = pair
        first_look = self._options.seconds is None and not self._shown
        new_trial = self._options.seconds is None and pair.current == self._new_trial
        longest = FIRST_VERDICT_S if new_trial else self._options.seconds
        seconds = FIRST_LOOK_S if first_look else longest
        try:
            window = self._client.measure(
                pair.current,
                pair.pinned,
                seconds=seconds,
                first_look=first_look,
                on_progress=self._say,
                on_planned=partial(self._know_both, pair) if self._unknown(pair) else None,
            )
        except WorkerLost:
            raise
        except PlanImpossible as error:
            self._settle(pair)
            self._post(PlanRefused(error.request, str(error)))
            return
        except GputopError as error:
            self._settle(pair)
            self._post(WindowFailed(pair, str(error)))
            return
        finally:
            with self._changed:
                self._under_way = None
        self._losses = 0
        self._shown = True
        self._new_trial = None
        if window.device.recording or any(not lane.gate.ok for lane in window.lanes):
            self._settle(pair)
        self._post(WindowReady(pair, window))

    def _ladder(self) -> None:
        self._ladder_asked = True
        # A recording that was cut short has none, and is shown without.
        ladder = self._answer_or(None, lambda: self._client.measure_ladder((), on_progress=self._say))
        if ladder is not None:
            self._post(LadderReady(ladder))

    def _forecast_flips(self, request: PlanRequest) -> None:
        self._forecast_asked.add(request)
        # Without a forecast the flips are refused as before.
        found = self._answer_or(None, lambda: forecast.ask(self._client, request))
        if found is not None:
            self._post(ForecastsReady(found))

    def _calibrate(self) -> None:
        """Ask for the ceilings once the first window is on the screen: rooflines and floors need them."""
        self._ceilings_asked = True
        ceilings = self._answer_or(
            lambda reason: Said(f"no ceilings: {reason}"),
            lambda: self._client.calibrate(on_progress=self._say),
        )
        if ceilings is not None:
            self._post(CeilingsReady(ceilings))

    def _check(self, request: PlanRequest) -> None:
        self._checks.popleft()
        try:
            gate = self._client.check(request, on_progress=self._say)
        except GputopError as error:
            self._post(CheckFailed(request, str(error)))
            if isinstance(error, WorkerLost):
                raise
            return
        self._post(GateChecked(request, gate))

    def _list_choices(self, request: PlanRequest, site: str) -> None:
        self._asked_site = None
        choices = self._answer_or(ChoicesFailed, lambda: self._client.choices(request, site))
        if choices is not None:
            self._post(ChoicesReady(request, choices))

    def _ask_model(self, asked: WhatIfAsked) -> None:
        with self._changed:
            if self._what_if == asked:
                self._what_if = None
        found = self._answer_or(
            lambda why: WhatIfReady(WhatIfAnswer(asked, None, why)), lambda: self._client.what_if(asked)
        )
        if found is not None:
            self._post(WhatIfReady(WhatIfAnswer(asked, found)))

    def _try_kernels(self, saved: SavedKernels) -> None:
        """Compile what was saved, and check the first of it that can be tried before it is measured."""
        with self._changed:
            self._rebuild = None
            # The same names may mean other plans now.
            self._settled = None
            self._resolved.clear()
        reports = self._answer_or(
            KernelsNotWatched,
            lambda: self._client.rebuild(
                saved.request, saved.site, sorted(saved.changed), on_progress=self._say
            ),
        )
        if reports is None:
            return
        self._post(KernelsBuilt(reports))
        report = next((report for report in reports if report.trial), None)
        if report is None or report.trial is None or not saved.changed:
            return
        try:
            gate = self._client.check(report.trial, on_progress=self._say)
        except GputopError as error:
            self._post(KernelLost(report, str(error)))
            if isinstance(error, WorkerLost):
                raise
            return
        self._new_trial = report.trial
        self._post(KernelChecked(report, gate))

    def _answer_or(
        self, refused: Callable[[str], Message] | None, ask: Callable[[], Answer]
    ) -> Answer | None:
        """Return what `ask` does. If it is refused, post `refused` of the reason, if any, and return None."""
        try:
            return ask()
        except WorkerLost:
            raise
        except GputopError as error:
            if refused is not None:
                self._post(refused(str(error)))
            return None

    def _settle(self, pair: PlanPair) -> None:
        with self._changed:
            if pair == self._wish.pair:
                self._settled = pair

    def _say(self, text: str) -> None:
        if not self._finished:
            self._post(Said(text))
