"""CUDA's status codes as sentences and as gputop's errors. Runtime and driver share these numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gputop.util.errors import DeviceLost, GputopError, Unavailable, UsageError

OUT_OF_MEMORY = 2
UNKNOWN = 999
OUT_OF_TORCH = "OutOfMemoryError"
"""PyTorch's class for it; a fault of the device it raises as AcceleratorError, with CUDA's code."""

LOST = {
    46: "the device became unavailable",
    214: "an uncorrectable memory error",
    700: "an illegal memory access",
    702: "a launch that the driver timed out",
    709: "a context that is already destroyed",
    710: "a failed device assertion",
    713: "a fault of memory that is already registered",
    714: "a hardware stack error",
    715: "an illegal instruction",
    716: "a misaligned address",
    717: "an address of the wrong space",
    718: "an invalid program counter",
    719: "a launch failure",
    UNKNOWN: "an unknown device error",
}
"""Codes after which the context answers nothing but this code again."""

REFUSED = {
    1: "invalid value",
    9: "invalid configuration",
    98: "invalid device function",
    209: "no machine code for this device",
    701: "too many resources asked for (registers, threads or shared memory of a block)",
    720: "a cooperative grid larger than the device holds at once",
    912: "a cluster larger than the device allows",
}
"""Codes that refuse one launch and leave the context whole."""

ABSENT = {
    3: "CUDA can't be initialised",
    35: "the driver is older than this CUDA; install driver 580 or newer, or use the extra `cuda12`",
    100: "no CUDA device is visible",
    101: "no such CUDA device",
    803: "the driver's kernel module and library differ in version; reboot, or reinstall the driver",
    804: "this driver's compatibility package does not serve this device",
}

CUBLAS = {3: OUT_OF_MEMORY, 7: 1, 8: 209, 15: 1}
"""cuBLAS statuses that leave the context whole, as the CUDA codes that mean the same."""


def explain(code: int, name: str, what: str) -> GputopError:
    """The error that a CUDA status means, said of `what` (`kernel gemm_naive at w1`)."""
    if code == OUT_OF_MEMORY:
        return UsageError(f"Not enough device memory for {what}; use a smaller batch or workload.")
    if code in LOST:
        return DeviceLost(f"The device context is lost: {what} ended in {LOST[code]} ({name}).")
    if code in REFUSED:
        return UsageError(f"The device refused {what}: {REFUSED[code]} ({name}).")
    if code in ABSENT:
        return Unavailable(f"{what}: {ABSENT[code]}.")
    return DeviceLost(f"{what} failed: {name} ({code}).")


def check(result: tuple[Any, ...], what: str) -> Any:
    """The value of a cuda-bindings call, whose first element is its status."""
    if result[0] != 0:
        raise explain(int(result[0]), result[0].name, what)
    return result[1] if len(result) == 2 else result[1:]


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Turns CuPy's and PyTorch's exceptions into gputop's, said of `what`."""
    try:
        yield
    except GputopError:
        raise
    except MemoryError:
        raise explain(OUT_OF_MEMORY, "out of memory", what) from None
    except Exception as error:
        code = _code(error)
        if code is None:
            raise
        raise explain(code, str(error).split(":")[0].splitlines()[0], what) from None


def _code(error: Exception) -> int | None:
    """CUDA's status that an exception stands for; None where it is none of theirs."""
    package = type(error).__module__.partition(".")[0]
    if package in ("cupy", "cupy_backends"):
        status = getattr(error, "status", None)
    elif package == "torch":
        status = OUT_OF_MEMORY if type(error).__name__ == OUT_OF_TORCH else getattr(error, "error_code", None)
    else:
        status = None
    return None if status is None else int(status)
