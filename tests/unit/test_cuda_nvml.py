"""Health by NVML: each figure stands alone, and what a card does not tell is None."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gputop.backends.cuda.runtime import device_warmup
from gputop.backends.cuda.runtime.devices import Visible
from gputop.backends.cuda.runtime.nvml import Nvml, is_wsl, reason_words
from gputop.results.records import Health

UUID = "GPU-00000000-0000-0000-0000-000000000001"
INSTANCE = UUID.replace("GPU-", "MIG-")
CARD, PART = "card", "instance"
"""Handles: of a whole card, and of an instance that MIG made of it."""
OTHER = 4711


class NVMLError(Exception):
    """As pynvml raises it for whatever a device does not support."""


def refuse(*_: object) -> Any:
    raise NVMLError("Not Supported")


def of_card(answer: Any) -> Callable[..., Any]:
    """What NVML tells of a card and refuses to tell of an instance."""

    def ask(handle: str, *_: object) -> Any:
        if handle != CARD:
            raise NVMLError("Invalid Argument")
        return answer

    return ask


def nvml(**answers: Callable[..., Any]) -> Any:
    """Every call works on the handles that NVML offers it for; `answers` take the place of single ones."""
    process = SimpleNamespace(pid=OTHER, usedGpuMemory=3 << 30)
    us = SimpleNamespace(pid=os.getpid(), usedGpuMemory=1 << 30)
    calls: dict[str, Callable[..., Any]] = {
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetHandleByUUID": lambda uuid: CARD if uuid == UUID else refuse(),
        "nvmlDeviceIsMigDeviceHandle": lambda handle: int(handle == PART),
        "nvmlDeviceGetDeviceHandleFromMigDeviceHandle": lambda handle: CARD if handle == PART else refuse(),
        "nvmlDeviceGetClockInfo": lambda handle, kind: of_card({0: 1980, 1: 3201}[kind])(handle),
        "nvmlDeviceGetPowerUsage": of_card(131_500),
        "nvmlDeviceGetTemperature": of_card(41),
        "nvmlDeviceGetCurrentClocksEventReasons": of_card(0x1 | 0x4 | 0x40),
        "nvmlDeviceGetMigMode": of_card([0, 0]),
        "nvmlDeviceGetComputeRunningProcesses": lambda _: [us, process],
        "nvmlSystemGetProcessName": lambda _: "/usr/bin/python3",
        "nvmlSystemGetDriverVersion": lambda: "580.65.06",
    }
    return SimpleNamespace(NVML_CLOCK_SM=0, NVML_CLOCK_MEM=1, NVML_TEMPERATURE_GPU=0, **{**calls, **answers})


def test_units_are_si_and_idling_is_no_throttling() -> None:
    assert Nvml(UUID, nvml()).health() == Health(
        sm_clock_hz=1.98e9,
        memory_clock_hz=3.201e9,
        power_w=131.5,
        temperature_c=41.0,
        throttle=("power cap", "thermal (hardware)"),
        others=("pid 4711 python3, 3.0 GiB",),
    )


@pytest.mark.parametrize(
    ("call", "field"),
    [
        ("nvmlDeviceGetPowerUsage", "power_w"),
        ("nvmlDeviceGetTemperature", "temperature_c"),
        ("nvmlDeviceGetCurrentClocksEventReasons", "throttle"),
        ("nvmlDeviceGetComputeRunningProcesses", "others"),
    ],
)
def test_one_refusal_costs_one_figure(call: str, field: str) -> None:
    health = Nvml(UUID, nvml(**{call: refuse})).health()
    assert getattr(health, field) is None
    assert health.sm_clock_hz == 1.98e9


def test_a_function_that_an_old_library_lacks_costs_one_figure() -> None:
    module = nvml()
    del module.nvmlDeviceGetCurrentClocksEventReasons
    health = Nvml(UUID, module).health()
    assert health.throttle is None
    assert health.power_w == 131.5


def test_nothing_throttles_is_not_nothing_known() -> None:
    assert Nvml(UUID, nvml(nvmlDeviceGetCurrentClocksEventReasons=lambda _: 0x1)).health().throttle == ()


def test_without_a_driver_all_is_unknown_and_a_note_says_so() -> None:
    device = Nvml(UUID, nvml(nvmlInit=refuse))
    assert device.health() == Health()
    assert device.driver() is None
    assert any("NVML is not readable" in note for note in device.notes())


def test_a_device_that_nvml_does_not_know_is_said() -> None:
    device = Nvml("GPU-gone", nvml())
    assert device.health() == Health()
    assert any("GPU-gone" in note for note in device.notes())


def instance(uuid: str) -> str:
    """The handle where CUDA shows an instance of a card: it gives the UUID without saying what it is of."""
    return PART if uuid == INSTANCE else refuse()


def test_a_mig_instance_is_found_under_its_own_name_and_shows_its_cards_state() -> None:
    module = nvml(nvmlDeviceGetHandleByUUID=instance, nvmlDeviceGetMigMode=of_card([1, 1]))
    device = Nvml(UUID, module)
    assert device.health() == Nvml(UUID, nvml()).health()
    assert any("MIG is on" in note for note in device.notes())


def test_an_instance_whose_card_is_kept_from_us_shows_what_is_its_own() -> None:
    """As in a container that was given the instance alone."""
    module = nvml(nvmlDeviceGetHandleByUUID=instance, nvmlDeviceGetDeviceHandleFromMigDeviceHandle=refuse)
    device = Nvml(UUID, module)
    assert device.health() == Health(others=("pid 4711 python3, 3.0 GiB",))
    assert any("MIG is on" in note for note in device.notes())


def test_a_card_divided_by_mig_is_noted_too() -> None:
    assert any("MIG is on" in note for note in Nvml(UUID, nvml(nvmlDeviceGetMigMode=of_card([1, 1]))).notes())
    assert not any("MIG" in note for note in Nvml(UUID, nvml()).notes())


def test_in_a_container_the_process_that_appeared_is_this_one() -> None:
    """There NVML counts pids in the host's namespace."""
    found = [SimpleNamespace(pid=OTHER, usedGpuMemory=None)]
    device = Nvml(UUID, nvml(nvmlDeviceGetComputeRunningProcesses=lambda _: found))
    before = device.pids()
    found.append(SimpleNamespace(pid=99_000, usedGpuMemory=None))
    ours = device.appeared_since(before)
    assert ours == {99_000}
    device.own(ours)
    assert device.health().others == ("pid 4711 python3",)


