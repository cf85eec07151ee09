"""This device's peaks: measured once for device, driver and version of gputop, then read back."""

from __future__ import annotations

import hashlib
import math
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from gputop import __version__
from gputop.backends.base import Say
from gputop.backends.cuda.bind import Libraries
from gputop.backends.cuda.context import Context
from gputop.backends.cuda.health import Nvml
from gputop.backends.cuda.probes_latency import LatencyProbes
from gputop.backends.cuda.probes_launch import LaunchProbes
from gputop.backends.cuda.probes_math import MATH_PROBES, MathProbes
from gputop.backends.cuda.probes_memory import MemoryProbes
from gputop.backends.cuda.timing import Timer
from gputop.backends.cuda.tools import Tools
from gputop.paths import cache_dir, keep
from gputop.results import SCHEMA_CEILINGS, Ceiling, Ceilings, DeviceFacts

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
    "grid_barrier",
    "call",
)
"""Measured on every device; what an architecture has besides comes on top."""


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
        self._math = MathProbes(context, tools, timer, libraries, nvml, facts)
        self._latency = LatencyProbes(context, tools, timer, nvml)
        self._launch = LaunchProbes(context, tools, timer)

    def measure(self, say: Say) -> Ceilings:
        """Memory first, so that the math's heat does not lie on it."""
        items: list[Ceiling] = []
        say("measuring DRAM and L2")
        items += self._memory.measure()
        say("measuring how long a load takes")
        items += self._latency.measure()
        for probe in MATH_PROBES:
            if self._math.offered(probe):
                say(f"measuring {probe.title}")
                items.append(self._math.measure(probe))
        say("measuring what a launch costs")
        items += self._launch.measure()
        return Ceilings(
            device=self._facts.name,
            driver=self._facts.driver,
            time_utc=datetime.now(UTC).isoformat(timespec="seconds"),
            items=tuple(items),
            versions=self._facts.versions,
        )


def load(facts: DeviceFacts) -> Ceilings | None:
    """What was measured before on this device; None where there is nothing to trust."""
    try:
        kept = msgspec.json.decode(_file(facts).read_bytes(), type=Ceilings)
    except (OSError, msgspec.DecodeError):
        return None
    return kept if _trusted(kept) else None


def save(facts: DeviceFacts, ceilings: Ceilings) -> None:
    """Keep them if they can be trusted."""
    if _trusted(ceilings):
        keep(_file(facts), msgspec.json.encode(ceilings))


def _trusted(ceilings: Ceilings) -> bool:
    """Whether what every device has is there, and each is a rate or a time.

    One below what the hardware should reach is kept with its status, which windows repeat: measuring it
    again at every start would take seconds and say the same.
    """
    return {item.name for item in ceilings.items} >= set(NAMES) and all(
        0 < item.value < math.inf for item in ceilings.items
    )


def _file(facts: DeviceFacts) -> Path:
    key = (SCHEMA_CEILINGS, str(facts.uuid), str(facts.driver), facts.versions, __version__)
    return cache_dir("ceilings") / f"cuda-{hashlib.sha256(chr(10).join(key).encode()).hexdigest()[:16]}.json"
