"""The device's state by NVML, each figure on its own: what one card does not tell is None, not zero."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from gputop.results.records import Health
from gputop.util import install_hints
from gputop.util.install_hints import requirement_of

T = TypeVar("T")

MEGA = 1e6
MILLI = 1e-3
GIB = 1 << 30

REASONS = (
    (0x4, "power cap"),
    (0x8, "hardware slowdown"),
    (0x10, "sync boost"),
    (0x20, "thermal (software)"),
    (0x40, "thermal (hardware)"),
    (0x80, "power brake"),
    (0x2, "clocks set by the user"),
    (0x100, "display clock"),
)
"""Bits of nvmlClocksEventReason*. Idle (0x1) is left out: between windows every device idles."""


@dataclass(frozen=True, slots=True)
class SmClocks:
    """What this device's SM clock is set to; None is not told here."""

    highest_hz: float | None
    """What it can reach."""
    wanted_hz: float | None
    """The applications' clock that is set, where the device has one: it may go beyond by itself."""


class Nvml:
    """One device as NVML sees it, found by its UUID. Without NVML all is None, and `note` says why."""

    def __init__(self, uuid: str | None, module: Any = None) -> None:
        """`uuid` as CUDA gives it, `GPU-...`; `module` takes the place of pynvml."""
        self.note: str | None = None
        self._nvml: Any = None
        self._handle: Any = None
        self._card: Any = None
        self._is_instance = False
        self._own_pids: frozenset[int] = frozenset({os.getpid()})
        try:
            self._nvml = module or _pynvml()
            self._nvml.nvmlInit()
        except ImportError as error:
            self._nvml, self.note = None, f"NVML is not readable: {error}"
            return
        except Exception as error:
            # pynvml raises classes of its own making; whatever it is, measuring goes on without it.
            self._nvml, self.note = None, f"NVML is not readable: {error}."
            return
        self._handle = self._find(uuid) if uuid else None
        if self._handle is None:
            self.note = f"NVML knows no device {uuid}: clocks, power and other processes are unknown."
            return
        self._is_instance = bool(self._ask(lambda: self._nvml.nvmlDeviceIsMigDeviceHandle(self._handle)))
        # A MIG instance has processes and memory of its own; all else NVML tells of its card alone.
        self._card = self._ask(self._card_of_instance) if self._is_instance else self._handle

    def health(self) -> Health:
        """Read the device's state. For a MIG instance: its own processes, and the state of its card."""
        nvml, card = self._nvml, self._card
        if self._handle is None:
            return Health()
        sm = self._ask(lambda: nvml.nvmlDeviceGetClockInfo(card, nvml.NVML_CLOCK_SM))
        memory = self._ask(lambda: nvml.nvmlDeviceGetClockInfo(card, nvml.NVML_CLOCK_MEM))
        milliwatts = self._ask(lambda: nvml.nvmlDeviceGetPowerUsage(card))
        celsius = self._ask(lambda: nvml.nvmlDeviceGetTemperature(card, nvml.NVML_TEMPERATURE_GPU))
        reasons = self._ask(lambda: nvml.nvmlDeviceGetCurrentClocksEventReasons(card))
        return Health(
            sm_clock_hz=None if sm is None else sm * MEGA,
            memory_clock_hz=None if memory is None else memory * MEGA,
            power_w=None if milliwatts is None else milliwatts * MILLI,
            temperature_c=None if celsius is None else float(celsius),
            throttle=None if reasons is None else reason_words(reasons),
            others=self._others(),
        )

    def pids(self) -> frozenset[int] | None:
        """Processes with a compute context on the device; None where NVML does not tell."""
        found = self._processes()
        return None if found is None else frozenset(process.pid for process in found)

    def appeared_since(self, before: frozenset[int] | None) -> frozenset[int]:
        """The one process that appeared since `before`; empty where that can't be told, or several did.

        In a container NVML counts pids in the host's namespace, where ours is not the one we know.
        """
        after = self.pids()
        if before is None or after is None or len(after - before) != 1:
            return frozenset()
        return after - before

    def own(self, pids: frozenset[int]) -> None:
        """Take these for this process too: they are none of the others."""
        self._own_pids |= pids

    def sm_clock_hz(self) -> float | None:
        return self.health().sm_clock_hz

    def sm_clocks(self) -> SmClocks:
        """Read the SM clocks; for a MIG instance those of its card. NVML does not tell a locked clock."""
        nvml, card = self._nvml, self._card
        if card is None:
            return SmClocks(None, None)
        highest = self._ask(lambda: nvml.nvmlDeviceGetMaxClockInfo(card, nvml.NVML_CLOCK_SM))
        wanted = self._ask(lambda: nvml.nvmlDeviceGetApplicationsClock(card, nvml.NVML_CLOCK_SM))
        return SmClocks(highest * MEGA if highest else None, wanted * MEGA if wanted else None)

    def driver(self) -> str | None:
        """Version of the display driver, `580.65.06`."""
        return self._ask(lambda: str(self._nvml.nvmlSystemGetDriverVersion())) if self._nvml else None

    def notes(self) -> tuple[str, ...]:
        """Return sentences on what changes how this device's figures must be read."""
        found = [self.note] if self.note else []
        if self._is_instance or self._ask(lambda: self._nvml.nvmlDeviceGetMigMode(self._card)[0]):
            found.append("MIG is on: SMs, L2 and memory are an instance's, clocks and power its card's.")
        if is_wsl():
            found.append(
                "WSL: the driver is the host's; launches cost more and some NVML figures are missing."
            )
        return tuple(found)

    def close(self) -> None:
        if self._nvml is not None:
            self._ask(lambda: self._nvml.nvmlShutdown())
            self._nvml = self._handle = self._card = None

    def _find(self, uuid: str) -> Any:
        """CUDA gives the UUID of a MIG instance without saying that it is one."""
        for name in (uuid, uuid.replace("GPU-", "MIG-", 1)):
            handle = self._ask(partial(self._nvml.nvmlDeviceGetHandleByUUID, name))
            if handle is not None:
                return handle
        return None

    def _card_of_instance(self) -> Any:
        return self._nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self._handle)

    def _others(self) -> tuple[str, ...] | None:
        found = self._processes()
        if found is None:
            return None
        return tuple(self._describe(process) for process in found if process.pid not in self._own_pids)

    def _processes(self) -> list[Any] | None:
        if self._handle is None:
            return None
        return self._ask(lambda: list(self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle)))

    def _describe(self, process: Any) -> str:
        """`pid 4711 python3, 1.2 GiB`, as far as it is known."""
        name = self._ask(lambda: self._nvml.nvmlSystemGetProcessName(process.pid))
        words = f"pid {process.pid}" + (f" {Path(str(name)).name}" if name else "")
        used = getattr(process, "usedGpuMemory", None)
        return words if used is None else f"{words}, {used / GIB:.1f} GiB"

    def _ask(self, question: Callable[[], T]) -> T | None:
        """The answer, or None where this device or driver does not give it."""
        try:
            return question()
        except Exception:
            return None


def reason_words(bits: int) -> tuple[str, ...]:
    """Clock event reasons in words, the common ones first; () when nothing holds the clock down."""
    return tuple(word for bit, word in REASONS if bits & bit)


def is_wsl(version: Path = Path("/proc/version")) -> bool:
    """Return whether this is Linux inside Windows."""
    try:
        return "microsoft" in version.read_text().lower()
    except OSError:
        return False


def _pynvml() -> Any:
    """Import the binding. ImportError, with what fixes it, also for the old fork of the same name."""
    try:
        import pynvml
    except ImportError:
        raise ImportError(
            f"nvidia-ml-py is not installed ({install_hints.install(requirement_of('nvidia-ml-py'))})."
        ) from None
    if (pynvml.__file__ or "").endswith("__init__.py"):
        raise ImportError(
            f"an old package `pynvml` hides nvidia-ml-py ({install_hints.uninstall('pynvml')})."
        )
    return pynvml
