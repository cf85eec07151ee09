"""The clocks themselves: the blocker blocks, marks agree inside and outside a graph, memory comes back."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np
import pytest

from gputop.backends.cuda.runtime.context import Context
from gputop.backends.cuda.runtime.graph import capture
from gputop.backends.cuda.runtime.launch import Geometry, KernelLaunch
from gputop.backends.cuda.runtime.utility_kernels import Tools
from gputop.backends.cuda.timing.cupti import KernelRecorder, open_recorder
from gputop.backends.cuda.timing.events import Blocker, BlockerTimedOut, Timer
from gputop.plan.plan_string import parse_word
from gputop.plan.types import Dims, PlanRequest, Workload
from gputop.results.records import PlanResult
from gputop.session.session import Session
from tests.gpu.plans import STANDARD, skip_refused

SPIN_NS = 8_000
SPINS = 40
SLACK_BYTES = 64 << 20
"""What a driver keeps for itself once it has been used."""


@pytest.fixture
def spin(context: Context, tools: Tools) -> Iterator[KernelLaunch]:
    """A kernel of known length, by the device's own clock."""
    sink = context.array((1,), np.int32, "a test")
    arguments = struct.pack("<Qi4x", sink.data.ptr, SPIN_NS)
    yield tools.launch("blocker.cu", "spin", Geometry((1, 1, 1), (32, 1, 1)), arguments)
    del sink


def graph_times(context: Context, timer: Timer, call: KernelLaunch) -> list[float]:
    events: list[Any] = timer.own_events(SPINS + 1)
    marks = [timer.captured_mark(event) for event in events]
    calls: list[Any] = [marks[0]]
    for mark in marks[1:]:
        calls += [call, mark]
    graph = capture(context, calls, "a test")
    for _ in range(2):
        graph.launch(context.stream)
        context.synchronize("a test")
    return [timer.between(events[i], events[i + 1]) for i in range(SPINS)]


def test_a_short_phase_reads_the_same_in_a_stream_and_in_a_graph(
    context: Context, timer: Timer, spin: KernelLaunch
) -> None:
    timer.split([[spin]] * SPINS)
    stream_s = median(timer.split([[spin]] * SPINS)[0])
    graph_s = median(graph_times(context, timer, spin))
    assert stream_s >= SPIN_NS * 1e-9
    assert abs(stream_s - graph_s) <= timer.floor_s, f"{stream_s} {graph_s} {timer.floor_s}"


@pytest.fixture
def recorder(context: Context, tools: Tools) -> KernelRecorder:
    found, notes = open_recorder(context, tools)
    if found is None:
        pytest.skip(f"CUPTI is not here {notes}")
    return found


def test_cupti_records_each_kernel_of_a_stream_and_of_a_graph(
    context: Context, recorder: KernelRecorder, spin: KernelLaunch
) -> None:
    def in_the_stream() -> None:
        for _ in range(SPINS):
            spin()

    graph = capture(context, [spin] * SPINS, "a test")
    for work in (in_the_stream, lambda: graph.launch(context.stream)):
        spans = recorder.record(work, "a test")
        assert [span.name for span in spans] == ["spin"] * SPINS
        assert all(span.end - span.start >= SPIN_NS - recorder.floor_s * 1e9 for span in spans)
        assert all(after.start >= span.end for span, after in pairwise(spans)), "one stream, one at a time"


def test_what_a_failed_recording_left_is_not_in_the_next(
    recorder: KernelRecorder, spin: KernelLaunch
) -> None:
    def failing() -> None:
        spin()
        raise BlockerTimedOut

    recorder.record(spin, "a test")
    with pytest.raises(BlockerTimedOut):
        recorder.record(failing, "a test")
    assert len(recorder.record(spin, "a test")) == 1


def test_a_slow_host_does_not_show(context: Context, timer: Timer, tools: Tools) -> None:
    """Without the blocker each of these launches would be milliseconds late."""
    empty = tools.empty()

    def dawdling() -> None:
        end = time.perf_counter() + 0.003
        while time.perf_counter() < end:
            pass
        empty()

    device_s, submit_s = timer.whole([dawdling] * 10)
    assert submit_s > 0.03
    assert device_s < 0.003


def test_a_blocker_that_nobody_releases_gives_up_and_says_so(context: Context, tools: Tools) -> None:
    blocker = Blocker(context, tools, timeout_s=0.05)
    blocker.hold()
    context.synchronize("the blocker", deadline_s=5.0)
    with pytest.raises(BlockerTimedOut):
        blocker.verify()
    blocker.hold()
    blocker.release()
    context.synchronize("the blocker", deadline_s=5.0)
    blocker.verify()


@pytest.fixture(scope="module")
def short() -> Iterator[Session]:
    """Kernels of about 2 us, of which a host enqueues hardly one in 4."""
    session = Session.open("cuda", Workload("short", Dims(8, 32, 2, 32, 4, 32), 1))
    yield session
    session.close()


def measured(session: Session, word: str) -> PlanResult:
    skip_refused(session, parse_word(word))
    lane = session.measure(parse_word(word), seconds=1.0).lane("current")
    assert lane is not None
    return lane


def test_a_stream_of_short_kernels_is_bound_by_its_host_and_its_graph_is_not(short: Session) -> None:
    stream, graph = measured(short, "coalesced"), measured(short, "coalesced,graph=on")
    assert stream.submit_s is not None
    assert graph.submit_s is not None
    assert graph.submit_s < stream.submit_s / 3
    assert stream.host_bound, (stream.submit_s, stream.device_s)
    assert not graph.host_bound, (graph.submit_s, graph.device_s)
    (timer,) = {row.timer for row in stream.rows if row.phase == "w1"}
    assert timer in {"cupti", "event"}


def test_a_framework_that_submits_each_operation_is_bound_by_its_host(short: Session) -> None:
    eager = measured(short, "torch-eager")
    assert eager.host_bound, (eager.submit_s, eager.device_s)


def test_closing_gives_the_memory_back(context: Context) -> None:
    before = context.free_bytes()
    session = Session.open("cuda", STANDARD["gpt2-small"])
    session.check(PlanRequest("coalesced"))
    used = before - context.free_bytes()
    session.close()
    assert used > 300_000_000
    assert before - context.free_bytes() < SLACK_BYTES
