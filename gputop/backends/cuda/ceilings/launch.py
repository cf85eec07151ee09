"""What a launch costs: in the stream, as a graph's node, when it needs the one before, and to the host.

What a first load, a last store, a further block and cold machine code add to a launch are differences between
chains of launches: what is measured so holds address translation, parameters and caches as a pass has them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from gputop.backends.cuda.ceilings.steps import ProbeStep
from gputop.backends.cuda.compiler.cubin import entry_code
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
DRAM_SPACING = 8
"""Words between the words of neighbouring threads that come from DRAM: a sector each."""
MANY_BLOCKS = 64
"""Blocks an SM of the launch that shows what a further block costs."""
CODES = 6
"""Kernels of kernels/measure/code.cu: together more than an instruction cache holds."""
CODE_THREADS = 128
LEAST_S = 1e-9
"""Nothing shorter can be told from nothing."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Launches in a row, all of one entry of kernels/measure/dependent.cu."""

    entry: str
    mode: str
    """`queued`, `graph` or `pdl`."""
    blocks: int
    from_dram: bool = False
    """Each launch reads words of its own that are not in L2."""
    smem_bytes: tuple[int, ...] = (0,)
    """Dynamic shared memory of the launches, in turn."""


class LaunchProbes:
    """Costs in seconds a launch, the least of several runs."""

    def __init__(self, context: Context, tools: Tools, timer: Timer) -> None:
        self._context = context
        self._tools = tools
        self._timer = timer
        self._buffers: list[Any] = []
        """What the launches of the last chain read and write: they hold addresses only."""

    def steps(self) -> Iterator[ProbeStep]:
        yield ProbeStep("empty launches", self._empties)
        yield ProbeStep("dependent launches", self._chains)
        yield ProbeStep("code_fetch", self._code)
        yield ProbeStep("grid_barrier", self._barrier)

    def _empties(self) -> list[Ceiling]:
        empties = [self._tools.empty()] * LAUNCHES
        stream_s = min(self._stream(empties) for _ in range(RUNS)) / LAUNCHES
        host_s = min(self._timer.whole(empties)[1] for _ in range(RUNS)) / LAUNCHES
        graph_s = self._graph(empties) / LAUNCHES
        return [
            _cost(
                "launch_stream", stream_s, f"{LAUNCHES} empty launches back to back, until the last is done"
            ),
            _cost("call", host_s, f"host time to enqueue one launch, mean of {LAUNCHES}"),
            _cost("launch_graph", graph_s, f"a graph of {LAUNCHES} empty nodes in a chain"),
        ]

    def _chains(self) -> list[Ceiling]:
        """Costs of launches that wait for each other, and what the first load and the last store add."""
        sms = self._context.sm_count
        modes = ["queued", "graph", *(["pdl"] if self._has_pdl else [])]
        shape = f"{DEPENDENT} launches of {sms} x {DEPENDENT_THREADS}"
        words = {
            "queued": f"{shape}, all enqueued before the first starts",
            "graph": f"a graph of {shape}",
            "pdl": f"a graph of {shape} with programmatic dependent launch",
        }
        empty, loading, storing = (
            {mode: self._chain_s(Chain(entry, mode, sms)) for mode in modes}
            for entry in ("chained", "loading", "dependent")
        )
        graph = words["graph"]
        from_dram = self._chain_s(Chain("loading", "graph", sms, from_dram=True))
        many = self._chain_s(Chain("chained", "graph", MANY_BLOCKS * sms))
        most = self._context.smem_optin_bytes
        in_turn = self._chain_s(Chain("chained", "graph", sms, smem_bytes=(0, most)))
        reads = "each reading what the one before wrote"
        dependent = {"queued": "launch_queued", "graph": "launch_dependent", "pdl": "launch_pdl"}
        items = [
            *(_cost(f"launch_empty_{mode}", empty[mode], f"{words[mode]}, empty") for mode in modes),
            *(_cost(dependent[mode], storing[mode], f"{words[mode]}, {reads}") for mode in modes),
            _cost("first_load_l2", loading["graph"] - empty["graph"], f"{graph}: each loads a word from L2"),
            _cost("first_load_dram", from_dram - empty["graph"], f"{graph}: each loads a word from DRAM"),
            _cost("last_store", storing["graph"] - loading["graph"], f"{graph}: each stores a word"),
            _cost(
                "block_start",
                (many - empty["graph"]) / (MANY_BLOCKS - 1),
                f"a further empty block on every SM, of {MANY_BLOCKS}",
            ),
            _cost(
                "launch_empty_carve_out",
                in_turn,
                f"{graph}, empty, with shared memory of 0 and {most} B in turn",
            ),
        ]
        if self._has_pdl:
            how = f"{words['pdl']}: each loads a word from L2"
            items.append(_cost("first_load_pdl", loading["pdl"] - empty["pdl"], how))
        return items

    def _code(self) -> Ceiling:
        """Bytes of machine code a second: kernels in turn take longer than one of them again and again."""
        geometry = Geometry((self._context.sm_count, 1, 1), (CODE_THREADS, 1, 1))
        arguments = struct.pack("<Qf4x", 0, 0.75)
        kernels = [
            self._tools.launch("code.cu", f"straight_code_{index}", geometry, arguments)
            for index in range(CODES)
        ]
        cold_s = self._graph(kernels * (DEPENDENT // CODES)) / DEPENDENT
        warm_s = self._graph(kernels[:1] * DEPENDENT) / DEPENDENT
        function = kernels[0].function
        size = len(entry_code(function.cubin.code, function.name))
        how = (
            f"{CODES} kernels of {size >> 10} KiB of straight code in turn, less one of them again and again"
        )
        return Ceiling("code_fetch", size / (cold_s - warm_s), "B/s", how)

    def _barrier(self) -> Ceiling:
        blocks = BARRIER_BLOCKS * self._context.sm_count
        barriers_s = self._barriers(BARRIERS, blocks) - self._barriers(0, blocks)
        how = f"mean of {BARRIERS} in one cooperative launch of {blocks} blocks of {BARRIER_THREADS}"
        return _cost("grid_barrier", barriers_s / BARRIERS, how)

    @property
    def _has_pdl(self) -> bool:
        return int(self._context.arch) >= FIRST_WITH_PDL

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

    def _chain_s(self, chain: Chain) -> float:
        """Device seconds of one launch of a chain."""
        launches = self._launches(chain)
        before = self._empty_l2 if chain.from_dram else _nothing
        run = self._queued if chain.mode == "queued" else self._graph
        return run(launches, before) / DEPENDENT

    def _graph(self, calls: Sequence[Call], before: Callable[[], None] | None = None) -> float:
        """Device seconds of the calls as one graph."""
        graph = capture(self._context, calls, "the launch probe")

        def launch() -> None:
            graph.launch(self._context.stream)

        return self._queued([launch], before)

    def _queued(self, calls: Sequence[Call], before: Callable[[], None] | None = None) -> float:
        """Device seconds of calls that all wait in the stream when the first starts; `before` each run."""

        def once() -> float:
            (before or _nothing)()
            return self._timer.whole(calls)[0]

        return min(once() for _ in range(RUNS))

    def _launches(self, chain: Chain) -> list[KernelLaunch]:
        """There and back between two buffers; each launch's own words where they come from DRAM."""
        threads = chain.blocks * DEPENDENT_THREADS
        spacing = DRAM_SPACING if chain.from_dram else 1
        parts = DEPENDENT if chain.from_dram else 1
        source = self._context.array((threads * spacing * parts,), np.float32, "a probe")
        target = self._context.array((threads * spacing,), np.float32, "a probe")
        self._buffers = [source, target]
        for buffer in self._buffers:
            self._tools.fill_words(buffer.data.ptr, buffer.size, 0)()
        entry = f"{chain.entry}_pdl" if chain.mode == "pdl" else chain.entry
        calls = []
        for i in range(DEPENDENT):
            ends = (source.data.ptr, target.data.ptr)
            a, b = ends if chain.from_dram or i % 2 == 0 else ends[::-1]
            offset = 4 * threads * spacing * (i % parts)
            geometry = Geometry(
                (chain.blocks, 1, 1),
                (DEPENDENT_THREADS, 1, 1),
                chain.smem_bytes[i % len(chain.smem_bytes)],
                pdl=chain.mode == "pdl",
            )
            arguments = struct.pack("<QQii", a + offset, b, threads, spacing)
            calls.append(self._tools.launch("dependent.cu", entry, geometry, arguments))
        return calls

    def _empty_l2(self) -> None:
        """Other lines take the place of those that a chain has read before."""
        words = self._context.l2_bytes // 2
        other = self._context.array((words,), np.uint32, "a launch probe")
        self._tools.fill_words(other.data.ptr, words, 0)()
        self._context.synchronize("a launch probe")


def _nothing() -> None:
    """Needs nothing done before a run."""


def _cost(name: str, seconds: float, how: str) -> Ceiling:
    """A difference of two chains may come out below nothing, by less than their spread."""
    return Ceiling(name, max(LEAST_S, seconds), "s", how)
