"""Counters: what ncu writes read back, what it refuses told, and nothing marked as counted that was not."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputop.backends.cuda.counters import counted_pass, ncu
from gputop.backends.cuda.counters.ncu import count, find_ncu, ncu_command, refuse_if_told
from gputop.backends.cuda.counters.ncu_report import counted_launches, figure
from gputop.backends.cuda.runtime.launch import Geometry, KernelLaunch
from gputop.cli import main
from gputop.model.workloads import parse_workload
from gputop.plan.types import PlanRequest
from gputop.results.counters import (
    COUNTERS,
    Counted,
    CountedLaunch,
    CounterKey,
    CountRequest,
    counted_lines,
    keep_counted,
    kept_counted,
)
from gputop.session.replay import Replay
from gputop.util.errors import Unavailable, WorkerLost

FIXED = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream",'
    '"Block Size","Grid Size","Device","CC"'
)
W2 = CountedLaunch("graph", "w2", "gemm_warpgroup_56", (112, 1, 1), (256, 1, 1), "c5736f31d6c9")
LN1 = CountedLaunch("graph", "ln1", "layernorm_row", (128, 1, 1), (32, 1, 1), "0123456789ab")
UNITS = {
    "dram__bytes_read.sum": "byte",
    "gpu__time_duration.sum": "ns",
    "lts__t_sectors_srcunit_tex.sum": "sector",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "%",
}
CELLS = {
    "dram__bytes_read.sum": "9,437,696",
    "gpu__time_duration.sum": "8,640",
    "lts__t_sectors_srcunit_tex.sum": "987,500",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "12.50",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": "4,096",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": "1,024",
    "smsp__inst_executed.sum": "n/a",
}


def report(
    *launches: CountedLaunch, cells: dict[str, str] | None = None, units: dict[str, str] | None = None
) -> str:
    """What `ncu --csv --page raw --log-file` leaves: lines of its own, heading, units, one line a launch."""
    cells, units = cells or CELLS, units or UNITS
    heading = ",".join((FIXED, *(f'"{name}"' for name in cells)))
    of_units = ",".join((*['""'] * 11, *(f'"{units.get(name, "")}"' for name in cells)))
    lines = []
    for number, launch in enumerate(launches):
        fixed = [
            str(number), "4711", "python3.11", "127.0.0.1", launch.name, "1", "13",
            str(launch.block), str(launch.grid), "0", "9.0",
        ]  # fmt: skip
        lines.append(",".join(f'"{cell}"' for cell in (*fixed, *cells.values())))
    return "\n".join(
        (
            "==PROF== Connected to process 4711 (/usr/bin/python3.11)",
            heading,
            of_units,
            *lines,
            "==PROF== Disconnected from process 4711",
            "",
        )
    )


def test_each_launch_gets_its_own_figures_in_base_units() -> None:
    ln1, w2 = counted_launches(report(LN1, W2), [LN1, W2])
    assert (ln1.launch, w2.launch) == (LN1, W2)
    assert w2.values["dram_read_bytes"] == 9_437_696
    assert w2.values["time_s"] == pytest.approx(8.64e-6)
    assert w2.values["l2_bytes"] == 987_500 * 32
    assert w2.values["occupancy_achieved"] == 0.125
    assert w2.sectors_per_request == 4


def test_what_was_not_counted_is_missing_and_not_zero() -> None:
    (w2,) = counted_launches(report(W2), [W2])
    assert "instructions" not in w2.values
    assert "stall_barrier" not in w2.values
    shown = "\n".join(counted_lines(w2, w2_row()))
    assert "warp instructions" not in shown
    assert "warps waiting" not in shown


def test_units_of_a_version_that_scales_them_are_read() -> None:
    scaled = {"dram__bytes_read.sum": "Mbyte", "gpu__time_duration.sum": "usecond"}
    cells = {"dram__bytes_read.sum": "9.44", "gpu__time_duration.sum": "8.64"}
    (w2,) = counted_launches(report(W2, cells=cells, units=scaled), [W2])
    assert w2.values == pytest.approx({"dram_read_bytes": 9.44e6, "time_s": 8.64e-6})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (report(W2, LN1), [LN1, W2]),
        (report(W2), [W2, W2]),
        (report(), [W2]),
        ("==ERROR== something else\n", [W2]),
        ("", [W2]),
    ],
)
def test_a_report_of_other_launches_is_used_for_nothing(text: str, expected: list[CountedLaunch]) -> None:
    with pytest.raises(WorkerLost):
        counted_launches(text, expected)


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=0, max_value=1e18))
def test_grouped_digits_are_read_as_written(value: float) -> None:
    assert figure(f"{value:,.6f}", "") == pytest.approx(value, abs=1e-6)


@given(st.text(), st.text())
def test_any_cell_is_a_figure_or_none(text: str, unit: str) -> None:
    found = figure(text, unit)
    assert found is None or isinstance(found, float)


# Beside what is declared


def w2_row() -> Any:
    replay = Replay.open("h200")
    window = replay.first_window(PlanRequest("graph"))
    lane = window.lane("current")
    assert lane is not None
    return next(row for row in lane.rows if row.phase == "w2")


def test_counted_stands_beside_what_is_declared_of_one_instance() -> None:
    row = w2_row()
    (w2,) = counted_launches(report(W2), [W2])
    lines = list(counted_lines(w2, row))
    read = next(line for line in lines if "read from DRAM" in line)
    assert read.split()[3:5] == ["9.44", "MB"]
    assert row.dram_bytes / row.count == pytest.approx(9.44e6, rel=1e-3)
    assert read.endswith("declared 9.44 MB")


def test_figures_are_kept_by_build_sizes_and_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    replay, row = Replay.open("h200"), w2_row()
    key = CounterKey(replay.facts, replay.workload.dims, row)
    counted = (Counted(W2, {"dram_read_bytes": 9.0}),)
    assert kept_counted(key) == ()
    keep_counted(key, counted, "2026-01-02T03:04:05Z")
    assert kept_counted(key) == counted
    for other in (
        replace(key, row=replace(row, cubin="another")),
        replace(key, dims=replace(key.dims, batch=2)),
        replace(key, device=replace(key.device, uuid="GPU-of-somebody-else")),
    ):
        assert kept_counted(other) == ()
    (file,) = (tmp_path / "gputop" / "counters").iterdir()
    file.write_bytes(b'{"version": ')
    assert kept_counted(key) == ()


# Running it

FAKE_NCU = """#!{python}
import shutil, sys
words = sys.argv[1:]
log = words[words.index("--log-file") + 1]
shutil.copy({report!r}, log)
shutil.copy({manifest!r}, words[-1])
print({said!r})
sys.exit({code})
"""


def fake_ncu(folder: Path, text: str, launches: list[CountedLaunch], said: str = "", code: int = 0) -> str:
    """An ncu that profiles nothing and answers what it is told, where the real one would."""
    (folder / "report").write_text(text)
    (folder / "manifest").write_bytes(msgspec.json.encode(launches))
    program = folder / "ncu"
    program.write_text(
        FAKE_NCU.format(
            python=sys.executable, report=str(folder / "report"),
            manifest=str(folder / "manifest"), said=said, code=code,
        )
    )  # fmt: skip
    program.chmod(0o755)
    return str(program)


def request_of_nothing() -> CountRequest:
    return CountRequest(parse_workload("tiny"), None, "kernels", ())


def test_what_ncu_reports_is_told_by_launch(tmp_path: Path) -> None:
    found = count(fake_ncu(tmp_path, report(LN1, W2), [LN1, W2]), request_of_nothing())
    assert [item.launch.site for item in found] == ["ln1", "w2"]


def test_ncu_neither_flushes_caches_nor_sets_clocks_and_counts_all_of_the_table() -> None:
    command = ncu_command("ncu", Path("out.csv"), ("python", "-m", "x"))
    said = " ".join(command)
    for words in (
        "--replay-mode application", "--cache-control none", "--clock-control none", "--graph-profiling node",
        "--csv --page raw",
    ):  # fmt: skip
        assert words in said
    assert set(command[command.index("--metrics") + 1].split(",")) == {counter.metric for counter in COUNTERS}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance "
            "Counters on the target device 0.",
            "That is a setting of the host, not of gputop",
        ),
        ("==ERROR== Profiling failed because a driver resource was unavailable.", "dcgmi profile --pause"),
        ("==ERROR== Failed to find metric sm__pipe_fma_cycles_active.avg", "sm__pipe_fma_cycles_active.avg"),
        ("==WARNING== No kernels were profiled.", "ncu saw no kernel"),
    ],
)
def test_each_refusal_of_ncu_has_its_sentence(said: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=told):
        count(fake_ncu(tmp_path, said, [W2], code=1), request_of_nothing())


def test_the_drivers_own_setting_is_named_if_it_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "params"
    settings.write_text("EnableMSI: 1\nRmProfilingAdminOnly: 1\n")
    monkeypatch.setattr(ncu, "DRIVER_SETTINGS", settings)
    with pytest.raises(Unavailable, match=r"counters \(RmProfilingAdminOnly: 1\)"):
        refuse_if_told("ERR_NVGPUCTRPERM")


def test_a_pass_that_fails_under_ncu_is_told_with_its_last_words(tmp_path: Path) -> None:
    failing = fake_ncu(tmp_path, report(W2), [W2], said="gputop: No NVIDIA driver is found here.", code=3)
    with pytest.raises(WorkerLost, match="No NVIDIA driver is found here"):
        count(failing, request_of_nothing())


def test_without_ncu_it_says_where_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_PATH", raising=False)
    with pytest.raises(Unavailable, match="install Nsight Compute"):
        find_ncu()


def test_a_recording_has_no_counters(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "graph", "--replay", "h200", "--counters"]) == 2
    assert "A recording has no counters" in capsys.readouterr().err


def test_what_was_counted_here_is_not_shown_as_the_recordings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    replay = Replay.open("h200")
    key = CounterKey(replay.facts, replay.workload.dims, w2_row())
    keep_counted(key, (Counted(W2, {"occupancy_achieved": 0.1}),), "2026-01-02T03:04:05Z")
    assert main(["inspect", "graph", "--replay", "h200", "--site", "w2", "--json", "-"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["counted"] == []
    assert row["occupancy"]["counted"] is None


# The profiled pass


class Launch(KernelLaunch):
    """A launch that notes itself."""

    __slots__ = ("done",)

    def __init__(self, name: str, grid: int, done: list[str]) -> None:
        cubin = type("Cubin", (), {"digest": f"of {name}"})
        self.function = type("Function", (), {"name": name, "cubin": cubin})()
        self.geometry = Geometry((grid, 1, 1), (256, 1, 1))
        self.done = done

    def __call__(self) -> None:
        self.done.append(self.function.name)


def test_each_kernel_and_shape_of_a_site_is_profiled_once_and_the_whole_pass_is_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[str] = []

    class Profiled:
        def __enter__(self) -> None:
            done.append("profiler on")

        def __exit__(self, *_: object) -> None:
            done.append("profiler off")

    def step(site: str, *launches: Launch) -> Any:
        return type("Step", (), {"step": type("S", (), {"site": site}), "calls": launches, "label": site})()

    context = type("Context", (), {"synchronize": lambda self, what: None})()
    monkeypatch.setattr(counted_pass, "_profiled", lambda _: Profiled())
    wide, tail = Launch("gemm", 112, done), Launch("gemm", 8, done)
    bound = (step("w1", wide), step("w2", wide), step("w1", wide), step("w2", tail))
    found = list(counted_pass.counted_pass(context, "graph", bound))
    assert [(launch.site, launch.grid[0]) for launch in found] == [("w1", 112), ("w2", 112), ("w2", 8)]
    assert done.count("gemm") == 4
    assert done.count("profiler on") == 3
    assert done[-4:] == ["gemm", "profiler on", "gemm", "profiler off"]
