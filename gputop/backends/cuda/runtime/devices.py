"""Which CUDA device: by the ordinal that CUDA gives it here, or by UUID."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from gputop.backends.cuda.compiler.nvrtc import LOWEST_ARCH
from gputop.backends.cuda.runtime.status_codes import check
from gputop.util.errors import Unavailable

NO_DEVICE = 100
"""What the driver answers where CUDA_VISIBLE_DEVICES lets nothing through."""


@dataclass(frozen=True, slots=True)
class Visible:
    """A device that this process may use."""

    index: int
    """CUDA's ordinal: it counts only what CUDA_VISIBLE_DEVICES lets through."""
    uuid: str
    """`GPU-` and 8-4-4-4-12 hex digits, as nvidia-smi prints it."""
    name: str
    arch: str
    """Compute capability without its point: `90`, `120`."""
    memory_bytes: int

    @property
    def too_old(self) -> bool:
        return int(self.arch) < int(LOWEST_ARCH)


def visible_devices() -> tuple[Visible, ...]:
    """Every device that CUDA shows to this process, in the order that `--device` counts."""
    from cuda.bindings import driver

    begun = driver.cuInit(0)
    if begun[0] == NO_DEVICE:
        return ()
    check(begun, "the CUDA driver")
    count = check(driver.cuDeviceGetCount(), "counting devices")
    return tuple(_visible(index) for index in range(count))


def choose(devices: Sequence[Visible], wanted: str | None) -> Visible:
    """The device named by ordinal or by the beginning of its UUID; unasked the first that kernels run on.

    Unavailable lists what there is, or says that the device is too old for any kernel.
    """
    fitting = [device for device in devices if not device.too_old]
    found = (fitting or devices)[:1] if wanted is None else _named(devices, wanted)
    if len(found) != 1:
        there = ", ".join(f"{device.index} ({device.name}, {device.uuid})" for device in devices) or "none"
        problem = "fits several devices" if found else "is not here"
        raise Unavailable(f"Device {wanted!r} {problem}. Visible to CUDA: {there}.")
    (device,) = found
    if device.too_old:
        other = f"take --device {fitting[0].index} ({fitting[0].name}), or " if fitting else ""
        raise Unavailable(
            f"{device.name} is sm_{device.arch}; gputop's kernels need sm_{LOWEST_ARCH} or newer: "
            f"{other}run with --backend cpu."
        )
    return device


def _named(devices: Sequence[Visible], wanted: str) -> Sequence[Visible]:
    text = wanted.strip().lower()
    if text.isdecimal():
        return [device for device in devices if device.index == int(text)]
    bare = text.removeprefix("gpu-").removeprefix("mig-")
    return [device for device in devices if bare and device.uuid[4:].startswith(bare)]


def _visible(index: int) -> Visible:
    from cuda.bindings import driver

    what = f"device {index}"
    device = check(driver.cuDeviceGet(index), what)
    name = check(driver.cuDeviceGetName(128, device), what)
    # CUDA 12 has two of them, of which the older gives a MIG instance its card's UUID.
    uuid = check(getattr(driver, "cuDeviceGetUuid_v2", driver.cuDeviceGetUuid)(device), what)
    attribute = driver.CUdevice_attribute
    major, minor = (
        check(driver.cuDeviceGetAttribute(asked, device), what)
        for asked in (
            attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        )
    )
    return Visible(
        index,
        f"GPU-{UUID(bytes=uuid.bytes)}",
        name.split(b"\0")[0].decode(),
        f"{major}{minor}",
        int(check(driver.cuDeviceTotalMem(device), what)),
    )
