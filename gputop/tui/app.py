"""The terminal application: holds the state, hands wishes to the sampler, and answers every key."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from types import FrameType
from typing import Any, ClassVar

from rich.text import Text
from textual.app import App, SystemCommand
from textual.binding import BindingType
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.filter import LineFilter
from textual.screen import Screen
from textual.timer import Timer

from gputop.plan.choices import Candidate
from gputop.results.export import open_target, phase_csv
from gputop.results.records import Row
from gputop.tui import facts
from gputop.tui import state as states
from gputop.tui.actions import ACTIONS, bindings_of
from gputop.tui.find import Found, findable
from gputop.tui.measure_thread import Measurer, MeasureRequest, Sampler
from gputop.tui.messages import (
    CannotOpen,
    CeilingsReady,
    CheckFailed,
    ChoicesFailed,
    ChoicesReady,
    DeviceReady,
    GateChecked,
    LadderReady,
    NotReopened,
    PlanReady,
    PlanRefused,
    RecordingReady,
    Reopened,
    Said,
    WindowFailed,
    WindowReady,
    WorkerDied,
)
from gputop.tui.options import Options
from gputop.tui.palette import THEME
from gputop.tui.printable_filter import PRINTABLE
from gputop.tui.screens.ask import AskScreen
from gputop.tui.screens.help import HelpScreen
from gputop.tui.screens.kernels import KernelsScreen
from gputop.tui.screens.main import MainScreen
from gputop.tui.state import State, TimedWindow, View
from gputop.tui.terminal_driver import TerminalDriver, TerminalGone
from gputop.tui.views.roofline import RooflineView
from gputop.tui.widgets.ladder_strip import neighbour
from gputop.tui.widgets.ladder_table import CHANGED
from gputop.tui.widgets.phase_table import SORT_OF_COLUMN
from gputop.tui.widgets.toggle_table import flippable
from gputop.tui.widgets.view_tabs import ViewTabs
from gputop.util import signals
from gputop.util.errors import UsageError
from gputop.util.output_file import STDOUT
from gputop.util.printable import printable_lines

UPDATE_S = 0.5
"""Least time between two drawings of what the worker sends."""
RECORDING = "h200"
"""The shipped recording that one key opens."""
COMPOSING_S = 0.05
"""How often a screen that is put together is looked at by what is to end it."""
AGE_S = 1.0
"""How often ages and the log are brought up to date."""
STDIN = 0


class GputopApp(App[int]):
    """One worker, one state, one main screen."""

    TITLE = "gputop"
    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(None)

    def __init__(
        self,
        options: Options,
        client: Measurer,
        *,
        clock: Callable[[], float] = time.monotonic,
        update_s: float = UPDATE_S,
    ) -> None:
        """`clock` is for ages on the screen, in seconds from any origin."""
        super().__init__()
        self.state = State()
        self.options = options
        self._started_with = options
        self._client = client
        self._clock = clock
        self._update_s = update_s
        self._sampler = Sampler(client, options, self.post_message)
        self._drawn_s = -update_s
        self._due: Timer | None = None
        self._wished: MeasureRequest | None = None
        """What the sampler was last told."""
        self._export: tuple[TimedWindow, str] | None = None
        """The window to be written and the file's name, while the gates are run."""
        self._opening_kernels = False
        """Whether a site's kernels were asked for, and their dialog is still to open."""
        self._kernel_looked_for: str | None = None
        self._main = MainScreen()
        self._has_terminal = os.isatty(STDIN)

    def on_load(self) -> None:
        loop = asyncio.get_running_loop()
        for number in signals.handled_signals():
            # The loop leaves as `q` does: an exception out of its midst would leave the terminal as it is.
            loop.add_signal_handler(number, self._end, signals.exit_code(number))
            # And if the loop is blocked, it ends all the same. The loop hears of the signal as before.
            signal.signal(number, _limit_the_end)
        # Before the screen is put together: measuring need not wait for that.
        self._sampler.start()

    def on_mount(self) -> None:
        self.register_theme(THEME)
        self.theme = THEME.name
        self.push_screen(self._main)
        self.set_interval(AGE_S, self._tick)

    def get_driver_class(self) -> type[Driver]:
        """Return our own driver where Textual would take its own for a terminal."""
        chosen = super().get_driver_class()
        return TerminalDriver if chosen is LinuxDriver else chosen

    def exit(self, *arguments: Any, **options: Any) -> None:
        """Leave; what holds that up for longer than `signals.PATIENCE_S` is not waited for."""
        signals.end_within(signals.PATIENCE_S, options.get("return_code", 0))
        super().exit(*arguments, **options)

    def _end(self, code: int, reason: str | None = None) -> None:
        """Exit once the screen is mounted: Textual fails if it exits during mount."""
        if self._main.stands:
            self.exit(code, return_code=code, message=reason and Text(printable_lines(reason)))
        else:
            asyncio.get_running_loop().call_later(COMPOSING_S, self._end, code, reason)

    def on_terminal_gone(self, _: TerminalGone) -> None:
        self._end(0)

    def on_unmount(self) -> None:
        self._sampler.finish()

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Every widget's lines pass through these: names and notes come from files and other programs."""
        return (*super().get_line_filters(), PRINTABLE)

    # Drawing

    @property
    def is_drawn(self) -> bool:
        """Whether the screen shows the newest state."""
        return self._due is None

    def apply(self, state: State) -> None:
        """Take a new state because of a key: ask for what it needs and draw it at once."""
        self._request(replace(state, notice=""))
        self._draw()

    def _set_state(self, state: State) -> None:
        """Take a new state because of an event: wish for it, and draw it at most twice a second."""
        self._request(state)
        wait_s = self._update_s - (time.monotonic() - self._drawn_s)
        if wait_s <= 0:
            self._draw()
        elif self._due is None:
            self._due = self.set_timer(wait_s, self._draw)

    def _request(self, state: State) -> None:
        """Send the measuring thread only changes: repeating an old request would end the window under way."""
        self.state = state
        wish = MeasureRequest(state.pair, state.measuring)
        if state.opened is not None and wish != self._wished:
            self._wished = wish
            self._sampler.want(wish)

    def _draw(self) -> None:
        if self._due is not None:
            self._due.stop()
            self._due = None
        self._drawn_s = time.monotonic()
        if self._main.stands:
            self._main.show(self.state, self._clock())

    def _tick(self) -> None:
        if self._has_terminal and not os.isatty(STDIN):
            # Closed, and no signal told of it (SIGHUP ignored, or no controlling terminal).
            self._end(0)
        if not self._main.stands:
            return
        self._main.show_age(self._clock())
        self._main.show_log(self._client.log.lines())

    def _show_error(self, reason: str) -> None:
        """Say what went wrong, in the line that stays until it is put away."""
        self._set_state(replace(self.state, trouble=reason))

    def _notice(self, text: str) -> None:
        """Say what a key did, or why it did nothing, until the next change."""
        self.state = replace(self.state, notice=text)
        self._draw()

    # What the sampler says

    def on_device_ready(self, message: DeviceReady) -> None:
        self._set_state(states.device_ready(self.state, message.opened, self.options))

    def on_cannot_open(self, message: CannotOpen) -> None:
        self._end(message.exit_code, message.reason)

    def on_reopened(self, message: Reopened) -> None:
        self._opening_kernels = False
        self.options = message.options
        self.state, self._wished = State(), None
        self._draw()
        self._set_state(states.device_ready(self.state, message.opened, self.options))

    def on_not_reopened(self, message: NotReopened) -> None:
        self._show_error(message.reason)

    def on_plan_ready(self, message: PlanReady) -> None:
        self._set_state(states.plan_ready(self.state, message.request, message.view))

    def on_plan_refused(self, message: PlanRefused) -> None:
        self._set_state(states.plan_refused(self.state, message.request))
        self._show_error(message.reason)

    def on_ladder_ready(self, message: LadderReady) -> None:
        self._set_state(states.ladder_ready(self.state, message.ladder))

    def on_recording_ready(self, message: RecordingReady) -> None:
        kept = message.recording
        self._set_state(states.recording_ready(self.state, kept.windows, kept.header.ceilings, kept.batches))

    def on_ceilings_ready(self, message: CeilingsReady) -> None:
        self._set_state(states.ceilings_ready(self.state, message.ceilings))

    def on_choices_ready(self, message: ChoicesReady) -> None:
        self._opening_kernels = False
        self._set_state(replace(self.state, doing=""))
        view = self.state.view
        if view is None or view.request != message.request or self.screen is not self._main:
            # Another plan was chosen meanwhile, or another dialog is open: this is no answer to that.
            return

        def use(chosen: Candidate | None) -> None:
            if chosen is not None and chosen.choice != message.choices.kernel:
                self.apply(states.change_plan(self.state, chosen.request))

        self.push_screen(KernelsScreen(message.choices, self._kernel_looked_for), use)

    def on_choices_failed(self, message: ChoicesFailed) -> None:
        self._opening_kernels = False
        self._set_state(replace(self.state, doing=""))
        self._show_error(message.reason)

    def on_window_ready(self, message: WindowReady) -> None:
        self._set_state(
            states.window_ready(self.state, TimedWindow(message.pair, message.window, self._clock()))
        )

    def on_window_failed(self, message: WindowFailed) -> None:
        self._set_state(states.window_failed(self.state))
        self._show_error(message.reason)

    def on_worker_died(self, message: WorkerDied) -> None:
        self._opening_kernels = False
        then = "a new worker is starting" if message.retrying else "space tries again, q leaves"
        self._set_state(states.worker_died(self.state, message.retrying))
        self._show_error(f"A window is lost; {then}. {message.reason}")

    def on_said(self, message: Said) -> None:
        self._set_state(replace(self.state, doing=message.text))

    def on_check_failed(self, message: CheckFailed) -> None:
        self._export = None
        self._set_state(replace(self.state, doing=""))
        self._show_error(f"Not exported: {message.reason}")

    def on_gate_checked(self, message: GateChecked) -> None:
        wanted, self._export = self._export, None
        self._set_state(replace(self.state, doing=""))
        if wanted is None:
            return
        shot, name = wanted
        if not message.gate.ok:
            self._show_error(f"Not exported, the gate failed: {message.gate.where}")
            return
        self._write(states.export_rows(shot, message.gate), name)

    def _write(self, rows: tuple[Row, ...], name: str) -> None:
        try:
            open_target(name).write(phase_csv(rows))
        except UsageError as error:
            self._show_error(f"Not exported: {error}")
            return
        self._notice(f"{len(rows)} rows written to {name}.")

    # What the user chooses

    def on_main_screen_chosen(self, message: MainScreen.Chosen) -> None:
        if self.screen is not self._main:
            # Pressed while a dialog was on its way: a second one on top of it would answer another question.
            return
        choose = {
            "ladder": self._choose_rung,
            "toggles": self._flip,
            "dispatch": self._open_kernels,
            "phases": self._inspect,
        }
        choose[message.pane](message.key)

    def on_main_screen_selected(self, message: MainScreen.Selected) -> None:
        if message.site != self.state.site:
            self.apply(states.select_site(self.state, message.site))

    def on_main_screen_sort_by(self, message: MainScreen.SortBy) -> None:
        self.apply(replace(self.state, sort=SORT_OF_COLUMN[message.column]))

    def on_view_tabs_picked(self, message: ViewTabs.Picked) -> None:
        self.apply(states.show_view(self.state, message.view))

    def on_roofline_view_picked(self, message: RooflineView.Picked) -> None:
        self.apply(states.select_site(self.state, message.site))

    def _inspect(self, site: str) -> None:
        self.apply(states.show_view(states.select_site(self.state, site), "inspect"))

    def _choose_rung(self, key: str) -> None:
        if key.startswith(CHANGED):
            self.apply(states.choose_plan(self.state, key.removeprefix(CHANGED)))
            return
        if key not in {rung.id for rung in self.state.rungs}:
            return
        rung = self.state.rung(key)
        if rung is not None and rung.refused:
            self._notice(f"{rung.id} can't run here: {rung.refused}")
            return
        self.apply(states.choose_rung(self.state, key))

    def _flip(self, name: str) -> None:
        toggle = self.state.toggle(name)
        if toggle is None:
            return
        if not toggle.values and flippable(toggle):
            self._ask_number(name, toggle.value)
            return
        value = states.next_value(toggle)
        if value is None:
            why = "; ".join(f"{refused}: {reason}" for refused, reason in toggle.refused)
            self._notice(f"{name} stays {toggle.value}. {why}")
            return
        self.apply(states.with_toggle(self.state, name, value))

    def _ask_number(self, name: str, value: str) -> None:
        def flip(answer: str | None) -> None:
            if answer is not None:
                self.apply(states.with_toggle(self.state, name, answer))

        def objection(answer: str) -> str:
            good = answer.isascii() and answer.isdigit() and int(answer) > 0
            return "" if good else "A whole number from 1 up is needed."

        self.push_screen(AskScreen(f"{name}: how many?", value, objection), flip)

    def _open_kernels(self, site_name: str, kernel: str | None = None) -> None:
        """Open the kernels of a site, with the cursor on one of them if it is named."""
        if self._opening_kernels:
            return
        view = self.state.view
        if view is None or site_name not in {site.site for site in view.sites}:
            self._notice(f"{site_name} is computed by one kernel with its neighbours.")
            return
        # What refuses a kernel is worked out for the site that is opened: for all at once it would take long.
        self._opening_kernels, self._kernel_looked_for = True, kernel
        self._sampler.list_choices(view.request, site_name)
        self._set_state(replace(self.state, doing=f"looking which kernels can serve {site_name}"))

    # Keys

    def action_stop_or_go(self) -> None:
        if self.state.nothing_to_stop:
            self._notice("There is nothing to stop: a recording is shown, and nothing is measured.")
            return
        self.apply(states.stop_or_go(self.state))

    def action_pin(self) -> None:
        self.apply(states.pin_or_unpin(self.state))

    def action_freeze(self) -> None:
        if self.state.latest is None:
            self._notice("There is no window to hold so far.")
            return
        self.apply(states.freeze_or_thaw(self.state))

    def action_recording(self) -> None:
        """The recording in the device's place, or the device again."""
        shown = self._recording_options(RECORDING)
        self._sampler.reopen(self._started_with if self.options == shown else shown)

    def _recording_options(self, name: str) -> Options:
        return replace(
            self._started_with, backend="replay", device=name, request=None, batch=None, kernels_dir=None
        )

    def action_put_away(self) -> None:
        """Go one step back: away with a message, then with a pane over the others, then to the phases."""
        if self.state.trouble:
            self.apply(replace(self.state, trouble=""))
        elif self.state.view_name != "phases":
            self.apply(states.show_view(self.state, "phases"))
        elif not self._main.give_back():
            self._main.go_to("phases")

    def action_view(self, view: View) -> None:
        self.apply(states.show_view(self.state, view))

    def action_sort(self) -> None:
        self.apply(states.next_sort(self.state))

    def action_apply(self) -> None:
        step = facts.measured_step(self.state)
        if step is None:
            self._notice("Nothing faster than this plan was measured: there is nothing to apply.")
            return
        self.apply(states.choose_rung(self.state, step.rung))

    def action_maximise(self) -> None:
        self._main.maximise()

    def action_neighbour(self, step: int) -> None:
        """Walk the rungs, or in the inspector the phases."""
        if self.state.view_name == "inspect":
            self.action_next_phase(step)
            return
        rung = neighbour(self.state, step)
        if rung is not None:
            self.apply(states.choose_rung(self.state, rung))

    def action_next_phase(self, step: int) -> None:
        names = [row.phase for row in facts.shown_phases(self.state)]
        row = facts.selected_row(self.state)
        if row is not None and row.phase in names:
            site = names[(names.index(row.phase) + step) % len(names)]
            self.apply(states.select_site(self.state, site))

    def action_kernels(self) -> None:
        row = facts.selected_row(self.state)
        if row is not None:
            self._open_kernels(row.phase)

    def action_go_ladder(self) -> None:
        self._go("ladder")

    def action_log(self) -> None:
        if self._main.open_or_close_log():
            self._main.show_log(self._client.log.lines())

    def action_go_toggles(self) -> None:
        self._go("toggles")

    def action_go_dispatch(self) -> None:
        self._go("dispatch")

    def _go(self, pane: str) -> None:
        if self.state.view_name != "phases":
            self.apply(states.show_view(self.state, "phases"))
        self._main.go_to(pane)

    def action_help_quit(self) -> None:
        """^C, which Textual answers with a key of its own."""
        self._notice("q leaves gputop; esc first where a dialog is open.")

    def action_help(self) -> None:
        focused = self._main.focused
        self.push_screen(HelpScreen(focused.id or "" if focused is not None else ""))

    def action_export(self) -> None:
        shot, lane = self.state.shot, self.state.lane
        if shot is None or lane is None or not lane.rows:
            self._notice("Nothing to export: no window with times is on the screen.")
            return

        def begin(name: str | None) -> None:
            if name is not None:
                self._export = (shot, name)
                self._sampler.check(shot.pair.current)
                self._set_state(replace(self.state, doing="checking every phase before the export"))

        question = f"Write the phase table of window {shot.window.number} ({lane.plan}) as CSV to:"
        self.push_screen(AskScreen(question, default_file(self.state), unwritable), begin)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        for action in ACTIONS:
            if action.view is not None or action.name == "command_palette" or action.idle(self.state):
                continue
            yield SystemCommand(action.label, action.doc, self._run(action.name))
        for found in findable(self.state):
            yield SystemCommand(found.title, found.doc, partial(self.call_later, self._go_to, found))

    def _go_to(self, found: Found) -> None:
        """Do what choosing a thing that was found means."""
        go: dict[str, Callable[[], None]] = {
            "rung": lambda: self._choose_rung(found.name),
            "plan": lambda: self.apply(states.choose_plan(self.state, found.name)),
            "phase": lambda: self._inspect(found.name),
            "kernel": lambda: self._open_kernels(found.value, found.name),
            "toggle": lambda: self.apply(states.with_toggle(self.state, found.name, found.value)),
            "recording": lambda: self._sampler.reopen(self._recording_options(found.name)),
            "column": lambda: self._notice(f"{found.name}: {found.doc}"),
            "word": lambda: self._notice(f"{found.name}: {found.doc}"),
        }
        go[found.kind]()

    def _run(self, name: str) -> Callable[[], object]:
        return lambda: self.call_later(self.run_action, name)


def _limit_the_end(number: int, frame: FrameType | None) -> None:
    signals.end_within(signals.PATIENCE_S, signals.exit_code(number))


def default_file(state: State) -> str:
    """`gputop-cpu-blas-20260102-030405.csv`."""
    rung = state.lane.rung if state.lane else "plan"
    return f"gputop-{rung}-{datetime.now(UTC):%Y%m%d-%H%M%S}.csv"


def unwritable(name: str) -> str:
    """Why a file can't be written, or nothing."""
    if name == STDOUT:
        return "The terminal is taken by this screen: name a file."
    try:
        open_target(name)
    except UsageError as error:
        return str(error)
    return ""
