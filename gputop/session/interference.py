"""What else happened on the device and its host in a window: both ends of the sampling as one state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gputop.backends.base import Backend
from gputop.results.host_words import others_words, throttled_words
from gputop.results.launch_state import LAUNCH_COST_WITHIN
from gputop.results.records import Health
from gputop.util import host_cpu
from gputop.util.units import seconds


class Watch:
    """Observes the device and the host from its making until `end`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._before = backend.health()
        self._cpu = host_cpu.cpu_times()

    def end(self) -> tuple[Health, tuple[str, ...]]:
        """Return the window's health, and what else than the plans makes its times."""
        use = host_cpu.use_between(self._cpu, host_cpu.cpu_times())
        after = replace(
            self._backend.health(),
            host_cores=use.cores,
            others_cores=use.others_cores,
            throttled_s=use.throttled_s,
        )
        ceilings = self._backend.kept_ceilings()
        usual_s = ceilings.get("launch_graph") if ceilings else None
        found = (*notes(self._before, after), *launch_notes(self._before, after, usual_s))
        return joined(self._before, after), found


def joined(before: Health, after: Health) -> Health:
    """Return clock, power and temperature as they are after sampling, when the device is warm from it.

    Throttle reasons and other processes are those seen at either time: what came or went meanwhile lies in
    the window's times too. None if neither reading tells.
    """
    return replace(
        after,
        throttle=_either(before.throttle, after.throttle),
        others=_either(before.others, after.others),
    )


def notes(before: Health, after: Health) -> tuple[str, ...]:
    """Return what else than the plans makes the window's times, each with when it was seen."""
    both = joined(before, after)
    found = []
    if both.throttle:
        listed = ", ".join(_when(reason, before.throttle, after.throttle) for reason in both.throttle)
        found.append(f"throttled: {listed}")
    if both.others:
        listed = "; ".join(_when(process, before.others, after.others) for process in both.others)
        found.append(f"the device was shared, and times hold what others ran: {listed}")
    if held_back := throttled_words(both):
        found.append(f"{held_back}, each core counted: times hold that wait")
    if load := others_words(both):
        found.append(f"{load}: times are longer for it, and vary more")
    return tuple(found)


def disturbed(health: Health) -> str:
    """Return `shared with 1 other process; others use 150 % of your 2 cores`; empty if nothing is known."""
    return "; ".join(filter(None, (_shared(health), others_words(health), throttled_words(health))))


def _shared(health: Health) -> str:
    count = len(health.others or ())
    return f"shared with {count} other process{'es' if count > 1 else ''}" if count else ""


def launch_notes(before: Health, after: Health, usual_s: float | None) -> tuple[str, ...]:
    """Return a note if launches cost other than their ceiling `launch_graph`, `usual_s`.

    Then something has changed them for this process, and times differ from those of other windows by more
    than plans do.
    """
    if usual_s is None:
        return ()
    readings = [health.launch_s / usual_s for health in (before, after) if health.launch_s is not None]
    far = max(readings, key=lambda ratio: abs(ratio - 1), default=1.0)
    if abs(far - 1) <= LAUNCH_COST_WITHIN:
        return ()
    return (
        f"launches cost {far:.2f} times their ceiling, {seconds(usual_s)}: something has changed them for "
        "this process, and the window is pooled with none of another state",
    )


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
    """Add when it was seen, if one reading has it and the other is known not to."""
    here = _identity(text)
    if before is not None and here not in map(_identity, before):
        return f"{text} (came while sampling)"
    if after is not None and here not in map(_identity, after):
        return f"{text} (gone by the end)"
    return text
