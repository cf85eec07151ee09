"""Which CUDA device: by the ordinal that CUDA gives it here, or by UUID."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from gputop.backends.cuda.faults import check
from gputop.errors import NotHere


@dataclass(frozen=True, slots=True)
class Visible:
    """A device that this process may use."""

    index: int
    """CUDA's ordinal: it counts only what CUDA_VISIBLE_DEVICES lets through."""
    uuid: str
    """`GPU-` and 8-4-4-4-12 hex digits, as nvidia-smi prints it."""
    name: str


def visible_devices() -> tuple[Visible, ...]:
    """Every device that CUDA shows to this process."""
    from cuda.bindings import driver

    check(driver.cuInit(0), "the CUDA driver")
    count = check(driver.cuDeviceGetCount(), "counting devices")
    return tuple(_visible(index) for index in range(count))


def choose(devices: Sequence[Visible], wanted: str | None) -> Visible:
    """The device named by ordinal or by the beginning of its UUID; the first when nothing is asked for.

    NotHere lists what there is.
    """
    if wanted is None and devices:
        return devices[0]
    text = (wanted or "").strip().lower()
    if text.isdecimal():
        found = [device for device in devices if device.index == int(text)]
    else:
        bare = text.removeprefix("gpu-").removeprefix("mig-")
        found = [device for device in devices if bare and device.uuid[4:].startswith(bare)]
    if len(found) == 1:
        return found[0]
    there = ", ".join(f"{device.index} ({device.name}, {device.uuid})" for device in devices) or "none"
    problem = "fits several devices" if found else "is not here"
    raise NotHere(f"Device {wanted!r} {problem}. Visible to CUDA: {there}.")


def _visible(index: int) -> Visible:
    from cuda.bindings import driver

    device = check(driver.cuDeviceGet(index), f"device {index}")
    name = check(driver.cuDeviceGetName(128, device), f"device {index}")
    uuid = check(driver.cuDeviceGetUuid(device), f"device {index}")
    return Visible(index, f"GPU-{UUID(bytes=uuid.bytes)}", name.split(b"\0")[0].decode())
