"""What a row, a point or a dialog chooses: a rung, a flip, a kernel, a phase."""

from __future__ import annotations

from dataclasses import replace

from gputop.tui import state_keys
from gputop.tui.forecast import sentence, toggle_forecast
from gputop.tui.screens.ask import AskScreen
from gputop.tui.screens.main import MainScreen
from gputop.tui.views.roofline import RooflineView
from gputop.tui.views.whatif import WhatIfView
from gputop.tui.widgets.ladder_table import CHANGED
from gputop.tui.widgets.toggle_table import flippable
from gputop.tui.widgets.view_tabs import ViewTabs
from gputop.tui.worker_events import WorkerEvents


class PlanChoices(WorkerEvents):
    """Changes the plan, or says why it stays."""

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
            self.apply(state_keys.select_site(self.state, message.site))

    def on_main_screen_sort_by(self, message: MainScreen.SortBy) -> None:
        self.apply(state_keys.sort_by(self.state, message.column))

    def on_view_tabs_picked(self, message: ViewTabs.Picked) -> None:
        self.apply(state_keys.show_view(self.state, message.view))

    def on_roofline_view_picked(self, message: RooflineView.Picked) -> None:
        self.apply(state_keys.select_site(self.state, message.site))

    def on_what_if_view_asks(self, message: WhatIfView.Asks) -> None:
        self._sampler.what_if(message.asked)

    def _inspect(self, site: str) -> None:
        self.apply(state_keys.show_view(state_keys.select_site(self.state, site), "inspect"))

    def _choose_rung(self, key: str) -> None:
        if key.startswith(CHANGED):
            self.apply(state_keys.choose_plan(self.state, key.removeprefix(CHANGED)))
            return
        if key not in {rung.id for rung in self.state.rungs}:
            return
        rung = self.state.rung(key)
        if rung is not None and rung.refused:
            self._notice(f"{rung.id} can't run here: {rung.refused}")
            return
        self.apply(state_keys.choose_rung(self.state, key))

    def _flip(self, name: str) -> None:
        toggle = self.state.toggle(name)
        if toggle is None:
            return
        if not toggle.values and flippable(toggle):
            self._ask_number(name, toggle.value)
            return
        value = state_keys.next_value(toggle)
        forecast = toggle_forecast(self.state, toggle)
        if value is None and forecast is not None:
            self._notice(sentence(self.state, forecast))
            return
        if value is None:
            why = "; ".join(f"{refused}: {reason}" for refused, reason in toggle.refused)
            self._notice(f"{name} stays {toggle.value}. {why}")
            return
        self.apply(state_keys.with_toggle(self.state, name, value))

    def _ask_number(self, name: str, value: str) -> None:
        def flip(answer: str | None) -> None:
            if answer is not None:
                self.apply(state_keys.with_toggle(self.state, name, answer))

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
