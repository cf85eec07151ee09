"""What was counted beside what is declared: a figure that is off is found, and so is a wrong resource."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks.counters.beside import Beside, beside
from benchmarks.counters.counted_file import CountedFile, keep_counted_file, read_counted_file
from benchmarks.counters.page import counters_page
from gputop.results import recording
from gputop.results.counters import Counted, CountedLaunch
from gputop.results.recording import Recording
from gputop.results.records import TOTAL_ROWS, Row

NAME, PLAN = "h200-copy-engine", "attention-tma"


@pytest.fixture(scope="module")
def recordings() -> Mapping[str, Recording]:
    return {NAME: recording.read(recording.locate(NAME))}


def counted(row: Row, factor: float = 1.0, **shares: float) -> Counted:
    """Of one launch of a row's site: its declared bytes times a factor."""
    launch = CountedLaunch(PLAN, row.phase, row.kernel or "", (1, 1, 1), (1, 1, 1), row.cubin)
    part = factor * (row.count or 1) / (row.launches or 1) / (row.count or 1)
    values = {"dram_read_bytes": (row.dram_bytes or 0.0) * part, "l2_bytes": (row.l2_bytes or 0.0) * part}
    return Counted(launch, {**values, "dram_write_bytes": 0.0, "occupancy_achieved": 0.125, **shares})


def rows_of(kept: Recording) -> list[Row]:
    lane = next(lane for window in kept.windows for lane in window.lanes if lane.plan == PLAN)
    return [row for row in lane.rows if row.phase not in TOTAL_ROWS and row.kernel and not row.library_kernel]


def found(recordings: Mapping[str, Recording], factor: float, **shares: float) -> list[Beside]:
    rows = rows_of(recordings[NAME])
    return list(beside([counted(row, factor, **shares) for row in rows], recordings))


def test_declared_bytes_are_held_against_an_instance_of_a_site(recordings: Mapping[str, Recording]) -> None:
    as_declared = found(recordings, 1.0)
    assert {one.row.phase for one in as_declared} > {"attention", "wo", "w2"}
    assert all(one.l2_off == pytest.approx(0.0, abs=1e-9) for one in as_declared)
    assert all(one.same_build for one in as_declared)
    half_again = found(recordings, 1.5)
    assert all(one.l2_off == pytest.approx(1 / 1.5 - 1) for one in half_again)


def test_a_resource_that_is_named_has_to_be_the_busiest(recordings: Mapping[str, Recording]) -> None:
    idle = found(recordings, 1e-3, tensor_share=0.0, fma_share=0.0, issue_share=0.01)
    waits = {"launch", "first load", "code", "latency", "end"}
    assert {one.row.phase for one in idle if one.agrees} >= {
        one.row.phase for one in idle if one.row.binds in waits
    }
    busy = found(recordings, 1e-3, tensor_share=0.95, fma_share=0.0, issue_share=0.01)
    assert not any(one.agrees for one in busy if one.row.binds != "compute")


def test_the_page_names_what_is_off(recordings: Mapping[str, Recording], tmp_path: Path) -> None:
    launches = tuple(counted(row, 2.0, issue_share=0.1) for row in rows_of(recordings[NAME]))
    kept = CountedFile("A GPU", "580", "cupy 14", "0.1.0", "gpt2-small", "2026-01-02", 60.0, launches)
    keep_counted_file(tmp_path / "counters.json", kept)
    read = read_counted_file(tmp_path / "counters.json")
    assert read == kept
    page = counters_page(read, recordings)
    assert "(-50 %)" in page
    assert "L2: 0 of" in page
    assert read_counted_file(tmp_path / "none.json") is None
