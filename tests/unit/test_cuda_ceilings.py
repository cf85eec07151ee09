"""A GPU's ceilings as they are kept between runs: read back only where they can be what was measured."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from gputop.backends.cuda.ceilings import measure
from gputop.backends.cuda.ceilings.stopwatch import clock_words
from gputop.backends.cuda.runtime.nvml import Nvml
from gputop.results.records import Ceiling, Ceilings, DeviceFacts
from tests.unit.test_cuda_nvml import UUID, nvml, of_card, refuse

FACTS = DeviceFacts(
    backend="cuda", name="A GPU", uuid=UUID, driver="580.1", arch="sm_90", sm_count=132, versions="as tested"
)
FIGURES: dict[str, tuple[float, Literal["B/s", "FLOP/s", "s"]]] = {
    "dram_read": (1e11, "B/s"),
    "dram_copy": (1e11, "B/s"),
    "l2_read": (1e11, "B/s"),
    "code_fetch": (1e10, "B/s"),
    "fp32": (1e11, "FLOP/s"),
    "tf32_wgmma": (1e11, "FLOP/s"),
}
"""Of all other ceilings a time."""
KEPT = Ceilings(
    "A GPU",
    "580.1",
    "2026-01-01T00:00:00+00:00",
    tuple(
        Ceiling(name, *FIGURES.get(name, (1e-6, "s")), "as tested") for name in (*measure.NAMES, "tf32_wgmma")
    ),
)


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(measure, "cache_dir", lambda name: tmp_path / name)
    return tmp_path


def set_clocks(monkeypatch: pytest.MonkeyPatch, highest: int | None, wanted: int | None = None) -> None:
    """In MHz, as NVML tells them of the device; None: it does not."""
    told = {"nvmlDeviceGetMaxClockInfo": highest, "nvmlDeviceGetApplicationsClock": wanted}
    module = nvml(**{name: of_card(value) if value else refuse for name, value in told.items()})
    monkeypatch.setattr(measure, "Nvml", lambda uuid: Nvml(uuid, module))


def with_item(**changes: object) -> Ceilings:
    first, *others = KEPT.items
    return replace(KEPT, items=(replace(first, **changes), *others))  # type: ignore[arg-type]


def test_what_was_measured_is_read_back_on_that_device_only() -> None:
    assert measure.load(FACTS) is None
    measure.save(FACTS, KEPT)
    assert measure.load(FACTS) == KEPT
    assert measure.load(replace(FACTS, uuid="GPU-2")) is None
    assert measure.load(replace(FACTS, driver="590.1")) is None


def test_the_file_of_another_device_is_not_read_though_it_has_this_ones_name(cache: Path) -> None:
    measure.save(FACTS, KEPT)
    (file,) = cache.rglob("*.json")
    file.write_bytes(msgspec.json.encode(replace(KEPT, device="Another GPU")))
    assert measure.load(FACTS) is None


def test_they_are_those_of_the_clock_that_the_device_is_set_to(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ((None, None), (1980, None), (1980, 1200), (1755, 1200))
    for number, clocks in enumerate(settings):
        set_clocks(monkeypatch, *clocks)
        assert measure.load(FACTS) is None
        measure.save(FACTS, replace(KEPT, time_utc=str(number)))
    for number, clocks in enumerate(settings):
        set_clocks(monkeypatch, *clocks)
        kept = measure.load(FACTS)
        assert kept is not None
        assert kept.time_utc == str(number)


def test_one_below_what_was_expected_is_kept_with_its_word() -> None:
    low = with_item(status="measured at 60 % of what the SMs can issue")
    measure.save(FACTS, low)
    assert measure.load(FACTS) == low


@pytest.mark.parametrize("value", [0.0, -1e12, math.inf])
def test_what_is_no_rate_is_neither_kept_nor_read(value: float, cache: Path) -> None:
    measure.save(FACTS, with_item(value=value))
    assert not list(cache.rglob("*.json"))
    measure.save(FACTS, KEPT)
    (file,) = cache.rglob("*.json")
    file.write_bytes(file.read_bytes().replace(b"100000000000.0", b"-1.0", 1))
    assert measure.load(FACTS) is None


@pytest.mark.parametrize(
    ("name", "unit", "change"),
    [
        ("fp32", "FLOP/s", {"value": 68.4e12}),
        ("fp32", "FLOP/s", {"sustained": 1e15}),
        ("fp32", "FLOP/s", {"value": 68.4e12, "clock_hz": 9e12}),
        ("fp32", "FLOP/s", {"value": 40e12, "clock_hz": 1e9}),
        ("dram_read", "B/s", {"value": 1e15}),
        ("dram_read", "B/s", {"sustained": 0.0}),
        ("fp32", "FLOP/s", {"library": 0.0}),
        ("fp32", "FLOP/s", {"library": 1.8e19}),
        ("fp32", "FLOP/s", {"unit": "B/s"}),
        ("tf32_tcgen05", "FLOP/s", {"value": 1.8e19}),
        ("launch_graph", "s", {"value": 5.0}),
        ("launch_graph", "s", {"value": 1e-12}),
    ],
)
def test_what_the_device_can_not_do_is_measured_anew(
    monkeypatch: pytest.MonkeyPatch, cache: Path, name: str, unit: str, change: dict[str, float]
) -> None:
    set_clocks(monkeypatch, 1980)
    sound = Ceiling(name, 1e-6 if unit == "s" else 4e12, unit, "as tested")  # type: ignore[arg-type]
    others = tuple(item for item in KEPT.items if item.name != name)
    measure.save(FACTS, replace(KEPT, items=(sound, *others)))
    assert measure.load(FACTS) is not None
    (file,) = cache.rglob("*.json")
    absurd = replace(KEPT, items=(replace(sound, **change), *others))  # type: ignore[arg-type]
    file.write_bytes(msgspec.json.encode(absurd))
    assert measure.load(FACTS) is None


def test_without_a_counter_of_our_own_the_clock_is_nvmls() -> None:
    assert clock_words(1.755e9, 1.8e9) == "sustained at 1.755 GHz (NVML: 1.800 GHz)"
    assert clock_words(None, 1.8e9) == "sustained at 1.800 GHz by NVML"
    assert clock_words(None, None) == "clock unknown"


def test_a_file_that_lacks_a_ceiling_or_is_broken_is_not_read(cache: Path) -> None:
    measure.save(FACTS, KEPT)
    (file,) = cache.rglob("*.json")
    lacking = msgspec.json.encode(replace(KEPT, items=KEPT.items[1:]))
    for content in (lacking, b"", b"{", b"[]", b"[" * 100_000):
        file.write_bytes(content)
        assert measure.load(FACTS) is None
