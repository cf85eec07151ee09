"""Whether the cuda backend can be used here, and opening it. CuPy is imported no earlier than that."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from gputop.backends.cuda import packages
from gputop.backends.cuda.compiler.nvrtc import toolchain
from gputop.backends.cuda.runtime import driver
from gputop.backends.cuda.runtime.device_warmup import begin
from gputop.backends.cuda.runtime.devices import choose, visible_devices
from gputop.backends.cuda.runtime.driver import LEAST_DRIVER, OLDEST_DRIVER
from gputop.plan.types import Workload
from gputop.planner.registry import Registry
from gputop.util import install_hints
from gputop.util.errors import Unavailable, first_line
from gputop.util.startup_trace import mark

if TYPE_CHECKING:
    # NumPy comes with it, and doctor answers where that is broken.
    from gputop.backends.base import Say
    from gputop.backends.cuda.backend import CudaBackend

NEW_DRIVER = "install NVIDIA driver 580 or newer"
PACKAGES = {"cupy": "CuPy", "cuda.bindings": "cuda-bindings"}
"""What must be importable, and what it is called."""


def available() -> str | None:
    """Return None if the backend can be used here, else what is missing with the command that fixes it."""
    try:
        _require()
    except Unavailable as error:
        return str(error)
    return None


def open_backend(
    workload: Workload, device: str | None, say: Say, registry: Registry | None = None
) -> CudaBackend:
    """`device`: CUDA's ordinal or the beginning of a UUID.

    Raise Unavailable if the device, the driver or a library is missing.
    """
    # The driver takes its time to start, which the imports may take too.
    begin(device)
    _require()
    mark("cuda: importing the backend")
    from gputop.backends.cuda.backend import CudaBackend

    return CudaBackend(workload, device, say, registry or Registry.load())


def _require() -> None:
    """Unavailable for what is missing, in the order in which one would install it: no package helps without a
    driver, and the driver decides which packages fit."""
    mark("cuda: the driver")
    serves = driver.version()
    absent = [name for package, name in PACKAGES.items() if not _installed(package)]
    if serves is None:
        besides = f" Missing besides: {' and '.join(absent)}; {_fix(OLDEST_DRIVER)}." if absent else ""
        raise Unavailable(
            f"No NVIDIA driver (libcuda) is found here; {NEW_DRIVER}, or run with --backend cpu.{besides}"
        )
    if serves < LEAST_DRIVER:
        raise Unavailable(
            f"The driver here serves CUDA up to {driver.named(serves)}, and {driver.named(LEAST_DRIVER)} is "
            f"the least that gputop takes; {NEW_DRIVER}, or run with --backend cpu."
        )
    if absent:
        is_not = "are not" if absent[1:] else "is not"
        fix = packages.cupy_fix() if absent == [PACKAGES["cupy"]] else _fix(serves)
        raise Unavailable(f"{' and '.join(absent)} {is_not} installed; {fix}.")
    mark("cuda: CuPy")
    _require_device(serves)
    mark("cuda: NVRTC")
    toolchain()


def _fix(serves: int) -> str:
    """The command that installs the packages which fit this driver."""
    return install_hints.extra(driver.fitting_extra(serves))


def _installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def _require_device(serves: int) -> None:
    """`serves`: the driver's newest CUDA."""
    try:
        from cupy.cuda import runtime
    except Exception as error:
        # A CuPy built for another CUDA, or whose own libraries are missing, fails in many ways at import.
        several = packages.several_cupys()
        why = f": {several[0]}" if several else ""
        raise Unavailable(
            f"CuPy can't be loaded ({first_line(error)}){why}; {packages.cupy_fix()}."
        ) from None
    if serves < OLDEST_DRIVER and runtime.runtimeGetVersion() >= OLDEST_DRIVER:
        raise Unavailable(
            f"The driver here serves CUDA up to {driver.named(serves)}, too old for CUDA 13; {NEW_DRIVER}, "
            "or replace CuPy and cuda-bindings by those of the extra `cuda12`."
        )
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        raise Unavailable(f"The driver shows no device ({first_line(error)}); see nvidia-smi.") from None
    if count == 0:
        raise Unavailable("No CUDA device is visible here; see nvidia-smi and CUDA_VISIBLE_DEVICES.")
    choose(visible_devices(), None)
