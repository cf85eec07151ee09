"""Pairs of plans on whichever device is free, each pair within one device: for a search over many devices."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from gputop.fleet.fleet import Fleet, FleetDevice, Outcome
from gputop.fleet.jobs import Pair, PairJob
from gputop.results.records import Window
from gputop.util.errors import GputopError, Unavailable, WorkerLost

MOST_LOSSES = 2
"""A pair at which so many devices left is not tried again: it may be what they left for."""
RECONNECT_S = 60.0
"""How long a scheduler that is gone is waited for."""
RETRY_S = 1.0


@dataclass(frozen=True, slots=True)
class PairOutcome:
    """What became of a pair."""

    pair: Pair
    window: Window | None = None
    device: FleetDevice | None = None
    """Where the window was measured, or the last that failed at it."""
    error: GputopError | None = None
    """Why there is no window."""


@dataclass(slots=True)
class _Waiting:
    pair: Pair
    losses: int = 0


@dataclass(slots=True)
class PairMeasurer:
    """Pairs go in by `start` and come out by `finished`, as devices get free.

    A device that leaves costs the window that it was measuring: its pair is measured on another. If the
    scheduler leaves, it is waited for, and pairs without an outcome are measured anew.
    """

    fleet: Fleet
    seconds: float | None = None
    """The longest that one window may take."""
    check_phases: bool = False
    _waiting: deque[_Waiting] = field(default_factory=deque)
    _running: dict[FleetDevice, _Waiting] = field(default_factory=dict)
    _ended: deque[PairOutcome] = field(default_factory=deque)

    @property
    def places(self) -> int:
        """How many pairs can be under way at once: devices of the fleet at this moment."""
        return len(self.fleet.devices)

    @property
    def under_way(self) -> int:
        """How many pairs were started whose outcome was not taken yet."""
        return len(self._waiting) + len(self._running) + len(self._ended)

    def start(self, pair: Pair) -> None:
        """Measure a pair as soon as a device is free."""
        self._waiting.append(_Waiting(pair))
        self._give_out()

    def finished(self) -> PairOutcome:
        """Wait for the next outcome.

        Raise WorkerLost if no device is left or the scheduler stays away, ValueError if no pair is under way.
        """
        if not self.under_way:
            raise ValueError("no pair was started")
        while not self._ended:
            self._give_out()
            for outcome in self.fleet.ended():
                self._take(outcome)
            if not self.fleet.connected:
                self._reconnect()
            elif not self.fleet.devices and not self.fleet.expects:
                raise WorkerLost(f"The fleet at {self.fleet.address} has no device left.")
        return self._ended.popleft()

    def measure(self, pairs: Iterable[Pair]) -> Iterator[PairOutcome]:
        """Measure all pairs, yielding each as it ends, in no particular order."""
        for pair in pairs:
            self._waiting.append(_Waiting(pair))
        while self.under_way:
            yield self.finished()

    def _take(self, outcome: Outcome[Window]) -> None:
        waiting = self._running.pop(outcome.device)
        # One that stays has a new measuring process for the next pair.
        has_left = outcome.error is not None and outcome.device not in self.fleet.devices
        waiting.losses += has_left
        if has_left and waiting.losses < MOST_LOSSES:
            self._waiting.appendleft(waiting)
            return
        self._ended.append(PairOutcome(waiting.pair, outcome.result, outcome.device, outcome.error))

    def _give_out(self) -> None:
        for device in self.fleet.free:
            if not self._waiting:
                return
            waiting = self._waiting.popleft()
            self._running[device] = waiting
            self.fleet.start(device, PairJob(waiting.pair, self.seconds, self.check_phases))

    def _reconnect(self) -> None:
        """Raise WorkerLost if the scheduler does not come back."""
        self._waiting.extendleft(self._running.values())
        self._running.clear()
        deadline = time.monotonic() + RECONNECT_S
        while True:
            try:
                self.fleet.connect()
                return
            except Unavailable as error:
                if time.monotonic() > deadline:
                    raise WorkerLost(f"{error} It was there before.") from error
            time.sleep(RETRY_S)
