"""Peaks of memory: DRAM read and copy, L2 read (kernels/measure/bandwidth.cu)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import partial
from math import gcd
from typing import Any

import numpy as np

from gputop.backends.cuda.ceilings.steps import ProbeStep
from gputop.backends.cuda.ceilings.stopwatch import Stamp, Stopwatch, best, clock_words
from gputop.backends.cuda.runtime.context import Context
from gputop.backends.cuda.runtime.launch import Geometry, KernelLaunch
from gputop.backends.cuda.runtime.nvml import Nvml
from gputop.backends.cuda.runtime.utility_kernels import Tools, halves
from gputop.backends.cuda.timing.events import Call, Timer
from gputop.perf.gpu_specs import find_model
from gputop.results.records import Ceiling, DeviceFacts

THREADS = 512
WORD16 = 16
LARGEST_BYTES = 4 << 30
WEIGHT_SET_BYTES = 340 << 20
"""The weights of gpt2-small: a read of that size is what a pass does."""
L2_SHARE = 4
"""The L2 probe reads this part of the cache: small enough to stay in whichever half of it is near."""
L2_STEP_BYTES = THREADS * 8 * WORD16
L2_REPEATS = 4
COPIES = {
    "dram_copy": "eight streams",
    "dram_copy_tiles": "tile by tile",
    "dram_copy_cached": "tile by tile through the caches",
}
"""Entry -> how its `how` says what it does."""
DEVICE_TO_DEVICE = 3
"""Of cudaMemcpyKind."""
WAVES = (1, 2, 4, 8, 32)
"""Grids tried, in fills of the device: which one is fastest differs from card to card."""
NOISE = 0x3F8E2A51


class MemoryProbes:
    """Measures on buffers that live only as long as `steps` runs."""

    def __init__(self, context: Context, tools: Tools, timer: Timer, nvml: Nvml, facts: DeviceFacts) -> None:
        self._context = context
        self._tools = tools
        self._facts = facts
        self._stamp = Stamp(context)
        self._stopwatch = Stopwatch(context, timer, nvml, self._stamp)

    def steps(self) -> Iterator[ProbeStep]:
        """Return the steps. Their buffers live as long as this object."""
        size = min(LARGEST_BYTES, self._context.free_bytes() // 4) // (1 << 20) * (1 << 20)
        source, target = (self._context.array((size // 4,), np.uint32, "the DRAM probe") for _ in range(2))
        for array in (source, target):
            self._tools.fill_words(array.data.ptr, array.size, NOISE)()
        yield ProbeStep("dram_read", partial(self._read, source, target, size))
        yield ProbeStep("dram_copy", partial(self._copy, source, target, size))
        yield ProbeStep("l2_read", partial(self._l2, source, target))

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
        """The fastest of our own ways and the driver's: which one that is differs from card to card."""
        candidates: list[tuple[Call, str]] = [
            (call, f"{way}, {words}")
            for entry, way in COPIES.items()
            for call, words in self._grids(entry, source, target, size)
        ]
        candidates.append((self._driver_copy(source, target, size), "by the driver's own copy"))
        call, words, reading = best(candidates, self._stopwatch)
        steady, seen = self._stopwatch.sustained(call, reading.seconds)
        clock = clock_words(steady.clock_hz, seen)
        how = f"copy of {size >> 20} MiB, read and written counted, {words}; {clock}"
        return self._ceiling("dram_copy", 2 * size, reading, steady, how, self._datasheet())

    def _driver_copy(self, source: Any, target: Any, size: int) -> Call:
        def copy() -> None:
            self._context.copy_async(target.data.ptr, source.data.ptr, size, DEVICE_TO_DEVICE)

        return copy

    def _l2(self, source: Any, target: Any) -> Ceiling:
        """One or two blocks an SM, each at steps of its own at any time."""
        share, sms = self._context.l2_bytes // L2_SHARE, self._context.sm_count
        candidates = []
        for resident in range(1, self._resident("l2_read") + 1):
            steps = max(1, share // L2_STEP_BYTES, resident * sms)
            if resident > 1 and steps * L2_STEP_BYTES > self._context.l2_bytes // 2:
                break
            call = self._launch("l2_read", source, target, steps * L2_STEP_BYTES, resident * sms, steps)
            candidates.append((resident * sms * steps * L2_STEP_BYTES * L2_REPEATS, call))
        timed = [(size, call, self._stopwatch.burst(call)) for size, call in candidates]
        size, call, reading = max(timed, key=lambda entry: entry[0] / entry[2].seconds)
        steady, seen = self._stopwatch.sustained(call, reading.seconds)
        blocks = call.geometry.blocks
        how = (
            f"{blocks} blocks read {size // blocks // L2_REPEATS >> 20} MiB past L1, no two the same words "
            f"at once; {clock_words(steady.clock_hz, seen)}"
        )
        return self._ceiling("l2_read", size, reading, steady, how, None)

    def _grids(self, entry: str, source: Any, target: Any, size: int) -> list[tuple[KernelLaunch, str]]:
        fill = self._resident(entry) * self._context.sm_count
        return [
            (self._launch(entry, source, target, size, waves * fill), f"{waves * fill} blocks of {THREADS}")
            for waves in WAVES
        ]

    def _resident(self, entry: str) -> int:
        return max(1, self._tools.function("bandwidth.cu", entry).blocks_per_sm(THREADS, 0))

    def _launch(
        self, entry: str, source: Any, target: Any, size: int, blocks: int, steps: int = 1
    ) -> KernelLaunch:
        arguments = struct.pack(
            "<QQQiiiii4x",
            source.data.ptr,
            target.data.ptr,
            self._stamp.address,
            *halves(size // WORD16),
            L2_REPEATS,
            golden_stride(steps),
            1,
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


def golden_stride(steps: int) -> int:
    """About the golden section of `steps`, without a factor in common with it: all are visited, scattered."""
    return next((n for n in range(max(1, int(steps * 0.618)), steps) if gcd(n, steps) == 1), 0)
