"""A CUDA driver that shows devices of the tester's choice, answering as its library and cuda-bindings do."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from gputop.backends.cuda.runtime import driver as bare_driver
from gputop.backends.cuda.runtime.devices import NO_DEVICE, Visible


def pretend_devices(monkeypatch: pytest.MonkeyPatch, devices: Sequence[Visible]) -> None:
    """A handle is the device's place, and whatever is asked of it succeeds."""
    driver = pytest.importorskip("cuda.bindings.driver")
    ok, attribute = driver.CUresult.CUDA_SUCCESS, driver.CUdevice_attribute
    begun = ok if devices else driver.CUresult.CUDA_ERROR_NO_DEVICE

    def attribute_of(asked: object, handle: int) -> tuple[object, int]:
        capability = int(devices[handle].arch)
        return ok, {
            attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: capability // 10,
            attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: capability % 10,
        }[asked]

    def uuid_of(handle: int) -> tuple[object, object]:
        return ok, SimpleNamespace(bytes=UUID(devices[handle].uuid.removeprefix("GPU-")).bytes)

    for name, answer in {
        "cuInit": lambda _: (begun,),
        "cuDeviceGetCount": lambda: (ok, len(devices)),
        "cuDeviceGet": lambda index: (ok, index),
        "cuDeviceGetName": lambda size, handle: (ok, devices[handle].name.encode().ljust(size, b"\0")),
        "cuDeviceGetUuid": uuid_of,
        "cuDeviceGetAttribute": attribute_of,
        "cuDeviceTotalMem": lambda handle: (ok, devices[handle].memory_bytes),
    }.items():
        monkeypatch.setattr(driver, name, answer)


def pretend_driver(monkeypatch: pytest.MonkeyPatch, serves: int, device: str | None = None) -> None:
    """The driver's own library, of CUDA `serves` (0: there is none), showing `device` or nothing."""

    def get_version(found: Any) -> int:
        found._obj.value = serves
        return 0

    def get_name(name: Any, size: int, handle: object) -> int:
        assert device is not None
        assert len(device) < size
        name.value = device.encode()
        return 0

    library = SimpleNamespace(
        cuDriverGetVersion=get_version,
        cuInit=lambda flags: 0 if device else NO_DEVICE,
        cuDeviceGet=lambda handle, index: 0,
        cuDeviceGetName=get_name,
    )
    monkeypatch.setattr(bare_driver, "_library", lambda: library if serves else None)
