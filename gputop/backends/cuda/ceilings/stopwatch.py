"""What the probes of peaks share: a run of known work, timed, with the clock it ran at."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

from gputop.backends.cuda.runtime.context import Context
from gputop.backends.cuda.runtime.nvml import Nvml
from gputop.backends.cuda.runtime.status_codes import explained
from gputop.backends.cuda.timing.events import Call, Timer

BURST_RUNS = 5
SUSTAINED_S = 0.4
"""Long enough for power management to settle: its control loops act within tens of milliseconds."""
NS = 1e-9


@dataclass(frozen=True, slots=True)
class PeakReading:
    """Seconds of one run and the SM clock during it."""

    seconds: float
    clock_hz: float | None


class Stamp:
    """The cycle and nanosecond counters that probes add to (kernels/include/stamp.cuh)."""

    def __init__(self, context: Context) -> None:
        self._counters, self.address = context.mapped(2, ctypes.c_longlong)

    def reset(self) -> None:
        self._counters[0] = self._counters[1] = 0

    def clock_hz(self) -> float | None:
        """Mean SM clock of the runs since `reset`; None when nothing was counted."""
        cycles, nanoseconds = self._counters
        return cycles / (nanoseconds * NS) if nanoseconds > 0 and cycles > 0 else None


class Stopwatch:
    """Burst and sustained times of one call."""

    def __init__(self, context: Context, timer: Timer, nvml: Nvml, stamp: Stamp) -> None:
        self._context = context
        self._timer = timer
        self._nvml = nvml
        self._stamp = stamp

    def burst(self, call: Call, runs: int = BURST_RUNS) -> PeakReading:
        """The fastest of a few runs after one that warms up, each timed by itself."""
        # A library loads its kernel at the first call, which must not happen behind the blocker.
        call()
        self._context.synchronize("a probe")
        readings = [self._once(call) for _ in range(runs + 1)]
        return min(readings[1:], key=lambda reading: reading.seconds)

    def sustained(self, call: Call, seconds: float) -> tuple[PeakReading, float | None]:
        """Mean of the second half of `SUSTAINED_S` of back-to-back runs, and NVML's clock meanwhile.

        `seconds`: what one run takes, about.
        """
        runs = max(2, int(SUSTAINED_S / seconds))
        half = runs // 2
        first, last = self._timer.own_events(2)
        with explained("a sustained run"):
            self._repeat(call, runs - half)
            self._context.synchronize("a sustained run")
            self._stamp.reset()
            first.record(self._context.stream)
            self._repeat(call, half)
            last.record(self._context.stream)
            seen_hz = self._nvml.sm_clock_hz()
        self._context.synchronize("a sustained run")
        return PeakReading(self._timer.between(first, last) / half, self._stamp.clock_hz()), seen_hz

    def _once(self, call: Call) -> PeakReading:
        self._stamp.reset()
        (seconds,), _ = self._timer.split([[call]])
        return PeakReading(seconds, self._stamp.clock_hz())

    def _repeat(self, call: Call, runs: int) -> None:
        for _ in range(runs):
            call()


def clock_words(device_hz: float | None, nvml_hz: float | None) -> str:
    """`sustained at 1.755 GHz (NVML: 1.755 GHz)`, as far as it is known."""
    if device_hz is None:
        return "clock unknown" if nvml_hz is None else f"sustained at {nvml_hz / 1e9:.3f} GHz by NVML"
    seen = f" (NVML: {nvml_hz / 1e9:.3f} GHz)" if nvml_hz is not None else ""
    return f"sustained at {device_hz / 1e9:.3f} GHz{seen}"


def best(candidates: Sequence[tuple[Call, str]], stopwatch: Stopwatch) -> tuple[Call, str, PeakReading]:
    """The fastest of several ways to do the same work."""
    timed = [(call, words, stopwatch.burst(call)) for call, words in candidates]
    return min(timed, key=lambda entry: entry[2].seconds)
