"""What this machine is: processor, caches, memory left, BLAS. Standard files only, None where unreadable."""

from __future__ import annotations

import os
import platform
import re
import resource
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from pathlib import Path

import numpy as np
from threadpoolctl import ThreadpoolController

from gputop.util import cgroups, host_cpu

CPUINFO = Path("/proc/cpuinfo")
MEMINFO = Path("/proc/meminfo")
STATM = Path("/proc/self/statm")
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
CLOCK_KHZ = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq")
UNKNOWN_BLAS = "BLAS unknown to threadpoolctl"


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
    """Return what can still be taken: available memory, or less if a control group or `ulimit -v` limits it.

    If none of them can be read, nothing is known to be in the way: the largest machine word.
    """
    group = cgroups.memory_limit()
    left_bytes = group.left_bytes if group else None
    known = (_meminfo_bytes("MemAvailable"), left_bytes, _address_space_left_bytes())
    return min((value for value in known if value is not None), default=2**63 - 1)


class Blas:
    """The BLAS that NumPy loaded, and its threads."""

    def __init__(self) -> None:
        self._controller = ThreadpoolController().select(user_api="blas")
        found = self._controller.info()
        self._info = found[0] if found else {}
        self.all_threads: int | None = None
        """How many it may run; None if threadpoolctl does not know this BLAS, and nobody can set it."""
        if self._info:
            self.all_threads = min(self._info.get("num_threads", 1), host_cpu.whole_cores())

    @property
    def name(self) -> str:
        """Name, version and the kernels it chose for this processor."""
        if not self._info:
            return UNKNOWN_BLAS
        words = (self._info.get("internal_api"), self._info.get("version"), self.kernels)
        return " ".join(word for word in words if word)

    @property
    def kernels(self) -> str | None:
        return self._info.get("architecture")

    def threads(self, count: int | None) -> AbstractContextManager[object]:
        """Hold the BLAS at `count` threads; leave it alone if None."""
        if count is None:
            return nullcontext()
        hold: AbstractContextManager[object] = self._controller.limit(limits=count)
        return hold


@lru_cache(maxsize=1)
def blas() -> Blas:
    """Found once: looking through the loaded libraries takes milliseconds."""
    return Blas()


def versions() -> str:
    """Return the versions that a measurement depends on, apart from the machine."""
    return f"numpy {np.__version__}, {blas().name}"


def _address_space_left_bytes() -> int | None:
    """Left below RLIMIT_AS; None if it is not set or the size of this process is not known."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    pages = (_text(STATM) or "").partition(" ")[0]
    if limit == resource.RLIM_INFINITY or not pages.isdecimal():
        return None
    return max(0, limit - int(pages) * resource.getpagesize())


def _meminfo_bytes(name: str) -> int | None:
    value = _field(MEMINFO, name)
    return int(value.split()[0]) * 1024 if value else None


def _field(path: Path, name: str) -> str | None:
    """Value of the first line `name: value` of a file."""
    found = re.search(rf"^{re.escape(name)}\s*:\s*(.+)$", _text(path) or "", re.MULTILINE)
    return found.group(1).strip() if found else None


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
