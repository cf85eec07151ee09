"""What else happened on the device in a window: its state before and after sampling, as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gputop.results.records import Health


def joined(before: Health, after: Health) -> Health:
    """Clock, power and temperature as they are after sampling, when the device is warm from it.

    Throttle reasons and other processes are those seen at either time: what came or went meanwhile lies in
    the window's times too. None where neither reading tells.
    """
    return replace(
        after,
        throttle=_either(before.throttle, after.throttle),
        others=_either(before.others, after.others),
    )


def notes(before: Health, after: Health) -> tuple[str, ...]:
    """What makes the window's times another matter than the plans alone, each with when it was seen."""
    both = joined(before, after)
    found = []
    if both.throttle:
        listed = ", ".join(_when(reason, before.throttle, after.throttle) for reason in both.throttle)
        found.append(f"throttled: {listed}")
    if both.others:
        listed = "; ".join(_when(process, before.others, after.others) for process in both.others)
        found.append(f"the device was shared, and times hold what others ran: {listed}")
    return tuple(found)


def shared(health: Health) -> str:
    """`shared with 1 other process`; empty where nobody is known to share the device."""
    count = len(health.others or ())
    return f"shared with {count} other process{'es' if count > 1 else ''}" if count else ""


def _either(before: Sequence[str] | None, after: Sequence[str] | None) -> tuple[str, ...] | None:
    if before is None and after is None:
        return None
    # The later reading of the same process stands: its memory may have changed.
    seen = {_identity(text): text for text in (*(before or ()), *(after or ()))}
    return tuple(seen.values())


def _identity(text: str) -> str:
    """A process without the memory that it holds: `pid 4711 python3`. A reason is its own."""
    return text.partition(",")[0]


def _when(text: str, before: Sequence[str] | None, after: Sequence[str] | None) -> str:
    """With a word on when where one reading has it, and the other is known not to."""
    here = _identity(text)
    if before is not None and here not in map(_identity, before):
        return f"{text} (came while sampling)"
    if after is not None and here not in map(_identity, after):
        return f"{text} (gone by the end)"
    return text
