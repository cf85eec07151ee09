"""The cpu backend's peaks: measured, kept for machine, threads and quota, and not trusted when disturbed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from threadpoolctl import ThreadpoolController

from gputop.backends.cpu import backend as cpu
from gputop.backends.cpu import ceilings, machine
from gputop.backends.cpu.backend import CpuBackend
from gputop.model.workloads import parse_workload
from gputop.plan.types import PlanRequest
from gputop.results.records import Ceiling, Ceilings
from gputop.session.session import Session
from gputop.util import cgroups, host_cpu
from gputop.util.errors import UsageError

TINY = parse_workload("tiny")


def silent(text: str) -> None:
    """Narrates to nobody."""


@pytest.fixture(scope="module")
def backend() -> Iterator[CpuBackend]:
    opened = cpu.open_backend(TINY, None, silent)
    yield opened
    opened.close()


KEPT = Ceilings(
    machine.processor(),
    None,
    "2026-01-01T00:00:00+00:00",
    (
        Ceiling("fp32", 1e11, "FLOP/s", "as tested"),
        Ceiling("fp32_1", 5e10, "FLOP/s", "as tested"),
        Ceiling("dram_read", 2e10, "B/s", "as tested"),
        Ceiling("dram_read_1", 2e10, "B/s", "as tested"),
        Ceiling("call", 4e-7, "s", "as tested"),
    ),
    machine.versions(),
)


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(ceilings, "cache_dir", lambda name: tmp_path / name)
    return tmp_path


def others_use(monkeypatch: pytest.MonkeyPatch, cores: float | None) -> None:
    """Whatever else runs here, this is what is read of it."""
    monkeypatch.setattr(host_cpu, "use_between", lambda *_: host_cpu.CpuUse(2, cores, None))


def test_ceilings_are_measured_kept_and_read_back(
    monkeypatch: pytest.MonkeyPatch, cache: Path, backend: CpuBackend
) -> None:
    others_use(monkeypatch, 0.1)
    said: list[str] = []
    measured = ceilings.measure((), said.append)
    assert said
    units = {"fp32": "FLOP/s", "fp32_1": "FLOP/s", "dram_read": "B/s", "dram_read_1": "B/s", "call": "s"}
    assert {item.name: item.unit for item in measured.items} == units
    assert all(item.value > 0 for item in measured.items)
    for name in ("fp32", "dram_read"):
        assert (measured.get(name) or 0) >= (measured.get(f"{name}_1") or 0)
    assert ceilings.load() is None
    ceilings.save(measured)
    assert ceilings.load() == measured
    assert cpu.open_backend(TINY, None, silent).ceilings(False, said.append) == measured
    assert len(said) == 1, "not measured again"


@pytest.mark.parametrize(("others", "load"), [(1.5, 0.0), (None, 50.0)])
def test_peaks_of_a_busy_machine_say_so_and_are_not_kept(
    monkeypatch: pytest.MonkeyPatch, cache: Path, others: float | None, load: float
) -> None:
    others_use(monkeypatch, others)
    monkeypatch.setattr(machine, "load", lambda: load)
    monkeypatch.setattr(ceilings, "READ_BYTES", 1 << 20)
    measured = ceilings.measure((), silent)
    expected = "others use 150 % of your 2 cores" if others else "load 50.0 on 2 cores"
    assert {item.status for item in measured.items} == {f"measured on a busy machine ({expected})"}
    ceilings.save(measured)
    assert ceilings.load() is None


def test_peaks_under_a_quota_say_so_and_are_kept_for_that_quota(
    monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    others_use(monkeypatch, 0.0)
    monkeypatch.setattr(ceilings, "READ_BYTES", 1 << 20)
    monkeypatch.setattr(cgroups, "cpu_quota", lambda: 0.5)
    measured = ceilings.measure((), silent)
    assert all("a CPU quota of 0.5 cores" in item.status for item in measured.items)
    ceilings.save(measured)
    assert ceilings.load() == measured
    monkeypatch.setattr(cgroups, "cpu_quota", lambda: None)
    assert ceilings.load() is None


def test_little_memory_is_not_filled_for_a_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "free_bytes", lambda: 8 << 20)
    read = next(item for item in ceilings.measure((), silent).items if item.name == "dram_read")
    assert read.how.startswith("products of 4 MB")


@pytest.fixture
def unknown_blas(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As of a library that threadpoolctl does not know: it lists nothing."""
    monkeypatch.setattr(ThreadpoolController, "info", lambda self: [])
    machine.blas.cache_clear()
    monkeypatch.setattr(machine, "versions", lambda: "numpy, BLAS unknown")
    yield
    machine.blas.cache_clear()


