"""Whether the cuda backend can be used here, and opening it. CuPy is imported no earlier than that."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from gputop.backends.base import Say
from gputop.backends.cuda.compile import MEND, toolchain
from gputop.backends.cuda.devices import choose, visible_devices
from gputop.backends.cuda.waking import begin
from gputop.errors import NotHere
from gputop.spec import Workload
from gputop.times import mark

if TYPE_CHECKING:
    from gputop.backends.cuda.backend import CudaBackend

OLDEST_DRIVER = 13000
"""As CUDA numbers it: the first that runs CUDA 13, driver 580."""
MEND_DRIVER = "install NVIDIA driver 580 or newer, or use the extra `cuda12`"


def available() -> str | None:
    """None when usable here, else what is missing with the command that mends it."""
    try:
        _require()
    except NotHere as error:
        return str(error)
    return None


def open_backend(
    workload: Workload, device: str | None, say: Say, kernels_dir: Path | None = None
) -> CudaBackend:
    """`device`: CUDA's ordinal or the beginning of a UUID; `kernels_dir` is searched before our own sources.

    NotHere when the device, the driver or a library is missing.
    """
    # The driver takes its time to start, which the imports may take too.
    begin(device)
    _require()
    mark("cuda: importing the backend")
    from gputop.backends.cuda.backend import CudaBackend

    return CudaBackend(workload, device, say, kernels_dir)


def _require() -> None:
    """NotHere for the first thing that is missing, in the order in which one would install them."""
    for package, name in (("cupy", "CuPy"), ("cuda.bindings", "cuda-bindings")):
        if not _installed(package):
            raise NotHere(f"{name} is not installed; {MEND}.")
    mark("cuda: CuPy and the driver")
    _require_driver()
    mark("cuda: NVRTC")
    toolchain()


def _installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def _require_driver() -> None:
    try:
        from cupy.cuda import runtime
    except Exception as error:
        # A CuPy built for another CUDA, or whose own libraries are missing, fails in many ways at import.
        raise NotHere(f"CuPy can't be loaded ({_first_line(error)}); {MEND}.") from None
    version = runtime.driverGetVersion()
    if version == 0:
        raise NotHere(f"No NVIDIA driver is installed here; {MEND_DRIVER}, or run with --backend cpu.")
    if version < OLDEST_DRIVER and runtime.runtimeGetVersion() >= OLDEST_DRIVER:
        found = f"{version // 1000}.{version % 1000 // 10}"
        raise NotHere(f"The driver here serves CUDA up to {found}, too old for CUDA 13; {MEND_DRIVER}.")
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        raise NotHere(f"The driver shows no device ({_first_line(error)}); see nvidia-smi.") from None
    if count == 0:
        raise NotHere("No CUDA device is visible here; see nvidia-smi and CUDA_VISIBLE_DEVICES.")
    choose(visible_devices(), None)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
