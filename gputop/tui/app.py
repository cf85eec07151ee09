"""The terminal application: every key, and what the search leads to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual.app import SystemCommand
from textual.binding import BindingType
from textual.screen import Screen

from gputop.tui import facts, state_keys
from gputop.tui.actions import ACTIONS, bindings_of
from gputop.tui.find import Found, findable
from gputop.tui.options import Options
from gputop.tui.own_kernel_trials import OwnKernelTrials
from gputop.tui.screens.help import HelpScreen
from gputop.tui.state import View
from gputop.tui.steps import best_step
from gputop.tui.widgets.ladder_strip import neighbour

RECORDING = "h200"
"""The shipped recording that one key opens."""


class GputopApp(OwnKernelTrials):
    """Answers each action of `ACTIONS`."""

    BINDINGS: ClassVar[list[BindingType]] = bindings_of(None)

    def action_stop_or_go(self) -> None:
        if self.state.nothing_to_stop:
            self._notice("There is nothing to stop: a recording is shown, and nothing is measured.")
            return
        self.apply(state_keys.stop_or_go(self.state))

    def action_pin(self) -> None:
        self.apply(state_keys.pin_or_unpin(self.state))

    def action_freeze(self) -> None:
        if self.state.latest is None:
            self._notice("There is no window to hold so far.")
            return
        self.apply(state_keys.freeze_or_thaw(self.state))

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
            self.apply(state_keys.show_view(self.state, "phases"))
        elif not self._main.give_back():
            self._main.go_to("phases")

    def action_view(self, view: View) -> None:
        self.apply(state_keys.show_view(self.state, view))

    def action_sort(self) -> None:
        self.apply(state_keys.next_sort(self.state))

    def action_apply(self) -> None:
        step = best_step(self.state)
        if step is None:
            self._notice("Nothing faster than this plan was measured: there is nothing to apply.")
            return
        self.apply(state_keys.choose_plan(self.state, step.plan))

    def action_maximise(self) -> None:
        self._main.maximise()

    def action_neighbour(self, step: int) -> None:
        """Walk the rungs, or in the inspector the phases."""
        if self.state.view_name == "inspect":
            self.action_next_phase(step)
            return
        rung = neighbour(self.state, step)
        if rung is not None:
            self.apply(state_keys.choose_rung(self.state, rung))

    def action_next_phase(self, step: int) -> None:
        names = [row.phase for row in facts.shown_phases(self.state)]
        row = facts.selected_row(self.state)
        if row is not None and row.phase in names:
            site = names[(names.index(row.phase) + step) % len(names)]
            self.apply(state_keys.select_site(self.state, site))

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
            self.apply(state_keys.show_view(self.state, "phases"))
        self._main.go_to(pane)

    def action_help_quit(self) -> None:
        """^C, which Textual answers with a key of its own."""
        self._notice("q leaves gputop; esc first where a dialog is open.")

    def action_help(self) -> None:
        focused = self._main.focused
        self.push_screen(HelpScreen(focused.id or "" if focused is not None else ""))

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
            "plan": lambda: self.apply(state_keys.choose_plan(self.state, found.name)),
            "phase": lambda: self._inspect(found.name),
            "kernel": lambda: self._open_kernels(found.value, found.name),
            "toggle": lambda: self.apply(state_keys.with_toggle(self.state, found.name, found.value)),
            "recording": lambda: self._sampler.reopen(self._recording_options(found.name)),
            "column": lambda: self._notice(f"{found.name}: {found.doc}"),
            "word": lambda: self._notice(f"{found.name}: {found.doc}"),
        }
        go[found.kind]()

    def _run(self, name: str) -> Callable[[], object]:
        return lambda: self.call_later(self.run_action, name)
