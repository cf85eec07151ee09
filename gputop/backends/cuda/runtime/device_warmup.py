"""A device's slow beginnings, side by side with the loading of modules: the driver, NVML, the context."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import dataclass

from gputop.backends.cuda.runtime.devices import Visible, choose, visible_devices
from gputop.backends.cuda.runtime.nvml import Nvml
from gputop.backends.cuda.runtime.status_codes import check
from gputop.util.startup_trace import mark


@dataclass(frozen=True, slots=True)
class Awake:
    """A device that is ready to be used."""

    device: Visible
    nvml: Nvml
    before: frozenset[int] | None
    """Processes that NVML knew on the device before this one's context was made."""

    def claim(self) -> None:
        """Once the context is in use: tell NVML which of the device's processes this one is.

        That shows only when the context is made, which is once in a process.
        """
        with _lock:
            if self.device.uuid not in _ours:
                _ours[self.device.uuid] = self.nvml.appeared_since(self.before)
            ours = _ours[self.device.uuid]
        self.nvml.own(ours)


_lock = threading.Lock()
_ours: dict[str, frozenset[int]] = {}
"""By UUID, this process as NVML counts it there; empty where that could not be told."""
_begun: dict[str | None, Future[Awake]] = {}
"""By the device asked for; taken away by `awake`."""


def begin(device: str | None) -> None:
    """Wake a device in a thread, if that is not under way. What goes wrong is said by `awake`."""
    with _lock:
        waking = _begun.get(device)
        if waking is not None and not (waking.done() and waking.exception()):
            return
        future = _begun[device] = Future()
    # A daemon: a driver that hangs must not keep the process from its end.
    threading.Thread(target=_fulfil, args=(future, device), name="cuda-driver", daemon=True).start()


def awake(device: str | None) -> Awake:
    """The device as `begin` woke it, or woken here. Unavailable lists what there is."""
    begin(device)
    with _lock:
        waking = _begun.pop(device)
    return waking.result()


def _fulfil(future: Future[Awake], device: str | None) -> None:
    try:
        future.set_result(_wake(device))
    except BaseException as error:
        future.set_exception(error)


def _wake(wanted: str | None) -> Awake:
    from cuda.bindings import driver

    mark("cuda, beside: driver")
    device = choose(visible_devices(), wanted)
    mark("cuda, beside: NVML")
    nvml = Nvml(device.uuid)
    before = nvml.pids()
    mark("cuda, beside: context")
    # Never given back: CuPy finds it made, and the end of the process takes it away.
    handle = check(driver.cuDeviceGet(device.index), f"device {device.index}")
    check(driver.cuDevicePrimaryCtxRetain(handle), f"the context of device {device.index}")
    mark("cuda, beside: awake")
    return Awake(device, nvml, before)
