"""Signs of life from long computations, so that nobody takes them for hung.

Whoever waits opens `listening`; a loop that may take long calls `beat` at each turn. Code that can hang
(a kernel on a device) has no beat of its own, and is found by its silence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic

EVERY_S = 5.0
"""Last words older than this are said again at the next beat."""

Say = Callable[[str], None]


class _Listener:
    def __init__(self, say: Say) -> None:
        self._say = say
        self._text = ""
        self._at = monotonic()

    def say(self, text: str) -> None:
        self._text, self._at = text, monotonic()
        self._say(text)

    def beat(self) -> None:
        if monotonic() - self._at >= EVERY_S:
            self.say(self._text)


_listener: ContextVar[_Listener | None] = ContextVar("listener", default=None)


@contextmanager
def on_heartbeat(say: Say) -> Iterator[Say]:
    """Gives a `say` of its own, whose last words the beats within repeat."""
    listener = _Listener(say)
    token = _listener.set(listener)
    try:
        yield listener.say
    finally:
        _listener.reset(token)


def beat() -> None:
    """Still at work. Costs a look at the clock; of a thread's own loops nobody hears."""
    listener = _listener.get()
    if listener is not None:
        listener.beat()
