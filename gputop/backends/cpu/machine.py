"""What this machine is: processor, caches, memory left, BLAS. Standard files only, None where unreadable."""

from __future__ import annotations

import os
import platform
import re
from contextlib import AbstractContextManager
from functools import lru_cache
from pathlib import Path

import numpy as np
from threadpoolctl import ThreadpoolController

CPUINFO = Path("/proc/cpuinfo")
MEMINFO = Path("/proc/meminfo")
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
CLOCK_KHZ = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq")
CGROUP = Path("/sys/fs/cgroup")
MEMORY_LIMITS = (
    ("memory.max", "memory.current", "memory.stat", "inactive_file"),
    (
        "memory/memory.limit_in_bytes",
        "memory/memory.usage_in_bytes",
        "memory/memory.stat",
        "total_inactive_file",
    ),
)
"""Of cgroup 2 and 1: the files of limit and usage, and where usage counts cached files that can go."""


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processor() -> str:
    """Model name of the processor, else its architecture."""
    return _field(CPUINFO, "model name") or platform.processor() or platform.machine()


def clock_hz() -> float | None:
    """Clock of the first core, as the kernel reports it."""
    khz = _text(CLOCK_KHZ)
    if khz is not None:
        return float(khz) * 1e3
    mhz = _field(CPUINFO, "cpu MHz")
    return float(mhz) * 1e6 if mhz else None


def load() -> float | None:
    """Programs that wanted to run in the last minute, on average, this one included."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def last_cache_bytes() -> int | None:
    """Size of the largest cache that the first core sees."""
    sizes = [_text(path) for path in CACHES.glob("index*/size")]
    units = {"K": 1 << 10, "M": 1 << 20}
    found = [int(size[:-1]) * units[size[-1]] for size in sizes if size and size[-1] in units]
    return max(found, default=None)


def memory_bytes() -> int | None:
    """Memory of the machine."""
    return _meminfo_bytes("MemTotal")


def free_bytes() -> int:
    """What can still be taken: available memory, or less where a control group limits it.

    Where neither can be read, nothing is known to be in the way: the largest machine word.
    """
    known = [_meminfo_bytes("MemAvailable"), *(_left_in(*names) for names in MEMORY_LIMITS)]
    return min((value for value in known if value is not None), default=2**63 - 1)


class Blas:
    """The BLAS that NumPy loaded, and its threads."""

    def __init__(self) -> None:
        self._controller = ThreadpoolController().select(user_api="blas")
        found = self._controller.info()
        self._info = found[0] if found else {}
        self.all_threads: int = min(self._info.get("num_threads", 1), cores())

    @property
    def name(self) -> str:
        """Name, version and the kernels it chose for this processor."""
        if not self._info:
            return "BLAS unknown to threadpoolctl"
        words = (self._info.get("internal_api"), self._info.get("version"), self.kernels)
        return " ".join(word for word in words if word)

    @property
    def kernels(self) -> str | None:
        return self._info.get("architecture")

    def threads(self, count: int) -> AbstractContextManager[object]:
        """Hold the BLAS at `count` threads."""
        hold: AbstractContextManager[object] = self._controller.limit(limits=count)
        return hold


@lru_cache(maxsize=1)
def blas() -> Blas:
    """Found once: looking through the loaded libraries takes milliseconds."""
    return Blas()


def versions() -> str:
    """What a measurement depends on besides the machine."""
    return f"numpy {np.__version__}, {blas().name}"


def _left_in(limit_file: str, usage_file: str, stat_file: str, cached: str) -> int | None:
    limit, usage = _text(CGROUP / limit_file), _text(CGROUP / usage_file)
    if limit is None or usage is None or not limit.isdecimal():
        return None
    cached_bytes = int(_field(CGROUP / stat_file, cached, separator=" ") or 0)
    return max(0, int(limit) - int(usage) + cached_bytes)


def _meminfo_bytes(name: str) -> int | None:
    value = _field(MEMINFO, name)
    return int(value.split()[0]) * 1024 if value else None


def _field(path: Path, name: str, separator: str = ":") -> str | None:
    """Value of the first line `name separator value` of a file."""
    found = re.search(rf"^{re.escape(name)}\s*{separator}\s*(.+)$", _text(path) or "", re.MULTILINE)
    return found.group(1).strip() if found else None


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
