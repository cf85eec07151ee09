"""NVIDIA's driver itself, asked without any package: whether it is here, what it serves, its first device.

`make run` runs this file by its path before it chooses packages: it imports nothing of gputop.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

LIBRARY = "libcuda.so.1"
NAME_BYTES = 128
LEAST_DRIVER = 12040
"""The first that has every call that gputop makes (cuFuncLoad, cuFuncGetName), as CUDA numbers it: driver
550."""
OLDEST_DRIVER = 13000
"""The first that runs CUDA 13: driver 580."""
NO_DRIVER_HERE = 1
"""Exit code of this file when there is no driver to choose packages for."""


def version() -> int | None:
    """The newest CUDA that it serves as CUDA numbers it, 13010 for 13.1; None without a driver."""
    library = _library()
    if library is None:
        return None
    found = ctypes.c_int()
    # A stand-in for linking has no version either.
    return found.value if library.cuDriverGetVersion(ctypes.byref(found)) == 0 and found.value else None


def first_device() -> str | None:
    """Name of the first device that CUDA shows to this process, however old; None without one."""
    library = _library()
    if library is None or library.cuInit(0) != 0:
        return None
    device, name = ctypes.c_int(), ctypes.create_string_buffer(NAME_BYTES)
    if library.cuDeviceGet(ctypes.byref(device), 0) != 0:
        return None
    return name.value.decode() if library.cuDeviceGetName(name, NAME_BYTES, device) == 0 else None


def named(version: int) -> str:
    """`13.1` of CUDA's number for it."""
    return f"{version // 1000}.{version % 1000 // 10}"


def fitting_extra(serves: int | None) -> str:
    """Return the extra whose packages fit a driver that serves this CUDA; that of new drivers for None."""
    return "cuda12" if serves is not None and serves < OLDEST_DRIVER else "cuda13"


def main() -> int:
    """Print the extra that fits this machine's driver on stdout, and why on stderr.

    Returns `NO_DRIVER_HERE` without a driver. Prints no extra for a driver that is too old.
    """
    serves = version()
    if serves is None:
        return NO_DRIVER_HERE
    found = f"The NVIDIA driver here serves CUDA up to {named(serves)}"
    if serves < LEAST_DRIVER:
        least = named(LEAST_DRIVER)
        print(
            f"{found}, and gputop needs {least}: it measures the CPU until a newer driver is installed.",
            file=sys.stderr,
        )
        return 0
    extra = fitting_extra(serves)
    print(f"{found}: installing the extra {extra}, which is the GPU backend, once.", file=sys.stderr)
    print(extra)
    return 0


def _library() -> Any:
    """Load the driver's library; None if there is none."""
    try:
        return ctypes.CDLL(LIBRARY)
    except OSError:
        return None


if __name__ == "__main__":
    sys.exit(main())
