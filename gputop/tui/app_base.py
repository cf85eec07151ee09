"""The application without its keys: the state, its drawing, and how a run starts and ends."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import FrameType
from typing import Any

from rich.text import Text
from textual.app import App
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.filter import LineFilter
from textual.theme import Theme
from textual.timer import Timer

from gputop.ipc.conversation import Conversation
from gputop.tui.measure_thread import MeasureRequest, Sampler
from gputop.tui.options import Options
from gputop.tui.printable_filter import PRINTABLE
from gputop.tui.screens.main import MainScreen
from gputop.tui.settings import Settings, SettingsFile
from gputop.tui.state import State
from gputop.tui.terminal_driver import TerminalDriver, TerminalGone
from gputop.tui.theme_filter import FewColorsFilter, TintFilter
from gputop.tui.themes import OWN_THEMES, THEME_NAMES, THEMES, ThemeName, theme_id
from gputop.util import signals
from gputop.util.printable import printable_lines

UPDATE_S = 0.5
"""Least time between two drawings of what the worker sends."""
COMPOSING_S = 0.05
"""How often a screen that is put together is looked at by what is to end it."""
AGE_S = 1.0
"""How often ages and the log are brought up to date."""
STDIN = 0


class AppBase(App[int]):
    """One worker, one state, one main screen."""

    TITLE = "gputop"
    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = True

    def __init__(
        self,
        options: Options,
        client: Conversation,
        *,
        clock: Callable[[], float] = time.monotonic,
        update_s: float = UPDATE_S,
        settings: SettingsFile | None = None,
        few_colors: bool = False,
    ) -> None:
        """`clock` is for ages on the screen, in seconds from any origin. Without `settings` none are kept.

        `few_colors`: the terminal has 256 colours.
        """
        super().__init__()
        self.options = options
        self._started_with = options
        self._client = client
        self._clock = clock
        self._update_s = update_s
        self._settings_file = settings or SettingsFile(None)
        kept, trouble = self._settings_file.read()
        self._settings = kept
        self.state = State(
            view_name=kept.view, sort=kept.sort, sorted_backwards=kept.sorted_backwards, trouble=trouble
        )
        self.theme_name: ThemeName = options.theme or kept.theme
        self._few_colors = few_colors
        self._theme_filters = self._filters_of(self.theme_name)
        self._sampler = Sampler(client, options, self.post_message)
        self._drawn_s = -update_s
        self._due: Timer | None = None
        self._wished: MeasureRequest | None = None
        """What the sampler was last told."""
        self._main = MainScreen()
        self._has_terminal = os.isatty(STDIN)

    # Start and end

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
        for theme in THEMES.values():
            self.register_theme(theme)
        self.theme = theme_id(self.theme_name)
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

    # Colours

    def get_theme(self, theme_name: str) -> Theme | None:
        """Return our own theme at once: the base class copies all it has for every line that is drawn."""
        return OWN_THEMES.get(theme_name) or super().get_theme(theme_name)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Return our own variables: the style sheet is read before a theme of ours is on."""
        return dict(THEMES["dark"].variables)

    def _filters_of(self, theme: ThemeName) -> tuple[TintFilter, tuple[LineFilter, ...]]:
        """Return what comes before Textual's own filters, and what comes after them."""
        return TintFilter(theme), (FewColorsFilter(theme), PRINTABLE) if self._few_colors else (PRINTABLE,)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Every widget's lines pass through these: names and notes come from files and other programs."""
        tint, last = self._theme_filters
        first = (tint,) if tint.enabled else ()
        return (*first, *super().get_line_filters(), *last)

    def action_theme(self) -> None:
        """Turn from dark to light or back."""
        at = THEME_NAMES.index(self.theme_name)
        self.theme_name = THEME_NAMES[(at + 1) % len(THEME_NAMES)]
        self._theme_filters = self._filters_of(self.theme_name)
        self.theme = theme_id(self.theme_name)
        self._keep_settings()

    def _keep_settings(self) -> None:
        """Write what is to be remembered, if it changed. If it can't be written, say so and go on."""
        state = self.state
        settings = Settings(
            theme=self.theme_name,
            sort=state.sort,
            sorted_backwards=state.sorted_backwards,
            view=state.view_name,
        )
        if settings == self._settings:
            return
        self._settings = settings
        trouble = self._settings_file.write(settings)
        if trouble:
            self._notice(trouble)

    # Drawing

    @property
    def is_drawn(self) -> bool:
        """Whether the screen shows the newest state."""
        return self._due is None

    def apply(self, state: State) -> None:
        """Take a new state because of a key: ask for what it needs and draw it at once."""
        self._request(replace(state, notice=""))
        self._draw()
        self._keep_settings()

    def _set_state(self, state: State) -> None:
        """Take a new state because of an event: wish for it, and draw it at most twice a second.

        A first window is drawn at once, and only then more is asked for: a recording is read in this process,
        where reading and drawing hold each other up.
        """
        if self.state.latest is None and state.latest is not None:
            self._request(state)
            self._draw()
            self.call_after_refresh(self._sampler.window_drawn)
            return
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


def _limit_the_end(number: int, frame: FrameType | None) -> None:
    signals.end_within(signals.PATIENCE_S, signals.exit_code(number))
