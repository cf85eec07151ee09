"""Peaks of arithmetic, one per instruction path, each beside the vendor library on the same pipe."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gputop.backends.cuda.bind import Libraries
from gputop.backends.cuda.ceilings.stopwatch import Stamp, Stopwatch, clock_words
from gputop.backends.cuda.compiler.nvrtc import arch_of
from gputop.backends.cuda.runtime.context import Context
from gputop.backends.cuda.runtime.launch import Geometry, KernelLaunch
from gputop.backends.cuda.runtime.nvml import Nvml
from gputop.backends.cuda.runtime.utility_kernels import Tools, halves
from gputop.backends.cuda.timing.events import Timer
from gputop.perf.gpu_specs import ceiling_status, find_model, pipe_limit
from gputop.results.records import Ceiling, DeviceFacts
from gputop.util.paths import kernels_dir

RUN_S = 0.006
"""Length of one run: long against its start, short against power management."""
PATH_RUN_S = 0.001
FIRST_LOOPS = 200
LIBRARY_SIDE = 8192
R_32F, R_16BF = 0, 14
COMPUTE_32F, COMPUTE_FAST_TF32 = 68, 77
FFMA_FACTOR = 0.75


@dataclass(frozen=True, slots=True)
class MathProbe:
    """One instruction path: where its loop is, and what a pass of the loop does."""

    name: str
    """Of the ceiling and, in gputop.perf.gpu_specs, of the pipe."""
    title: str
    source: str
    entry: str
    threads: int
    """Of a block; as many blocks run as fit on an SM at once."""
    warps_per_unit: int
    """Warps that one instruction counts for: 1, a warpgroup's 4."""
    flops_per_loop: int
    """Of one unit, in one pass of the loop."""
    smem_bytes: int = 0
    library: tuple[int, int] = (R_32F, COMPUTE_32F)
    """Data type and compute type of the library's product on this pipe."""


MATH_PROBES = (
    # CHAINS x UNROLL multiply-adds of 32 lanes.
    MathProbe("fp32", "fp32 FFMA", "ffma.cu", "ffma_loop", 512, 1, 16 * 32 * 32 * 2),
    MathProbe(
        "tf32_mma", "TF32 mma.sync", "mma.cu", "mma_tf32_loop", 512, 1, 8 * 8 * 2 * 16 * 8 * 8,
        library=(R_32F, COMPUTE_FAST_TF32),
    ),
    MathProbe(
        "bf16_mma", "bf16 mma.sync", "mma.cu", "mma_bf16_loop", 512, 1, 8 * 8 * 2 * 16 * 8 * 16,
        library=(R_16BF, COMPUTE_32F),
    ),
    MathProbe(
        "tf32_wgmma", "TF32 wgmma", "wgmma.cu", "wgmma_tf32_loop", 256, 4, 16 * 2 * 64 * 256 * 8,
        smem_bytes=50 * 1024, library=(R_32F, COMPUTE_FAST_TF32),
    ),
    MathProbe(
        "bf16_wgmma", "bf16 wgmma", "wgmma.cu", "wgmma_bf16_loop", 256, 4, 16 * 2 * 64 * 256 * 16,
        smem_bytes=50 * 1024, library=(R_16BF, COMPUTE_32F),
    ),
)  # fmt: skip

WGMMA_WIDTHS = (24, 48, 56, 80, 96, 128)
"""Columns of the products that kernels/measure/wgmma_widths.cu has; wgmma.cu has 256."""
PATH_PROBES = (
    # CHAINS x UNROLL products of 16 x 16 x 8.
    MathProbe("tf32_wmma", "TF32 by WMMA", "wmma.cu", "wmma_tf32_loop", 256, 1, 4 * 4 * 2 * 16 * 16 * 8),
    *(
        MathProbe(
            f"tf32_wgmma_n{columns}{where}",
            f"TF32 wgmma of {columns} columns, A in {'registers' if where else 'shared memory'}",
            "wgmma_widths.cu", f"wgmma_n{columns}{where}", 256, 4, 16 * 2 * 64 * columns * 8,
            smem_bytes=33 * 1024,
        )
        for columns in WGMMA_WIDTHS
        for where in ("", "_registers")
    ),
)  # fmt: skip
"""Ways to use a pipe that do not fill it: their rates, beside the peaks above."""


