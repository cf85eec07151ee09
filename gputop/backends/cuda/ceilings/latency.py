"""How long one load takes, from L2 and from DRAM (kernels/measure/latency.cu)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from gputop.backends.cuda.ceilings.steps import ProbeStep
from gputop.backends.cuda.ceilings.stopwatch import NS, Stamp, Stopwatch
from gputop.backends.cuda.runtime.context import Context
from gputop.backends.cuda.runtime.launch import Geometry
from gputop.backends.cuda.runtime.nvml import Nvml
from gputop.backends.cuda.runtime.utility_kernels import Tools
from gputop.backends.cuda.timing.events import Timer
from gputop.results.records import Ceiling
from gputop.util.units import si

ONE_THREAD = Geometry((1, 1, 1), (1, 1, 1))
MIB = 1 << 20
L2_SHARE = 4
"""The L2's walk stays within this part of the cache."""


@dataclass(frozen=True, slots=True)
class LatencyProbe:
    """A walk over nodes; a run of the kernel is as many loads as a window has nodes."""

    name: str
    title: str
    window_bytes: int
    windows: int
    """More than a measurement walks through, so that DRAM's nodes are all met for the first time."""
    stride_bytes: int
    sane_s: tuple[float, float]
    """What any recent device lies between."""


L2_PROBE = LatencyProbe("l2_latency", "past L1", 4 * MIB, 1, 256, (100 * NS, 400 * NS))
DRAM_PROBE = LatencyProbe("dram_latency", "from DRAM", 16 * MIB, 24, 1024, (300 * NS, 1500 * NS))
LATENCY_PROBES = (L2_PROBE, DRAM_PROBE)


class LatencyProbes:
    """Seconds from a load's issue to its use, nothing else under way."""

    def __init__(self, context: Context, tools: Tools, timer: Timer, nvml: Nvml) -> None:
        self._context = context
        self._tools = tools
        self._stamp = Stamp(context)
        self._stopwatch = Stopwatch(context, timer, nvml, self._stamp)

    def steps(self) -> Iterator[ProbeStep]:
        return (ProbeStep(probe.name, partial(self._measure, probe)) for probe in LATENCY_PROBES)

    def _measure(self, probe: LatencyProbe) -> Ceiling:
        window_nodes = self._window_bytes(probe) // probe.stride_bytes
        size = probe.windows * window_nodes * probe.stride_bytes
        nodes = self._context.array((size // 4,), np.uint32, "a latency probe")
        at = self._context.array((1,), np.uint64, "a latency probe")
        self._tools.launch(
            "latency.cu",
            "link_nodes",
            self._tools.spread(probe.windows * window_nodes),
            struct.pack(
                "<QQiii4x", nodes.data.ptr, at.data.ptr, probe.windows, window_nodes, probe.stride_bytes
            ),
        )()
        self._empty_l2()
        chase = self._tools.launch(
            "latency.cu",
            "chase",
            ONE_THREAD,
            struct.pack("<QQi4x", at.data.ptr, self._stamp.address, window_nodes),
        )
        reading = self._stopwatch.burst(chase)
        value = reading.seconds / window_nodes
        where = f"{window_nodes * probe.stride_bytes // MIB} MiB"
        return Ceiling(
            name=probe.name,
            value=value,
            unit="s",
            how=f"{window_nodes} loads in a row {probe.title}, each of the address that the one before read, "
            f"{probe.stride_bytes} B apart in no order within {where}",
            clock_hz=reading.clock_hz,
            status=latency_status(probe, value),
        )

    def _window_bytes(self, probe: LatencyProbe) -> int:
        """A walk that comes round again stays in L2: the largest power of two that its share of it holds."""
        share = self._context.l2_bytes // L2_SHARE
        if probe.windows > 1 or not share:
            return probe.window_bytes
        return min(probe.window_bytes, 1 << (share.bit_length() - 1))

    def _empty_l2(self) -> None:
        """Other lines take the place of the nodes that linking left there."""
        words = max(1, self._context.l2_bytes)
        other = self._context.array((words,), np.uint32, "a latency probe")
        self._tools.fill_words(other.data.ptr, words, 0)()


def latency_status(probe: LatencyProbe, value_s: float) -> str:
    """`ok`, or why a measured latency is not to be trusted."""
    low, high = probe.sane_s
    if low <= value_s <= high:
        return "ok"
    why = "below" if value_s < low else "above"
    cause = "a nearer cache answered" if value_s < low else "something else used the device"
    return f"{why} what devices have, {si(low, 's')} to {si(high, 's')}: perhaps {cause}"
