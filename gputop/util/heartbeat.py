"""Signs of life from long computations, so that nobody takes them for hung.

The waiting side opens `on_heartbeat`; a loop that may take long calls `beat` in each iteration. Code that may
hang (a kernel on a device) must not call it: the missing heartbeat reveals the hang.
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
    """Report progress. Cheap. Has no effect in threads other than the listener's."""
    listener = _listener.get()
    if listener is not None:
        listener.beat()
