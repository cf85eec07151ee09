"""Every GPU of this machine, as CUDA and NVML see them: for `list devices` and doctor."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from gputop.backends.cuda.runtime.devices import Visible, visible_devices
from gputop.cli.doctor_findings import Absent, State
from gputop.util import install_hints
from gputop.util.install_hints import requirement_of

BINDING = "nvidia-ml-py"
NO_DRIVER = "install NVIDIA's driver, 580 or newer: https://www.nvidia.com/drivers"
HIDDEN = "hidden"
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CudaDevice:
    """A GPU of this machine."""

    index: str
    """What `--device` takes: CUDA's ordinal. `hidden` where CUDA_VISIBLE_DEVICES or MIG keeps it from CUDA;
    `unknown` where CUDA can't be asked, since NVML counts in another order."""
    name: str
    uuid: str
    memory_bytes: int | None


def cuda_devices() -> tuple[CudaDevice, ...]:
    """Every GPU: those that CUDA shows in its order, then those that NVML alone knows.

    Absent where there is no driver, or no binding to ask it by.
    """
    visible = visible_to_cuda()
    shown = tuple(CudaDevice(str(d.index), d.name, d.uuid, d.memory_bytes) for d in visible or ())
    try:
        known = _known_to_nvml(UNKNOWN if visible is None else HIDDEN)
    except Absent:
        if not shown:
            raise
        known = ()
    uuids = {device.uuid for device in shown}
    return (*shown, *(device for device in known if device.uuid not in uuids))


def visible_to_cuda() -> tuple[Visible, ...] | None:
    """Return the devices that CUDA shows; None if cuda-bindings or the driver is missing or broken."""
    try:
        return visible_devices()
    except Exception:
        return None


def _known_to_nvml(index: str) -> tuple[CudaDevice, ...]:
    nvml = open_nvml()
    handles = (nvml.nvmlDeviceGetHandleByIndex(place) for place in range(nvml.nvmlDeviceGetCount()))
    return tuple(
        CudaDevice(index, nvml.nvmlDeviceGetName(handle), nvml.nvmlDeviceGetUUID(handle), _size(nvml, handle))
        for handle in handles
    )


def _size(nvml: Any, handle: Any) -> int | None:
    """Return the device's memory in bytes; None if it shares the host's."""
    try:
        return int(nvml.nvmlDeviceGetMemoryInfo(handle).total)
    except nvml.NVMLError:
        return None


def open_nvml() -> Any:
    """Return the binding of NVML, at work. Raise Absent if it or the driver is not here."""
    try:
        pynvml = importlib.import_module("pynvml")
    except ImportError as error:
        state: State = "missing" if isinstance(error, ModuleNotFoundError) else "broken"
        detail = f"no binding to ask NVIDIA's driver by ({error})"
        raise Absent(detail, _binding_fix(), state) from error
    if str(pynvml.__file__).endswith("__init__.py"):
        # The old fork is a package, nvidia-ml-py a single module of the same name: the package wins.
        fix = f"{install_hints.uninstall('pynvml')} && {install_hints.install_again(BINDING)}"
        raise Absent("an outdated package `pynvml` hides nvidia-ml-py", fix, "broken")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise Absent(f"no NVIDIA driver to ask ({error})", NO_DRIVER) from error
    return pynvml


def _binding_fix() -> str:
    if install_hints.is_recorded(BINDING):
        return install_hints.install_again(BINDING)
    return install_hints.install(requirement_of(BINDING))
