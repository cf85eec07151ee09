"""What a launch costs: in the stream, as a graph's node, when it needs the one before, and to the host."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np

from gputop.backends.cuda.runtime.context import Context
from gputop.backends.cuda.runtime.graph import capture
from gputop.backends.cuda.runtime.launch import FIRST_WITH_PDL, Geometry, KernelLaunch
from gputop.backends.cuda.runtime.utility_kernels import Tools
from gputop.backends.cuda.timing.events import Call, Timer
from gputop.results.records import Ceiling

LAUNCHES = 200
DEPENDENT = 60
"""Launches of a chain: a few layers' worth."""
DEPENDENT_THREADS = 256
BARRIERS = 200
BARRIER_BLOCKS, BARRIER_THREADS = 2, 128
"""Blocks of an SM and threads of a block that wait for each other: the megakernel's."""
RUNS = 7


class LaunchProbes:
    """Costs in seconds a launch, the least of several runs."""

    def __init__(self, context: Context, tools: Tools, timer: Timer) -> None:
        self._context = context
        self._tools = tools
        self._timer = timer
        self._buffers: list[Any] = []
        """What the launches of the last chain read and write: they hold addresses only."""

    def measure(self) -> list[Ceiling]:
        empties = [self._tools.empty()] * LAUNCHES
        stream_s = min(self._stream(empties) for _ in range(RUNS)) / LAUNCHES
        host_s = min(self._timer.whole(empties)[1] for _ in range(RUNS)) / LAUNCHES
        blocks = self._context.sm_count
        shape = (
            f"{DEPENDENT} launches of {blocks} x {DEPENDENT_THREADS}, each reading what the one before wrote"
        )
        items = [
            _cost(
                "launch_stream", stream_s, f"{LAUNCHES} empty launches back to back, until the last is done"
            ),
            _cost("call", host_s, f"host time to enqueue one launch, mean of {LAUNCHES}"),
            _cost(
                "launch_graph",
                self._graph(empties) / LAUNCHES,
                f"a graph of {LAUNCHES} empty nodes in a chain",
            ),
            _cost(
                "launch_queued",
                self._queued(self._there_and_back("dependent", pdl=False)) / DEPENDENT,
                f"{shape}, all enqueued before the first starts",
            ),
            _cost("launch_dependent", self._chain("dependent", pdl=False) / DEPENDENT, f"a graph of {shape}"),
        ]
        if int(self._context.arch) >= FIRST_WITH_PDL:
            how = f"a graph of {shape}, with programmatic dependent launch"
            items.append(_cost("launch_pdl", self._chain("dependent_pdl", pdl=True) / DEPENDENT, how))
        blocks = BARRIER_BLOCKS * self._context.sm_count
        barriers_s = self._barriers(BARRIERS, blocks) - self._barriers(0, blocks)
        how = f"mean of {BARRIERS} in one cooperative launch of {blocks} blocks of {BARRIER_THREADS}"
        return [*items, _cost("grid_barrier", barriers_s / BARRIERS, how)]

    def _barriers(self, count: int, blocks: int) -> float:
        """Device seconds of a cooperative launch of so many grid barriers."""
        geometry = Geometry((blocks, 1, 1), (BARRIER_THREADS, 1, 1), cooperative=True)
        arguments = struct.pack("<i", count)
        return self._queued([self._tools.launch("grid_barrier.cu", "grid_barriers", geometry, arguments)])

    def _stream(self, calls: list[KernelLaunch]) -> float:
        begun = perf_counter()
        for call in calls:
            call()
        self._context.stream.synchronize()
        return perf_counter() - begun

    def _graph(self, calls: list[KernelLaunch]) -> float:
        """Device seconds of the calls as one graph."""
        graph = capture(self._context, calls, "the launch probe")

        def launch() -> None:
            graph.launch(self._context.stream)

        return self._queued([launch])

    def _queued(self, calls: Sequence[Call]) -> float:
        """Device seconds of calls that all wait in the stream when the first starts."""
        return min(self._timer.whole(calls)[0] for _ in range(RUNS))

    def _chain(self, entry: str, pdl: bool) -> float:
        """Device seconds of `DEPENDENT` launches as one graph, each in need of the one before."""
        return self._graph(self._there_and_back(entry, pdl))

    def _there_and_back(self, entry: str, pdl: bool) -> list[KernelLaunch]:
        blocks = self._context.sm_count
        count = blocks * DEPENDENT_THREADS
        self._buffers = buffers = [self._context.array((count,), np.float32, "a probe") for _ in range(2)]
        for buffer in buffers:
            self._tools.fill_words(buffer.data.ptr, count, 0)()
        geometry = Geometry((blocks, 1, 1), (DEPENDENT_THREADS, 1, 1), pdl=pdl)
        there_and_back = [
            self._tools.launch(
                "dependent.cu",
                entry,
                geometry,
                struct.pack("<QQi4x", buffers[i].data.ptr, buffers[1 - i].data.ptr, count),
            )
            for i in (0, 1)
        ]
        return there_and_back * (DEPENDENT // 2)


def _cost(name: str, seconds: float, how: str) -> Ceiling:
    return Ceiling(name, seconds, "s", how)
