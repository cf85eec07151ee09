"""Signals that ask a process to end: it unwinds as after ^C, with the exit code that shells expect.

Unwinding can hang: a thread waits for a worker stuck in its driver, or for a terminal that takes no output.
`end_within` sets a limit to that, after which the process does its last acts and ends.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGHUP)
PATIENCE_S = 8.0
"""How long an orderly end may take: killing a worker that does not answer takes up to about 5 s of it."""
LAST_ACTS_S = 2.0
"""How long the last acts may take before the kernel ends this process."""

last_acts: list[Callable[[], None]] = []
"""What `end_within` does before it ends the process: restore the terminal, kill the worker. Each act runs in
the main thread, amid whatever that waits for, so it takes no lock and waits for nothing."""
_may_end = threading.Event()
"""Set within `raise_on_signal`: only gputop's own process is ended, never one that imports it."""


class Terminated(KeyboardInterrupt):
    """Raised on SIGTERM and SIGHUP, so that cleanup runs as it does for ^C."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.exit_code = exit_code(number)


def exit_code(number: int) -> int:
    """Return what a shell says of a process that a signal ended."""
    return 128 + number


def handled_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that end gputop, without those that the caller has it ignore, as nohup does."""
    return tuple(number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN)


@contextlib.contextmanager
def raise_on_signal() -> Iterator[None]:
    """Inside this context the first signal raises Terminated in the main thread.

    The second is ignored, as some senders signal twice; the third kills the process. Unwinding may take
    `PATIENCE_S`.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in handled_signals()}

    def end(number: int, frame: FrameType | None) -> None:
        for other in before:
            signal.signal(other, lambda *_: restore_default())
        end_within(PATIENCE_S, exit_code(number))
        raise Terminated(number)

    try:
        for number in before:
            signal.signal(number, end)
        _may_end.set()
        yield
    finally:
        _may_end.clear()
        for number, handler in before.items():
            signal.signal(number, handler)


def end_within(patience_s: float, code: int) -> None:
    """End this process with `code` after `patience_s`, unless it has ended by itself by then.

    Call it from the main thread. The first call counts. Does nothing outside of `raise_on_signal`.
    A timer of the kernel interrupts whatever the main thread waits for, so a lock that is never released
    does not keep the process alive.
    """
    if not _may_end.is_set() or signal.getitimer(signal.ITIMER_REAL)[0] > 0:
        return

    def end(number: int, frame: FrameType | None) -> None:
        # If a last act hangs, the kernel ends this process.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, LAST_ACTS_S)
        for act in tuple(last_acts):
            with contextlib.suppress(Exception):
                act()
        os._exit(code)

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, patience_s)


def restore_default() -> None:
    """Let the signals end this process without unwinding: one deep in a kernel would not get to it."""
    for number in handled_signals():
        signal.signal(number, signal.SIG_DFL)
