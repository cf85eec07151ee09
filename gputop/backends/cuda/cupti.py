"""Times of single kernels by CUPTI, where cupti-python is installed: also inside a graph.

Kernels of ours are matched to launches by order alone: a pass is one stream, and what each step launches is
counted beforehand. A name says nothing there, since a library call may be several kernels.
"""

from __future__ import annotations

import atexit
import importlib.util
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from gputop.backends.cuda.context import Context
from gputop.backends.cuda.tools import Tools
from gputop.errors import NotHere

NS = 1e-9
BUFFER_BYTES = 8 << 20
FLUSH_FORCED = 1
FLOOR_LAUNCHES = 64


@dataclass(frozen=True, slots=True)
class Span:
    """One kernel's begin and end, ns of CUPTI's clock."""

    start: int
    end: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Seconds of one step's kernels: alone, before them with nothing running, and beside the one before."""

    time_s: float
    gap_s: float
    overlap_s: float


def split(spans: Sequence[Span], counts: Sequence[int]) -> list[StepTimes]:
    """Times of each step, whose kernels are the next `counts[i]` of `spans` in order of begin.

    A kernel's time is end - max(start, end before it); the gap is what passes between the two where
    they do not touch, the overlap what they share where they do. The first has neither.
    """
    ordered = sorted(spans, key=lambda span: span.start)
    found: list[StepTimes] = []
    before = ordered[0].start if ordered else 0
    at = 0
    for count in counts:
        time = gap = overlap = 0
        for span in ordered[at : at + count]:
            gap += max(0, span.start - before)
            overlap += max(0, min(before, span.end) - span.start)
            time += max(0, span.end - max(span.start, before))
            before = max(before, span.end)
        at += count
        found.append(StepTimes(time * NS, gap * NS, overlap * NS))
    return found


def step_and_spread_s(spans: Sequence[Span]) -> float:
    """Of the clock that timed one kernel many times: its step, of which all its readings are whole numbers
    apart, and how far from the middle one all but the worst twentieth of the lengths lie."""
    stamps = np.array([(span.start, span.end) for span in spans])
    lengths = stamps[:, 1] - stamps[:, 0]
    step = np.gcd.reduce(np.diff(stamps.ravel()))
    return float(step + np.quantile(abs(lengths - np.median(lengths)), 0.95)) * NS


class KernelRecorder:
    """Records the kernels of a run. On only while it records: it slows everything else down.

    CUPTI is attached to by the first recording. A process that records nothing has nothing of it: two tools
    that listen to one driver, as under a sanitizer, do not end well.
    """

    def __init__(self, context: Context, tools: Tools) -> None:
        from cupti import cupti

        self._cupti = cupti
        self._context = context
        self._tools = tools
        self._spans: list[Span] = []
        self._kind = cupti.ActivityKind.CONCURRENT_KERNEL
        self._attached = False
        self._named = False
        """Whether names are read: each thing read of a record takes longer than a short kernel runs."""
        self.floor_s = 0.0
        """The clock's step and spread; 0 until something was recorded."""

    def record(self, work: Callable[[], None], what: str, *, named: bool = False) -> list[Span]:
        """Spans of every kernel that `work` enqueues, with `named` their names too. NotHere where CUPTI lets
        nobody attach.
        """
        self._named = named
        if not self.floor_s:
            self._attach()
            spans = self._record(self._empties, "recording empty kernels")
            if len(spans) < FLOOR_LAUNCHES:
                raise NotHere(f"CUPTI recorded {len(spans)} of {FLOOR_LAUNCHES} kernels here.")
            self.floor_s = step_and_spread_s(spans)
        return self._record(work, what)

    def _empties(self) -> None:
        empty = self._tools.empty()
        for _ in range(FLOOR_LAUNCHES):
            empty()

    def _record(self, work: Callable[[], None], what: str) -> list[Span]:
        self._spans.clear()
        self._cupti.activity_enable(self._kind)
        try:
            work()
            self._context.synchronize(what)
            self._cupti.activity_flush_all(FLUSH_FORCED)
        finally:
            self._cupti.activity_disable(self._kind)
        return list(self._spans)

    def _attach(self) -> None:
        if self._attached:
            return
        try:
            self._cupti.activity_register_callbacks(self._more, self._take)
        except Exception as error:
            raise NotHere(f"CUPTI can't be used here ({type(error).__name__}: {error}).") from None
        _detached_at_exit(self._cupti)
        self._attached = True

    def _more(self) -> tuple[int, int]:
        """Size of a buffer for records, and how many it may hold: as many as fit."""
        return BUFFER_BYTES, 0

    def _take(self, activities: Sequence[Any]) -> None:
        self._spans += [
            Span(activity.start, activity.end, _text(activity.name) if self._named else "")
            for activity in activities
            if activity.kind == self._kind
        ]


def _text(name: Any) -> str:
    return name.decode(errors="replace") if isinstance(name, bytes) else str(name or "")


@cache
def _detached_at_exit(cupti: Any) -> None:
    """CUPTI hands buffers back at a process's end, to a Python that is gone by then: it is let go before."""

    def detach() -> None:
        with suppress(Exception):
            cupti.activity_flush_all(FLUSH_FORCED)
            cupti.finalize()

    atexit.register(detach)


def open_recorder(context: Context, tools: Tools) -> tuple[KernelRecorder | None, tuple[str, ...]]:
    """The recorder, or None with a note where cupti-python is installed and can't be used."""
    try:
        if importlib.util.find_spec("cupti") is None:
            return None, ()
        return KernelRecorder(context, tools), ()
    except Exception as error:
        # A library that does not fit, or none: marks serve as well.
        return None, (
            f"CUPTI can't be used here ({type(error).__name__}: {error}); phases are timed by events.",
        )
