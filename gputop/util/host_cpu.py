"""The cores that this process may use, and who uses them: this process, others, or nobody, for a quota."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from gputop.util import cgroups
from gputop.util.cgroups import PROC

BUSY_FIELDS = (0, 1, 2, 5, 6, 7)
"""Of a `cpu` line of /proc/stat: user, nice, system, irq, softirq, and steal, which other guests of this
machine's host took. Idle and waiting for disks are left out; guests are in user."""
PARENT_FIELDS = (11, 12)
"""Of /proc/PID/stat, behind the name: time in user mode and in the kernel."""
CONSISTENT = 0.5
"""If all programs together ran for less than this share of what this one did, /proc/stat does not count here
(gVisor), or counts other cores (LXC)."""

LEAST_S = 0.1
"""Between readings closer than this the system's own step (10 ms a core) is most of what is read."""


_measuring: set[int] = set()
"""Processes that this one has started to measure for it, and that still run."""


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """CPU seconds so far. None where the system does not tell."""

    at_s: float
    """When they were read."""
    all_s: float | None
    """Of every program, on the cores that this process may use."""
    own_s: float
    """Of this process, the children it has waited for or that measure for it, and the front end that started
    it."""
    throttled_s: float | None
    """How long a quota held this process back."""


@dataclass(frozen=True, slots=True)
class CpuUse:
    """What happened to this process's cores between two readings."""

    cores: int
    others_cores: float | None
    """Cores' worth of time that other programs used: 1.5 is one core and half of another."""
    throttled_s: float | None
    """How long a quota held this process back, each core counted."""


def affinity_cores() -> int:
    """Return how many cores the scheduler may run this process on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def usable_cores() -> float:
    """Return how many cores' worth of time this process may use: affinity, or less by a quota."""
    quota = cgroups.cpu_quota()
    return affinity_cores() if quota is None else min(float(affinity_cores()), quota)


def whole_cores() -> int:
    """Return how many threads can run at once without being held back: affinity, or less by a quota.

    At least 1, and a quota counts by its whole cores: threads of a started one would wait for it.
    """
    return max(1, int(usable_cores()))


def measures_for_us(pid: int) -> None:
    """Count a process that this one has started as no other program's, until `has_ended`."""
    _measuring.add(pid)


def has_ended(pid: int) -> None:
    """Once it was waited for: its time is then among that of this process's children. Harmless twice."""
    _measuring.discard(pid)


def cpu_times(proc: Path = PROC) -> CpuTimes:
    """Read the counters of this moment."""
    ended = os.times()
    children_s = ended.children_user + ended.children_system
    measuring_s = sum(_process_s(proc, pid) for pid in _measuring)
    own_s = time.process_time() + children_s + measuring_s + _process_s(proc, os.getppid())
    return CpuTimes(time.monotonic(), _all_s(proc), own_s, cgroups.throttled_s(proc))


def use_between(before: CpuTimes, after: CpuTimes) -> CpuUse:
    """Return what the cores were used for between two readings."""
    return CpuUse(
        affinity_cores(), _others_cores(before, after), _grown(before.throttled_s, after.throttled_s)
    )


def _others_cores(before: CpuTimes, after: CpuTimes) -> float | None:
    all_s = _grown(before.all_s, after.all_s)
    seconds, own_s = after.at_s - before.at_s, after.own_s - before.own_s
    if all_s is None or seconds < LEAST_S or all_s < CONSISTENT * own_s:
        return None
    return max(0.0, all_s - own_s) / seconds


def _grown(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else max(0.0, after - before)


def _all_s(proc: Path) -> float | None:
    """Return the sum over this process's cores; None if one of them is missing."""
    try:
        lines = (proc / "stat").read_text().splitlines()
        counts = {line.split()[0]: line.split()[1:] for line in lines if line.startswith("cpu")}
        cores = [counts[f"cpu{core}"] for core in os.sched_getaffinity(0)]
        ticks = sum(int(core[field]) for core in cores for field in BUSY_FIELDS)
    except (OSError, KeyError, ValueError, IndexError, AttributeError):
        return None
    return ticks / os.sysconf("SC_CLK_TCK")


def _process_s(proc: Path, pid: int) -> float:
    """CPU seconds of another process; 0 if it can't be read, as of one that just ended."""
    try:
        fields = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
        return sum(int(fields[field]) for field in PARENT_FIELDS) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0.0