class MathProbes:
    """Register-only loops (wgmma: shared memory) that keep one pipe of every SM busy."""

    def __init__(
        self,
        context: Context,
        tools: Tools,
        timer: Timer,
        libraries: Libraries,
        nvml: Nvml,
        facts: DeviceFacts,
    ) -> None:
        self._context = context
        self._tools = tools
        self._libraries = libraries
        self._facts = facts
        self._stamp = Stamp(context)
        self._stopwatch = Stopwatch(context, timer, nvml, self._stamp)
        self._library_rates: dict[tuple[int, int], float] = {}

    def offered(self, probe: MathProbe) -> bool:
        """Return whether this architecture has the instruction."""
        text = (kernels_dir() / "measure" / probe.source).read_text(encoding="utf-8")
        return arch_of(text, self._context.arch) is not None

    def measure_path(self, probe: MathProbe) -> Ceiling:
        """The rate of one of `PATH_PROBES`: a burst alone, since what does not fill a pipe draws less
        power.
        """
        sink = self._context.array((4,), np.float32, "a probe")
        call, loops = self._sized(probe, PATH_RUN_S, sink.data.ptr)
        reading = self._stopwatch.burst(call)
        return Ceiling(
            name=probe.name,
            value=self._flops(probe, loops) / reading.seconds,
            unit="FLOP/s",
            how=f"{probe.title}, {self._blocks(probe) * probe.threads} threads an SM",
            clock_hz=reading.clock_hz,
        )

    def measure(self, probe: MathProbe) -> Ceiling:
        sink = self._context.array((4,), np.float32, "a probe")
        call, loops = self._sized(probe, RUN_S, sink.data.ptr)
        reading = self._stopwatch.burst(call)
        steady, seen = self._stopwatch.sustained(call, reading.seconds)
        flops = self._flops(probe, loops)
        value = flops / reading.seconds
        limit = self._limit(probe, reading.clock_hz)
        model = find_model(self._facts.name)
        return Ceiling(
            name=probe.name,
            value=value,
            unit="FLOP/s",
            how=f"{probe.title} loop, {self._blocks(probe) * probe.threads} threads an SM; "
            + clock_words(steady.clock_hz, seen),
            clock_hz=reading.clock_hz,
            sustained=flops / steady.seconds,
            limit=limit,
            library=self._library_rate(probe.library),
            datasheet=model.get(probe.name) if model else None,
            status=ceiling_status(value, limit, self._context.arch, probe.name),
        )

    def _sized(self, probe: MathProbe, seconds: float, sink: int) -> tuple[KernelLaunch, int]:
        """A launch that takes about so long, and its loops."""
        guess = self._stopwatch.burst(self._launch(probe, FIRST_LOOPS, sink), runs=2)
        loops = max(1, int(FIRST_LOOPS * seconds / guess.seconds))
        return self._launch(probe, loops, sink), loops

    def _limit(self, probe: MathProbe, clock_hz: float | None) -> float | None:
        facts, context = self._facts, self._context
        model = find_model(facts.name)
        # Where no clock was read, the card's highest is a limit still.
        clock_hz = clock_hz or (model.boost_hz if model else None)
        return pipe_limit(context.arch, probe.name, context.sm_count, clock_hz, facts.name)

    def _blocks(self, probe: MathProbe) -> int:
        """Blocks that an SM holds at once: a tail wave would read as a slower pipe."""
        function = self._tools.function(probe.source, probe.entry)
        function.allow_smem(probe.smem_bytes)
        return max(1, function.blocks_per_sm(probe.threads, probe.smem_bytes))

    def _flops(self, probe: MathProbe, loops: int) -> float:
        units = self._context.sm_count * self._blocks(probe) * probe.threads // 32 // probe.warps_per_unit
        return float(units) * probe.flops_per_loop * loops

    def _launch(self, probe: MathProbe, loops: int, sink: int) -> KernelLaunch:
        geometry = Geometry(
            (self._context.sm_count * self._blocks(probe), 1, 1), (probe.threads, 1, 1), probe.smem_bytes
        )
        arguments = struct.pack("<QQif", sink, self._stamp.address, loops, FFMA_FACTOR)
        return self._tools.launch(probe.source, probe.entry, geometry, arguments)

    def _library_rate(self, kind: tuple[int, int]) -> float:
        """The library's product of two large matrices of random numbers, FLOP/s; measured once each."""
        if kind not in self._library_rates:
            self._library_rates[kind] = self._measure_library(*kind)
        return self._library_rates[kind]

    def _measure_library(self, word: int, compute: int) -> float:
        side = LIBRARY_SIDE
        a, b, c = (self._context.array((side * side,), np.uint32, "the library probe") for _ in range(3))
        for seed, array in enumerate((a, b)):
            arguments = struct.pack("<Qiii4x", array.data.ptr, *halves(array.size), seed * array.size)
            self._tools.launch("fill.cu", "fill_noise", self._tools.spread(array.size), arguments)()
        call: Callable[[], None] = self._libraries.cublas.square(
            a.data.ptr, b.data.ptr, c.data.ptr, side, word, compute
        )
        return float(2.0 * side**3 / self._stopwatch.burst(call, runs=3).seconds)
