"""A GPU's ceilings as they are kept between runs: read back only where they can be what was measured."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from gputop.backends.cuda import ceilings
from gputop.results import Ceiling, Ceilings, DeviceFacts

FACTS = DeviceFacts(backend="cuda", name="A GPU", uuid="GPU-1", driver="580.1", versions="as tested")
KEPT = Ceilings(
    "A GPU",
    "580.1",
    "2026-01-01T00:00:00+00:00",
    tuple(Ceiling(name, 1e11, "FLOP/s", "as tested") for name in (*ceilings.NAMES, "tf32_wgmma")),
)


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(ceilings, "cache_dir", lambda name: tmp_path / name)
    return tmp_path


def with_item(**changes: object) -> Ceilings:
    first, *others = KEPT.items
    return replace(KEPT, items=(replace(first, **changes), *others))  # type: ignore[arg-type]


def test_what_was_measured_is_read_back_on_that_device_only() -> None:
    assert ceilings.load(FACTS) is None
    ceilings.save(FACTS, KEPT)
    assert ceilings.load(FACTS) == KEPT
    assert ceilings.load(replace(FACTS, uuid="GPU-2")) is None
    assert ceilings.load(replace(FACTS, driver="590.1")) is None


def test_one_below_what_was_expected_is_kept_with_its_word() -> None:
    low = with_item(status="measured at 60 % of what the SMs can issue")
    ceilings.save(FACTS, low)
    assert ceilings.load(FACTS) == low


@pytest.mark.parametrize("value", [0.0, -1e12, math.inf])
def test_what_is_no_rate_is_neither_kept_nor_read(value: float, cache: Path) -> None:
    ceilings.save(FACTS, with_item(value=value))
    assert not list(cache.rglob("*.json"))
    ceilings.save(FACTS, KEPT)
    (file,) = cache.rglob("*.json")
    file.write_bytes(file.read_bytes().replace(b"100000000000.0", b"-1.0", 1))
    assert ceilings.load(FACTS) is None


def test_a_file_that_lacks_a_ceiling_or_is_broken_is_not_read(cache: Path) -> None:
    ceilings.save(FACTS, KEPT)
    (file,) = cache.rglob("*.json")
    for content in (msgspec.json.encode(replace(KEPT, items=KEPT.items[1:])), b"", b"{", b"[]"):
        file.write_bytes(content)
        assert ceilings.load(FACTS) is None
