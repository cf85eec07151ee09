"""Peaks of memory: DRAM read and copy, L2 read (kernels/measure/bandwidth.cu)."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from gputop.backends.cuda.context import Context
from gputop.backends.cuda.health import Nvml
from gputop.backends.cuda.launch import Geometry, KernelLaunch
from gputop.backends.cuda.probes import Stamp, Stopwatch, best, clock_words
from gputop.backends.cuda.timing import Timer
from gputop.backends.cuda.tools import Tools, halves
from gputop.device import find_model
from gputop.results import Ceiling, DeviceFacts

THREADS = 512
WORD16 = 16
LARGEST_BYTES = 4 << 30
WEIGHT_SET_BYTES = 340 << 20
"""The weights of gpt2-small: a read of that size is what a pass does."""
L2_SHARE = 4
"""The L2 probe reads this part of the cache: small enough to stay in whichever half of it is near."""
L2_STEP_BYTES = THREADS * 8 * WORD16
L2_REPEATS = 4
WAVES = (1, 2, 4, 8)
"""Grids tried, in fills of the device: which one is fastest differs from card to card."""
NOISE = 0x3F8E2A51


class MemoryProbes:
    """Measures on buffers that live only as long as `measure` runs."""

    def __init__(self, context: Context, tools: Tools, timer: Timer, nvml: Nvml, facts: DeviceFacts) -> None:
        self._context = context
        self._tools = tools
        self._facts = facts
        self._stamp = Stamp(context)
        self._stopwatch = Stopwatch(context, timer, nvml, self._stamp)

    def measure(self) -> list[Ceiling]:
        size = min(LARGEST_BYTES, self._context.free_bytes() // 4) // (1 << 20) * (1 << 20)
        source, target = (self._context.array((size // 4,), np.uint32, "the DRAM probe") for _ in range(2))
        for array in (source, target):
            self._tools.fill_words(array.data.ptr, array.size, NOISE)()
        return [self._read(source, target, size), self._copy(source, target, size), self._l2(source, target)]

    def _read(self, source: Any, target: Any, size: int) -> Ceiling:
        small = min(size, WEIGHT_SET_BYTES)
        call, words, reading = best(self._grids("dram_read", source, target, size), self._stopwatch)
        _, _, small_reading = best(self._grids("dram_read", source, target, small), self._stopwatch)
        steady, seen = self._stopwatch.sustained(call, reading.seconds)
        how = (
            f"read of {size >> 20} MiB, {words}; {small / small_reading.seconds / 1e12:.2f} TB/s at "
            f"{small >> 20} MiB; {clock_words(steady.clock_hz, seen)}"
        )
        return self._ceiling("dram_read", size, reading, steady, how, self._datasheet())

    def _copy(self, source: Any, target: Any, size: int) -> Ceiling:
        call, words, reading = best(self._grids("dram_copy", source, target, size), self._stopwatch)
        steady, seen = self._stopwatch.sustained(call, reading.seconds)
        clock = clock_words(steady.clock_hz, seen)
        how = f"copy of {size >> 20} MiB, read and written counted, {words}; {clock}"
        return self._ceiling("dram_copy", 2 * size, reading, steady, how, self._datasheet())

    def _l2(self, source: Any, target: Any) -> Ceiling:
        size = max(L2_STEP_BYTES, self._context.l2_bytes // L2_SHARE // L2_STEP_BYTES * L2_STEP_BYTES)
        blocks = self._resident("l2_read") * self._context.sm_count
        call = self._launch("l2_read", source, target, size, blocks)
        reading = self._stopwatch.burst(call)
        steady, seen = self._stopwatch.sustained(call, reading.seconds)
        clock = clock_words(steady.clock_hz, seen)
        how = f"every block reads the same {size >> 20} MiB past L1, {blocks} blocks; {clock}"
        return self._ceiling("l2_read", blocks * L2_REPEATS * size, reading, steady, how, None)

    def _grids(self, entry: str, source: Any, target: Any, size: int) -> list[tuple[KernelLaunch, str]]:
        fill = self._resident(entry) * self._context.sm_count
        return [
            (self._launch(entry, source, target, size, waves * fill), f"{waves * fill} blocks of {THREADS}")
            for waves in WAVES
        ]

    def _resident(self, entry: str) -> int:
        return max(1, self._tools.function("bandwidth.cu", entry).blocks_per_sm(THREADS, 0))

    def _launch(self, entry: str, source: Any, target: Any, size: int, blocks: int) -> KernelLaunch:
        arguments = struct.pack(
            "<QQQiii4x",
            source.data.ptr,
            target.data.ptr,
            self._stamp.address,
            *halves(size // WORD16),
            L2_REPEATS,
        )
        return self._tools.launch("bandwidth.cu", entry, Geometry((blocks, 1, 1), (THREADS, 1, 1)), arguments)

    def _ceiling(
        self, name: str, size: int, reading: Any, steady: Any, how: str, datasheet: float | None
    ) -> Ceiling:
        value = size / reading.seconds
        above = datasheet is not None and value > datasheet
        return Ceiling(
            name=name,
            value=value,
            unit="B/s",
            how=how,
            clock_hz=reading.clock_hz,
            sustained=size / steady.seconds,
            datasheet=datasheet,
            status="above the datasheet: bytes or time are counted wrong" if above else "ok",
        )

    def _datasheet(self) -> float | None:
        model = find_model(self._facts.name)
        return model.get("dram_read") if model else None
