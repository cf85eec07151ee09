"""Textual's driver for a terminal that stops, continues, hangs up or takes no output.

Differences from Textual's own:
- SIGTSTP and SIGCONT are served by the event loop, never in the middle of a write, and each SIGCONT leaves
  as many threads as there were.
- Output to a terminal that is gone is dropped, and the app is told with `TerminalGone`. In Textual the thread
  that writes dies of it, and the loop then waits for room in its queue for ever.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
from collections.abc import Callable
from io import TextIOWrapper
from typing import Any, TextIO, cast

from textual.app import App
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from gputop.util import signals

LEAVE = (
    "\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l"  # mouse off
    "\x1b[?2004l\x1b[?2048l\x1b[?1004l\x1b[<u"  # bracketed paste, size reports, focus reports, keyboard
    "\x1b[?7h\x1b[?1049l\x1b[?25h"  # wrap on, main screen, cursor on
)
"""What Textual writes when it leaves, as far as it can have switched it on."""


class TerminalGone(Message):
    """The terminal was closed: nobody can see this screen, and no key will come."""


class TerminalDriver(LinuxDriver):
    """Draws on the terminal and reads its keys."""

    def __init__(
        self, app: App[Any], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        steady = SteadyStream(cast(TextIO, self._file), self._tell_gone)
        self._file = cast(TextIOWrapper, steady)
        self._settings = _settings_of(self.fileno)
        self._loop.add_signal_handler(signal.SIGTSTP, self._stop_process)
        self._loop.add_signal_handler(signal.SIGCONT, self._go_on)

    @property
    def _is_drawing(self) -> bool:
        return self._writer_thread is not None and self._writer_thread.is_alive()

    def write(self, data: str) -> None:
        """Write to the terminal. Between a stop and its end there is nobody to write to."""
        if self._is_drawing:
            super().write(data)

    def start_application_mode(self) -> None:
        """Take the terminal."""
        signals.last_acts.insert(0, self._restore_at_once)
        super().start_application_mode()  # type: ignore[no-untyped-call]

    def run_input_thread(self) -> None:
        """Read keys until the screen ends or the terminal is gone."""
        try:
            super().run_input_thread()
        except OSError:
            self._tell_gone()

    def close(self) -> None:
        """Give the terminal back."""
        super().close()
        with contextlib.suppress(ValueError):
            signals.last_acts.remove(self._restore_at_once)

    def _stop_process(self) -> None:
        """Give the terminal back, then stop; the shell's `fg` continues with SIGCONT."""
        if self._auto_restart:
            self.suspend_application_mode()
            self._must_signal_resume = True
        os.kill(os.getpid(), signal.SIGSTOP)

    def _go_on(self) -> None:
        """Take the terminal again. Without a stop before it (SIGSTOP gives no notice) all is set up anew."""
        if not self._auto_restart:
            return
        if self._is_drawing:
            self._must_signal_resume = True
            self.suspend_application_mode()
        self.resume_application_mode()
        self._app.refresh(layout=True)

    def _tell_gone(self) -> None:
        # The loop may have ended already: then there is nobody to tell.
        with contextlib.suppress(RuntimeError):
            self.send_message(TerminalGone())

    def _restore_at_once(self) -> None:
        """Leave the terminal as it was, if it takes output without waiting."""
        if self._settings is not None:
            termios.tcsetattr(self.fileno, termios.TCSANOW, self._settings)
        out = sys.__stderr__.fileno() if sys.__stderr__ else None
        if out is not None and select.select([], [out], [], 0)[1]:
            os.write(out, LEAVE.encode())


class SteadyStream:
    """A text stream that drops what it can't write, and tells of it once."""

    def __init__(self, stream: TextIO, tell: Callable[[], None]) -> None:
        self._stream = stream
        self._tell = tell
        self._gone = False

    def write(self, text: str) -> int:
        self._try(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        self._try(self._stream.flush)

    def fileno(self) -> int:
        return self._stream.fileno()

    def _try(self, work: Callable[[], object]) -> None:
        if self._gone:
            return
        try:
            work()
        except (OSError, ValueError):
            # EIO after a hang-up; ValueError from a stream that was closed.
            self._gone = True
            self._tell()


def _settings_of(descriptor: int) -> list[Any] | None:
    try:
        return termios.tcgetattr(descriptor)
    except termios.error:
        return None
