"""This device's peaks: measured once for device, driver, clock and version of gputop, then read back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec

from gputop import __version__
from gputop.backends.base import Say
from gputop.backends.cuda.bind import Libraries
from gputop.backends.cuda.ceilings.cluster import ClusterProbes
from gputop.backends.cuda.ceilings.l2_feed import FeedProbes
from gputop.backends.cuda.ceilings.latency import LatencyProbes
from gputop.backends.cuda.ceilings.launch import LaunchProbes
from gputop.backends.cuda.ceilings.library import LibraryProbes
from gputop.backends.cuda.ceilings.math import MATH_PROBES, PATH_PROBES, MathProbes
from gputop.backends.cuda.ceilings.memory import MemoryProbes
from gputop.backends.cuda.ceilings.steps import ProbeGroup, ProbeStep, run_steps
from gputop.backends.cuda.runtime.context import Context
from gputop.backends.cuda.runtime.nvml import Nvml, SmClocks
from gputop.backends.cuda.runtime.utility_kernels import Tools
from gputop.backends.cuda.timing.events import Timer
from gputop.perf.gpu_specs import ABOVE_WIDTH, BYTES_PER_SM_CLOCK, pipe_limit
from gputop.results import ceiling_checks
from gputop.results.records import SCHEMA_CEILINGS, Ceiling, Ceilings, DeviceFacts
from gputop.util.input_file import read_regular
from gputop.util.json_decode import BrokenJson, decode_json
from gputop.util.output_file import keep
from gputop.util.paths import cache_dir

NAMES = (
    "dram_read",
    "dram_copy",
    "l2_read",
    "l2_latency",
    "dram_latency",
    "fp32",
    "launch_stream",
    "launch_queued",
    "launch_graph",
    "launch_dependent",
    "launch_empty_queued",
    "launch_empty_graph",
    "first_load_l2",
    "first_load_dram",
    "last_store",
    "block_start",
    "launch_empty_carve_out",
    "code_fetch",
    "grid_barrier",
    "call",
)
"""Measured on every device; what an architecture has besides comes on top."""

MOST_CACHE_BYTES = 1 << 20

_ceilings = msgspec.json.Decoder(Ceilings)


class Prober:
    """All probes on one device; a few seconds, and up to 8 GiB of memory for as long."""

    def __init__(
        self,
        context: Context,
        tools: Tools,
        timer: Timer,
        libraries: Libraries,
        nvml: Nvml,
        facts: DeviceFacts,
    ) -> None:
        self._facts = facts
        self._memory = MemoryProbes(context, tools, timer, nvml, facts)
        self._feed = FeedProbes(context, tools, timer, nvml)
        self._clusters = ClusterProbes(context, tools, timer, nvml)
        self._math = MathProbes(context, tools, timer, libraries, nvml, facts)
        self._latency = LatencyProbes(context, tools, timer, nvml)
        self._launch = LaunchProbes(context, tools, timer)
        self._library = LibraryProbes(context, tools, timer, libraries)

    def measure(self, say: Say) -> Ceilings:
        """Memory first, so that the math's heat does not lie on it."""
        items, missing = run_steps(self._groups(), say)
        return Ceilings(
            device=self._facts.name,
            driver=self._facts.driver,
            time_utc=datetime.now(UTC).isoformat(timespec="seconds"),
            items=items,
            versions=self._facts.versions,
            missing=missing,
        )

    def _groups(self) -> Iterator[ProbeGroup]:
        yield "DRAM and L2", self._memory.steps()
        yield "how fast each SM takes bytes from L2", self._feed.steps()
        yield "how long a load takes", self._latency.steps()
        for probes, measure in ((MATH_PROBES, self._math.measure), (PATH_PROBES, self._math.measure_path)):
            for probe in filter(self._math.offered, probes):
                yield probe.title, [ProbeStep(probe.name, partial(measure, probe))]
        if self._clusters.offered:
            yield "clusters", self._clusters.steps()
        yield "what a launch costs", self._launch.steps()
        yield "how a library's product starts and ends", self._library.steps()


def load(facts: DeviceFacts) -> Ceilings | None:
    """Return what was measured before on this device; None if nothing of it can be trusted."""
    clocks = _clocks(facts)
    try:
        kept = decode_json(_ceilings, read_regular(_file(facts, clocks), MOST_CACHE_BYTES))
    except (OSError, BrokenJson):
        return None
    return kept if _trusted(kept, facts, clocks) else None


def save(facts: DeviceFacts, ceilings: Ceilings) -> None:
    """Keep them if they can be trusted."""
    clocks = _clocks(facts)
    if _trusted(ceilings, facts, clocks):
        keep(_file(facts, clocks), msgspec.json.encode(ceilings))


def _trusted(ceilings: Ceilings, facts: DeviceFacts, clocks: SmClocks) -> bool:
    """Return whether all ceilings that every device has are there, and each is possible for this device.

    One below what the hardware should reach is kept with its status, which windows repeat: measuring it
    again at every start would take seconds and say the same.
    """
    return (
        {item.name for item in ceilings.items} >= set(NAMES)
        and (ceilings.device, ceilings.driver) == (facts.name, facts.driver)
        and not any(ceiling_checks.faults(ceilings))
        and all(_possible(item, facts, clocks) for item in ceilings.items)
    )


def _possible(item: Ceiling, facts: DeviceFacts, clocks: SmClocks) -> bool:
    """Return whether the width of this device allows what was measured."""
    measured = [value for value in (item.value, item.sustained) if value is not None]
    known_hz = [clock for clock in (item.clock_hz, clocks.highest_hz) if clock is not None]
    most = _most(item, facts, min(known_hz, default=None))
    return most is None or max(measured) <= ABOVE_WIDTH * most


def _most(item: Ceiling, facts: DeviceFacts, clock_hz: float | None) -> float | None:
    """Return what the device's width allows at this clock, in the ceiling's unit; None if unknown."""
    if item.unit == "s" or clock_hz is None or not facts.sm_count or not facts.arch:
        return None
    if item.unit == "B/s":
        return facts.sm_count * BYTES_PER_SM_CLOCK * clock_hz
    return pipe_limit(facts.arch, item.name, facts.sm_count, clock_hz, facts.name)


def _clocks(facts: DeviceFacts) -> SmClocks:
    """Read the clocks as the device is set at this moment."""
    nvml = Nvml(facts.uuid)
    try:
        return nvml.sm_clocks()
    finally:
        nvml.close()


def _file(facts: DeviceFacts, clocks: SmClocks) -> Path:
    clock = f"{clocks.highest_hz} {clocks.wanted_hz}"
    key = (SCHEMA_CEILINGS, str(facts.uuid), str(facts.driver), clock, facts.versions, __version__)
    return cache_dir("ceilings") / f"cuda-{hashlib.sha256(chr(10).join(key).encode()).hexdigest()[:16]}.json"
