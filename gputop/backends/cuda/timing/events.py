"""Device and host clocks of a pass. Nothing is timed while the host still has work to enqueue for it."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from gputop.backends.cuda.runtime.context import Context
from gputop.backends.cuda.runtime.launch import Geometry
from gputop.backends.cuda.runtime.status_codes import check, explained
from gputop.backends.cuda.runtime.utility_kernels import Tools
from gputop.util.errors import UsageError

Call = Callable[[], None]
Sample = TypeVar("Sample")

TIMEOUT_S = 2.0
"""How long the blocker waits for a host that does not come: far longer than any enqueueing takes."""
QUEUE_DEPTH = 400
"""Launches and events behind one blocker. A stream takes about a thousand before it makes the host wait,
and a host that waits for a stream that waits for the host gets nowhere."""
FLOOR_PAIRS = 200
ATTEMPTS = 3
MS = 1e-3
EVENT_RECORD_EXTERNAL = 1

_TICKET_OFFSET = 16


class BlockerTimedOut(Exception):
    """The host did not release the blocker in time: the sample is worth nothing."""


def retry_on_timeout(attempt: Callable[[], Sample]) -> Sample:
    """Return what an attempt returns; try again if the blocker gave up waiting for the host.

    UsageError when the host can't keep ahead of the device even so.
    """
    for _ in range(ATTEMPTS):
        try:
            return attempt()
        except BlockerTimedOut:
            continue
    raise UsageError(
        f"The host took over {TIMEOUT_S:.0f} s to enqueue a pass, {ATTEMPTS} times: "
        "it is too busy to time by, or one call enqueues more than a stream's queue takes."
    )


class Blocker:
    """A kernel that holds the stream until the host lets it go."""

    def __init__(self, context: Context, tools: Tools, timeout_s: float = TIMEOUT_S) -> None:
        self._released, released = context.mapped(1, ctypes.c_int32)
        self._timed_out, timed_out = context.mapped(1, ctypes.c_int32)
        arguments = struct.pack("<QQii", released, timed_out, 0, int(timeout_s * 1e6))
        self._launch = tools.launch("blocker.cu", "blocker", Geometry((1, 1, 1), (1, 1, 1)), arguments)
        self._packed_ticket = ctypes.c_int32.from_buffer(self._launch.arguments, _TICKET_OFFSET)
        self._ticket = 0

    def hold(self) -> None:
        """Enqueue it: what is enqueued from here on waits for `release`."""
        self._ticket += 1
        self._packed_ticket.value = self._ticket
        self._launch()

    def release(self) -> None:
        self._released[0] = self._ticket

    def verify(self) -> None:
        """After the stream is done. BlockerTimedOut when the last one gave up waiting."""
        if self._timed_out[0] == self._ticket:
            raise BlockerTimedOut


class PassClock:
    """The SM clock while timed work ran: stamps of cycles and nanoseconds before it and behind it."""

    def __init__(self, context: Context, tools: Tools) -> None:
        self._stamps, address = context.mapped(6, ctypes.c_longlong)
        self._launches = tuple(
            tools.launch(
                "blocker.cu",
                "clock_stamp",
                Geometry((1, 1, 1), (1, 1, 1)),
                struct.pack("<Q", address + 24 * position),
            )
            for position in range(2)
        )

    def before(self) -> None:
        self._launches[0]()

    def behind(self) -> None:
        self._launches[1]()

    def hz(self) -> float | None:
        """Once the stream is done; None when the stamps were taken on different SMs, whose counters
        differ.
        """
        cycles, ns, sm, end_cycles, end_ns, end_sm = self._stamps
        if sm != end_sm or end_ns <= ns or end_cycles <= cycles:
            return None
        return float((end_cycles - cycles) / (end_ns - ns) * 1e9)


class Timer:
    """Times between marks on one context's stream, everything enqueued beforehand."""

    def __init__(self, context: Context, tools: Tools) -> None:
        import cupy

        self._cupy = cupy
        self._context = context
        self._blocker = Blocker(context, tools)
        self._clock = PassClock(context, tools)
        self._events: list[Any] = []
        self.floor_s = self._floor()
        """What two marks with nothing between them read, in all but the worst twentieth."""

    def split(self, groups: Sequence[Sequence[Call]]) -> tuple[list[float], float]:
        """Device seconds of each group of calls, run in order, and host seconds to enqueue them all.

        UsageError when the host can't keep ahead of the device even so.
        """
        return retry_on_timeout(lambda: self._split(groups))

    def whole(self, calls: Sequence[Call]) -> tuple[float, float]:
        """Device seconds and enqueueing seconds of a run of calls, in as few pieces as the queue allows."""
        pieces = [calls[i : i + QUEUE_DEPTH] for i in range(0, len(calls), QUEUE_DEPTH)]
        times, submit_s = self.split(pieces)
        return sum(times), submit_s

    def clock_hz(self) -> float | None:
        """SM clock during what was timed last; None where the stamps do not tell."""
        return self._clock.hz()

    def blocked(self, calls: Sequence[Call], what: str) -> None:
        """Run at most `QUEUE_DEPTH` calls behind the blocker. Raise BlockerTimedOut (`retry_on_timeout`)."""
        with explained(what):
            self._blocker.hold()
            try:
                for call in calls:
                    call()
            finally:
                self._blocker.release()
        self._context.synchronize(what)
        self._blocker.verify()

    def events(self, count: int) -> list[Any]:
        """Return at least `count` events, the same ones at each call."""
        if len(self._events) < count:
            self._events += self.own_events(count - len(self._events))
        return self._events

    def own_events(self, count: int) -> list[Any]:
        """Fresh events, for a graph that keeps recording into them."""
        with explained("creating events"):
            return [self._cupy.cuda.Event() for _ in range(count)]

    def between(self, first: Any, last: Any) -> float:
        """Seconds between two events that are done."""
        with explained("reading a timer"):
            return float(self._cupy.cuda.get_elapsed_time(first, last)) * MS

    def captured_mark(self, event: Any) -> Call:
        """Records `event` from inside a graph: a call to be captured."""
        from cuda.bindings import driver

        stream = self._context.stream.ptr

        def record() -> None:
            check(
                driver.cuEventRecordWithFlags(event.ptr, stream, EVENT_RECORD_EXTERNAL), "capturing an event"
            )

        return record

    def _split(self, groups: Sequence[Sequence[Call]]) -> tuple[list[float], float]:
        times: list[float] = []
        submit_s = 0.0
        for chunk in chunks(groups):
            submit_s += self._enqueue(chunk)
            self._context.synchronize("the timed pass")
            self._blocker.verify()
            events = self._events
            times += [self.between(events[i], events[i + 1]) for i in range(len(chunk))]
        return times, submit_s

    def _enqueue(self, groups: Sequence[Sequence[Call]]) -> float:
        events = self.events(len(groups) + 1)
        stream = self._context.stream
        with explained("the timed pass"):
            self._blocker.hold()
            self._clock.before()
            begun = perf_counter()
            try:
                events[0].record(stream)
                for index, group in enumerate(groups, start=1):
                    for call in group:
                        call()
                    events[index].record(stream)
                submit_s = perf_counter() - begun
                self._clock.behind()
                return submit_s
            finally:
                self._blocker.release()

    def _floor(self) -> float:
        self.split([()] * FLOOR_PAIRS)
        times, _ = self.split([()] * FLOOR_PAIRS)
        return float(np.quantile(times, 0.95))


def chunks(groups: Sequence[Sequence[Call]]) -> list[list[Sequence[Call]]]:
    """Groups in runs that fit behind one blocker, a mark counted for each."""
    chunks: list[list[Sequence[Call]]] = [[]]
    depth = 0
    for group in groups:
        if chunks[-1] and depth + len(group) + 1 > QUEUE_DEPTH:
            chunks.append([])
            depth = 0
        chunks[-1].append(group)
        depth += len(group) + 1
    return chunks
