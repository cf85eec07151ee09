"""A pass split by phase: by CUPTI's records, by marks between steps, or by a kernel's own stamps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gputop.backends.base import PhaseTimes
from gputop.backends.cuda.bind import BoundStep
from gputop.backends.cuda.launch_info import kernel_counts
from gputop.backends.cuda.memory import PlanMemory
from gputop.backends.cuda.runtime.context import Context
from gputop.backends.cuda.runtime.graph import capture
from gputop.backends.cuda.runtime.status_codes import explained
from gputop.backends.cuda.timing.cupti import KernelRecorder
from gputop.backends.cuda.timing.events import QUEUE_DEPTH, Timer, retry_on_timeout
from gputop.backends.cuda.timing.spans import Span, split
from gputop.backends.cuda.timing.stamps import WORKSPACE, seconds_apart
from gputop.util.errors import Unavailable

Call = Callable[[], None]

BLOCKERS = 1
"""Kernels that a recorded pass has before its own."""


class PhaseSplit:
    """Samples of one plan's phases, by the same clock as long as that answers."""

    def __init__(
        self,
        context: Context,
        timer: Timer,
        memory: PlanMemory,
        bound: Sequence[BoundStep],
        submit: Sequence[Call],
        graph: bool,
        recorder: KernelRecorder | None,
    ) -> None:
        """`submit` enqueues the pass as it is timed: its launches, or with `graph` the one graph of them."""
        self._context = context
        self._timer = timer
        self._memory = memory
        self._bound = bound
        self._submit = submit
        self._graph = graph
        self._stamped = any(step.step.kernel.stamped for step in bound)
        short = len(submit) <= QUEUE_DEPTH
        self._recorder = recorder if short and not self._stamped else None
        self._counts: tuple[int, ...] | None = None
        self._marked: tuple[Any, list[Any]] | None = None

    def sample(self, passes: int) -> tuple[PhaseTimes, ...]:
        """Time the phases by CUPTI if it sees every kernel, else by marks between the steps.

        Runs one pass more than asked for and drops the first, which finds caches as something else left them.
        """
        if self._recorder is not None:
            recorded = self._recorded(self._recorder, passes)
            if recorded:
                return recorded
            self._recorder = None
        return tuple(self._by_marks() for _ in range(1 + passes))[1:]

    def close(self) -> None:
        self._marked = None
        self._bound = self._submit = ()

    def _recorded(self, recorder: KernelRecorder, passes: int) -> tuple[PhaseTimes, ...]:
        """Empty where nothing can be recorded, or not as many kernels as the passes are counted to launch."""
        if self._counts is None:
            self._counts = kernel_counts(self._context, self._bound)

        def work() -> None:
            for _ in range(1 + passes):
                self._timer.blocked(self._submit, "the recorded pass")

        try:
            # Switching the recorder on and off takes longer than a short pass: once for all of them.
            spans = retry_on_timeout(lambda: recorder.record(work, "the recorded passes"))
        except Unavailable:
            # Another profiler attached, or no permission.
            return ()
        one = BLOCKERS + sum(self._counts)
        if len(spans) != (1 + passes) * one:
            return ()
        spans.sort(key=lambda span: span.start)
        counts = (BLOCKERS, *self._counts)
        starts = range(one, len(spans), one)
        return tuple(self._of_spans(spans[at : at + one], counts, recorder.floor_s) for at in starts)

    def _of_spans(self, spans: Sequence[Span], counts: Sequence[int], floor_s: float) -> PhaseTimes:
        """One pass; a site's instances are added."""
        sites = [step.step.site for step in self._bound]
        time_s, gap_s, overlap_s = (dict.fromkeys(sites, 0.0) for _ in range(3))
        _, *steps = split(spans, counts)
        for site, times in zip(sites, steps, strict=True):
            time_s[site] += times.time_s
            gap_s[site] += times.gap_s
            overlap_s[site] += times.overlap_s
        return PhaseTimes(time_s, gap_s, overlap_s, "cupti", floor_s)

    def _by_marks(self) -> PhaseTimes:
        """Marks in the stream or, for a plan with a graph, as nodes of a graph.

        What lies between the marks of a stamped kernel and is in none of its tasks is a gap before them.
        """
        time_s: dict[str, float] = {}
        gap_s: dict[str, float] = {}
        times = self._graph_times() if self._graph else self._stream_times()
        for step, seconds in zip(self._bound, times, strict=True):
            if not step.step.kernel.stamped:
                _add(time_s, step.step.site, seconds)
                continue
            parts_s = seconds_apart(self._memory.workspace(step.step.site, WORKSPACE))
            parts = step.step.apart()
            for part, part_s in zip(parts, parts_s, strict=True):
                _add(time_s, part.site, part_s)
                # A task's time begins where the one before it ends.
                _add(gap_s, part.site, 0.0)
            _add(gap_s, parts[0].site, max(0.0, seconds - sum(parts_s)))
        return PhaseTimes(time_s, gap_s, {}, "stamp" if self._stamped else "event", self._timer.floor_s)

    def _stream_times(self) -> list[float]:
        times, _ = self._timer.split([step.calls for step in self._bound])
        return times

    def _graph_times(self) -> list[float]:
        graph, events = self._marked or self._capture_marked()
        with explained("the timed pass"):
            graph.launch(self._context.stream)
        self._context.synchronize("the timed pass")
        return [self._timer.between(events[i], events[i + 1]) for i in range(len(self._bound))]

    def _capture_marked(self) -> tuple[Any, list[Any]]:
        """A graph of the pass with a mark before, between and after its steps."""
        events = self._timer.own_events(len(self._bound) + 1)
        marks = [self._timer.captured_mark(event) for event in events]
        calls = [marks[0]]
        for step, mark in zip(self._bound, marks[1:], strict=True):
            calls += [*step.calls, mark]
        self._marked = (capture(self._context, calls, "the marked pass"), events)
        return self._marked


def _add(table: dict[str, float], site: str, seconds: float) -> None:
    table[site] = table.get(site, 0.0) + seconds
