"""Signals that ask a process to end: it unwinds as after ^C, with the exit code that shells expect."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class Terminated(KeyboardInterrupt):
    """Asked to end: whatever tidies up after ^C does so here."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.exit_code = exit_code(number)


def exit_code(number: int) -> int:
    """What a shell says of a process that a signal ended."""
    return 128 + number


def handled_signals() -> tuple[signal.Signals, ...]:
    """Without those that the caller has this process ignore, as nohup does."""
    return tuple(number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN)


@contextlib.contextmanager
def raise_on_signal() -> Iterator[None]:
    """Within, the first of the signals raises Ended in the main thread. A second changes nothing, as some are
    sent twice; a third ends the process at once, whatever holds up the unwinding."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in handled_signals()}

    def end(number: int, frame: FrameType | None) -> None:
        for other in before:
            signal.signal(other, lambda *_: restore_default())
        raise Terminated(number)

    try:
        for number in before:
            signal.signal(number, end)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def restore_default() -> None:
    """They end this process without unwinding: one deep in a kernel would not get to it."""
    for number in handled_signals():
        signal.signal(number, signal.SIG_DFL)
