"""What the measuring thread says, and what the screen makes of it."""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import Any

from gputop.plan.choices import Candidate
from gputop.tui import state_events, state_keys
from gputop.tui.app_base import AppBase
from gputop.tui.messages import (
    CannotOpen,
    CeilingsReady,
    ChoicesFailed,
    ChoicesReady,
    DeviceReady,
    ForecastsReady,
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
from gputop.tui.screens.kernels import KernelsScreen
from gputop.tui.state import State, TimedWindow


class WorkerEvents(AppBase):
    """One handler a message of `messages`; those of an export are with the export."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._opening_kernels = False
        """Whether a site's kernels were asked for, and their dialog is still to open."""
        self._kernel_looked_for: str | None = None

    def _fresh_state(self) -> State:
        """Return the state before anything is open, with how the user arranged the screen."""
        kept = self.state
        return State(view_name=kept.view_name, sort=kept.sort, sorted_backwards=kept.sorted_backwards)

    def on_device_ready(self, message: DeviceReady) -> None:
        self._set_state(state_events.device_ready(self.state, message.opened, self.options))

    def on_cannot_open(self, message: CannotOpen) -> None:
        self._end(message.exit_code, message.reason)

    def on_reopened(self, message: Reopened) -> None:
        self._opening_kernels = False
        self.options = message.options
        self.state, self._wished = self._fresh_state(), None
        self._draw()
        self._set_state(state_events.device_ready(self.state, message.opened, self.options))

    def on_not_reopened(self, message: NotReopened) -> None:
        self._show_error(message.reason)

    def on_plan_ready(self, message: PlanReady) -> None:
        self._set_state(state_events.plan_ready(self.state, message.request, message.view))

    def on_plan_refused(self, message: PlanRefused) -> None:
        self._set_state(state_events.plan_refused(self.state, message.request))
        self._show_error(message.reason)

    def on_ladder_ready(self, message: LadderReady) -> None:
        self._set_state(state_events.ladder_ready(self.state, message.ladder))

    def on_recording_ready(self, message: RecordingReady) -> None:
        kept = message.recording
        self._set_state(
            state_events.recording_ready(self.state, kept.windows, kept.header.ceilings, kept.batches)
        )
        # It stays while it is shown: to look through all of it for garbage would hold up a key for 0.1 s.
        gc.freeze()

    def on_forecasts_ready(self, message: ForecastsReady) -> None:
        self._set_state(state_events.forecasts_ready(self.state, message.forecasts))

    def on_what_if_ready(self, message: WhatIfReady) -> None:
        self._set_state(replace(self.state, whatif=message.answer))

    def on_ceilings_ready(self, message: CeilingsReady) -> None:
        self._set_state(state_events.ceilings_ready(self.state, message.ceilings))

    def on_choices_ready(self, message: ChoicesReady) -> None:
        self._opening_kernels = False
        self._set_state(replace(self.state, doing=""))
        view = self.state.view
        if view is None or view.request != message.request or self.screen is not self._main:
            # Another plan was chosen meanwhile, or another dialog is open: this is no answer to that.
            return

        def use(chosen: Candidate | None) -> None:
            if chosen is not None and chosen.choice != message.choices.kernel:
                self.apply(state_keys.change_plan(self.state, chosen.request))

        self.push_screen(KernelsScreen(message.choices, self._kernel_looked_for), use)

    def on_choices_failed(self, message: ChoicesFailed) -> None:
        self._opening_kernels = False
        self._set_state(replace(self.state, doing=""))
        self._show_error(message.reason)

    def on_window_ready(self, message: WindowReady) -> None:
        self._set_state(
            state_events.window_ready(self.state, TimedWindow(message.pair, message.window, self._clock()))
        )

    def on_window_failed(self, message: WindowFailed) -> None:
        self._set_state(state_events.window_failed(self.state))
        self._show_error(message.reason)

    def on_worker_died(self, message: WorkerDied) -> None:
        self._opening_kernels = False
        then = "a new worker is starting" if message.retrying else "space tries again, q leaves"
        self._set_state(state_events.worker_died(self.state, message.retrying))
        self._show_error(f"A window is lost; {then}. {message.reason}")

    def on_said(self, message: Said) -> None:
        self._set_state(replace(self.state, doing=message.text))