@pytest.mark.usefixtures("unknown_blas")
def test_threads_of_an_unknown_blas_are_unknown_and_can_not_be_set(
    monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    others_use(monkeypatch, 0.0)
    session = Session.open("cpu", TINY)
    plan = PlanRequest("cpu-blas")
    with pytest.raises(UsageError, match="threads=all: BLAS unknown to threadpoolctl"):
        session.measure(replace(plan, sets=(("threads", "all"),)))
    with pytest.raises(UsageError, match="cpu-threads changes threads only: BLAS unknown"):
        session.view(PlanRequest("cpu-threads"))
    toggle = next(toggle for toggle in session.view(plan).toggles if toggle.name == "threads")
    assert [value for value, _ in toggle.refused] == ["all"]
    assert not session.refusal(PlanRequest("cpu-fused")), "what else a rung changes can be measured"
    monkeypatch.setattr(ceilings, "READ_BYTES", 1 << 20)
    assert {item.name for item in session.calibrate().items} == set(ceilings.NAMES)
    assert "threads unknown" in session.calibrate().items[0].how
    window = session.measure(plan, seconds=0.02)
    assert any(note.startswith("threads unknown: BLAS unknown") for note in window.notes)
    session.close()


def test_threads_are_one_thing_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_cpu, "whole_cores", lambda: 1)
    machine.blas.cache_clear()
    try:
        session = Session.open("cpu", TINY)
        with pytest.raises(UsageError, match="the BLAS may run 1 thread here"):
            session.view(PlanRequest("cpu-blas", (("threads", "all"),)))
        session.close()
    finally:
        machine.blas.cache_clear()


def damaged(**fields: Any) -> bytes:
    """The file with one peak's fields replaced."""
    first, *others = KEPT.items
    items = (replace(first, **fields), *others)
    return msgspec.json.encode(replace(KEPT, items=items))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{half",
        b"null",
        b"\xff\xfe\x00",
        msgspec.json.encode(replace(KEPT, items=())),
        msgspec.json.encode(replace(KEPT, items=KEPT.items[1:])),
        damaged(value=0.0),
        damaged(value=-1e9),
        damaged(name="fp64"),
        damaged(status="measured on a busy machine"),
        damaged(value=1.8e19),
        damaged(value=4e10),
        damaged(unit="B/s"),
        damaged(clock_hz=0.0),
        msgspec.json.encode(replace(KEPT, device="another processor")),
        msgspec.json.encode(replace(KEPT, versions="numpy 0")),
        msgspec.json.encode(replace(KEPT, items=(*KEPT.items, KEPT.items[0]))),
        b"[" * 100_000,
    ],
)
def test_a_broken_cache_is_measured_again(cache: Path, content: bytes) -> None:
    ceilings.save(KEPT)
    assert ceilings.load() == KEPT
    (file,) = (cache / "ceilings").iterdir()
    file.write_bytes(content)
    assert ceilings.load() is None


def test_a_cache_that_is_a_pipe_is_not_waited_for(cache: Path) -> None:
    ceilings.save(KEPT)
    (file,) = (cache / "ceilings").iterdir()
    file.unlink()
    os.mkfifo(file)
    assert ceilings.load() is None


def test_a_cache_that_can_not_be_written_is_no_error(cache: Path) -> None:
    (cache / "ceilings").write_text("a file where the folder should be")
    ceilings.save(KEPT)
    assert ceilings.load() is None
