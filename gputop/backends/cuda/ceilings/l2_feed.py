"""How fast SMs take bytes from L2, by how many of them do at once.

An SM's path to L2 is its own, and all of them share L2: few SMs get more each than all together do. Tiles of
one panel read the same words at the same time, which L2 serves together. So there are two curves:
`l2_read_N`, where no two SMs read the same words at once, and `l2_panel_N`, where four do. Each figure is
the best of three ways: loads into registers (kernels/measure/bandwidth.cu), asynchronous copies by all
threads (async_read.cu), and bulk copies by one thread (bulk_read.cu).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from gputop.backends.cuda.ceilings.memory import THREADS, golden_stride
from gputop.backends.cuda.ceilings.steps import ProbeStep
from gputop.backends.cuda.ceilings.stopwatch import PeakReading, Stamp, Stopwatch
from gputop.backends.cuda.runtime.context import Context
from gputop.backends.cuda.runtime.launch import FIRST_WITH_PDL, Geometry, KernelLaunch
from gputop.backends.cuda.runtime.nvml import Nvml
from gputop.backends.cuda.runtime.utility_kernels import Tools, halves
from gputop.backends.cuda.timing.events import Timer
from gputop.results.records import Ceiling

SM_COUNTS = (1, 48, 96)
"""Beside all of them."""
PANEL_SMS = 4
"""SMs that read the same words at once in `l2_panel`; more of them get no more."""
STAGE_BYTES = 16384
L2_SHARE = 4
"""The words read are this part of L2: they stay in whichever half of it is near."""
LEAST_BYTES = 8 << 20
"""That each block reads in all."""
NOISE = 0x3F8E2A51


@dataclass(frozen=True, slots=True)
class Way:
    """One way to bring words from L2 to an SM."""

    title: str
    source: str
    entry: str
    threads: int
    step_bytes: int
    smem_bytes: int = 0
    least_arch: int = 80


REGISTERS = Way("loads into registers", "bandwidth.cu", "l2_read", THREADS, THREADS * 8 * 16)
WAYS = (
    REGISTERS,
    Way("cp.async", "async_read.cu", "async_read", 256, STAGE_BYTES, 8 * STAGE_BYTES),
    Way("bulk copies", "bulk_read.cu", "bulk_read", 32, STAGE_BYTES, 12 * STAGE_BYTES, FIRST_WITH_PDL),
)


class FeedProbes:
    """Bytes a second that all the reading SMs get together."""

    def __init__(self, context: Context, tools: Tools, timer: Timer, nvml: Nvml) -> None:
        self._context = context
        self._tools = tools
        self._stamp = Stamp(context)
        self._stopwatch = Stopwatch(context, timer, nvml, self._stamp)
        self._source = context.array((self._bytes // 4,), np.uint32, "the L2 probe")
        tools.fill_words(self._source.data.ptr, self._source.size, NOISE)()

    def steps(self) -> Iterator[ProbeStep]:
        sms = self._context.sm_count
        counts = [*(count for count in SM_COUNTS if count < sms), sms]
        probes = [
            *((f"l2_read_{count}", count, 1) for count in counts[:-1]),
            *((f"l2_panel_{count}", count, PANEL_SMS) for count in counts if count >= PANEL_SMS),
        ]
        return (ProbeStep(name, partial(self._best, name, count, group)) for name, count, group in probes)

    def _best(self, name: str, blocks: int, group: int) -> Ceiling:
        ways = [way for way in WAYS if int(self._context.arch) >= way.least_arch]
        rated = [(*self._rate(way, blocks, group), way) for way in ways]
        value, reading, way = max(rated, key=lambda entry: entry[0])
        words = f"{group} of them the same words at once" if group > 1 else "no two the same words at once"
        return Ceiling(
            name=name,
            value=value,
            unit="B/s",
            how=f"{blocks} SMs together by {way.title} from {self._bytes >> 20} MiB, {words}",
            clock_hz=reading.clock_hz,
        )

    def _rate(self, way: Way, blocks: int, group: int) -> tuple[float, PeakReading]:
        """B/s of so many blocks, one an SM, of which each `group` read the same words."""
        steps = self._bytes // way.step_bytes
        repeats = max(1, LEAST_BYTES // (steps * way.step_bytes))
        reading = self._stopwatch.burst(self._launch(way, blocks, steps, repeats, group))
        return blocks * steps * repeats * way.step_bytes / reading.seconds, reading

    @property
    def _bytes(self) -> int:
        return self._context.l2_bytes // L2_SHARE // (1 << 20) * (1 << 20)

    def _launch(self, way: Way, blocks: int, steps: int, repeats: int, group: int) -> KernelLaunch:
        geometry = Geometry((blocks, 1, 1), (way.threads, 1, 1), way.smem_bytes)
        address, stride = self._source.data.ptr, golden_stride(steps)
        if way is REGISTERS:
            # Its kernel is that of `l2_read`, with that one's arguments.
            words = halves(steps * way.step_bytes // 16)
            arguments = struct.pack(
                "<QQQiiiii4x", address, address, self._stamp.address, *words, repeats, stride, group
            )
        else:
            arguments = struct.pack("<QQiiii", address, self._stamp.address, steps, repeats, stride, group)
        return self._tools.launch(way.source, way.entry, geometry, arguments)