def test_this_process_is_known_however_often_it_opens_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its context is made once: at the next opening NVML lists it beforehand."""
    monkeypatch.setattr(device_warmup, "_ours", {})
    found = [SimpleNamespace(pid=OTHER, usedGpuMemory=None)]
    module = nvml(nvmlDeviceGetComputeRunningProcesses=lambda _: found)
    card = Visible(0, UUID, "NVIDIA H200", "90", 141 << 30)
    first = device_warmup.Awake(card, Nvml(UUID, module), Nvml(UUID, module).pids())
    found.append(SimpleNamespace(pid=99_000, usedGpuMemory=None))
    first.claim()
    again = device_warmup.Awake(card, Nvml(UUID, module), Nvml(UUID, module).pids())
    found.append(SimpleNamespace(pid=99_001, usedGpuMemory=None))
    again.claim()
    assert first.nvml.health().others == again.nvml.health().others
    assert again.nvml.health().others == ("pid 4711 python3", "pid 99001 python3")


def test_a_stranger_is_not_claimed_where_the_first_opening_could_not_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(device_warmup, "_ours", {})
    found = [SimpleNamespace(pid=OTHER, usedGpuMemory=None)]
    module = nvml(nvmlDeviceGetComputeRunningProcesses=lambda _: found)
    card = Visible(0, UUID, "NVIDIA H200", "90", 141 << 30)
    device_warmup.Awake(card, Nvml(UUID, module), None).claim()
    again = device_warmup.Awake(card, Nvml(UUID, module), Nvml(UUID, module).pids())
    found.append(SimpleNamespace(pid=99_001, usedGpuMemory=None))
    again.claim()
    assert "pid 99001 python3" in (again.nvml.health().others or ())


def test_two_processes_that_appear_at_once_are_none_of_ours() -> None:
    found = [SimpleNamespace(pid=OTHER, usedGpuMemory=None)]
    device = Nvml(UUID, nvml(nvmlDeviceGetComputeRunningProcesses=lambda _: found))
    before = device.pids()
    found += [SimpleNamespace(pid=pid, usedGpuMemory=None) for pid in (99_000, 99_001)]
    assert device.appeared_since(before) == frozenset()


def test_reasons_in_words() -> None:
    assert reason_words(0) == ()
    assert reason_words(0x8 | 0x80) == ("hardware slowdown", "power brake")


def test_wsl_is_told_by_its_kernel(tmp_path: Path) -> None:
    version = tmp_path / "version"
    version.write_text("Linux version 5.15.153.1-microsoft-standard-WSL2")
    assert is_wsl(version)
    version.write_text("Linux version 6.8.0-generic")
    assert not is_wsl(version)
    assert not is_wsl(tmp_path / "missing")
