"""NVIDIA's driver itself, asked without any package: whether it is here, what it serves, its first device."""

from __future__ import annotations

import ctypes
from typing import Any

LIBRARY = "libcuda.so.1"
NAME_BYTES = 128


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


def _library() -> Any:
    """None where there is none."""
    try:
        return ctypes.CDLL(LIBRARY)
    except OSError:
        return None
