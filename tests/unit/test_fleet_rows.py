"""Figures of several devices: side by side, pooled by model, and nothing pooled that can't be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gputop.cli.tables.fleet_lines import fleet_lines
from gputop.cli.terminal import Terminal
from gputop.results import export, recording
from gputop.results.fleet_pooling import Placed, ceiling_rows, ladder_rows, recording_rows
from gputop.results.fleet_row import FleetRow
from gputop.results.ladder import Ladder, LadderEntry
from gputop.results.records import Ceiling, Ceilings, DeviceFacts, Gate

H200 = DeviceFacts("cuda", "NVIDIA H200", uuid="GPU-1", driver="580.1")
OTHER = DeviceFacts("cuda", "NVIDIA A100", uuid="GPU-2", driver="580.1")


def ladder(number: int, gain: float | None, device: DeviceFacts = H200, half: float = 0.01) -> Placed[Ladder]:
    """Two rungs, the second `gain` times as fast as the first."""
    gate = Gate("PASS", 1e-7, 1e-5)
    ends = (None, None) if gain is None else (gain * (1 - half), gain * (1 + half))
    entries = (
        LadderEntry("naive", 1, "ladder", "", (), gate, device_s=1e-3),
        LadderEntry(
            "tiled", 2, "ladder", "", (), gate, device_s=gain and 1e-3 / gain, before="naive",
            ratio_before=gain, ratio_before_lo=ends[0], ratio_before_hi=ends[1], aa_floor=0.003,
        ),
    )  # fmt: skip
    return Placed(number, f"node{number}", device, Ladder(f"2026-01-0{number}", device, "mini", entries))


def pooled(rows: tuple[FleetRow, ...]) -> list[FleetRow]:
    return [row for row in rows if row.number is None]


def test_devices_of_one_model_are_pooled_between_their_own_gains() -> None:
    (row,) = pooled(ladder_rows([ladder(1, 1.99), ladder(2, 2.01)]))
    assert (row.name, row.before, row.devices, row.device, row.host) == (
        "tiled",
        "naive",
        2,
        "NVIDIA H200",
        None,
    )
    assert row.ratio is not None
    assert 1.99 < row.ratio < 2.01
    assert row.verdict == "FASTER"
    assert row.value is None, "a time is of one device"


def test_devices_that_disagree_widen_the_interval_and_say_so() -> None:
    (agree,) = pooled(ladder_rows([ladder(n, 2.0) for n in (1, 2, 3)]))
    (apart,) = pooled(ladder_rows([ladder(n, gain) for n, gain in enumerate((1.5, 2.0, 2.5), 1)]))
    assert agree.ratio_lo is not None
    assert apart.ratio_lo is not None
    assert apart.ratio_lo < agree.ratio_lo
    assert "disagree" in (apart.status or "")


@pytest.mark.parametrize(
    "ladders", [[ladder(1, 2.0), ladder(2, 2.0, OTHER)], [ladder(1, 2.0), ladder(2, None)], [ladder(1, 2.0)]]
)
def test_neither_two_models_nor_one_device_are_pooled(ladders: list[Placed[Ladder]]) -> None:
    assert pooled(ladder_rows(ladders)) == []


def test_a_ceiling_is_pooled_as_its_median_without_those_that_are_not_to_be_trusted() -> None:
    def measured(number: int, value: float, status: str = "ok") -> Placed[Ceilings]:
        items = (Ceiling("dram_read", value, "B/s", "a read", status=status),)
        return Placed(number, "node", H200, Ceilings("NVIDIA H200", "580.1", "2026-01-01", items))

    rows = ceiling_rows([measured(1, 4.0e12), measured(2, 4.2e12), measured(3, 9e12, "busy machine")])
    (row,) = pooled(rows)
    assert row.value == pytest.approx(4.1e12)
    assert row.devices == 2
    assert "4.9 %" in (row.status or "")
    assert [other.status for other in rows if other.number] == [None, None, "busy machine"]


def test_recordings_are_pooled_by_pair_over_all_their_windows() -> None:
    kept = recording.read(recording.locate("h200"))
    twin = replace(kept.header.device, uuid="GPU-twin")
    rows = recording_rows([Placed(1, "a", kept.header.device, kept), Placed(2, "b", twin, kept)])
    assert pooled(rows)
    for row in pooled(rows):
        own = [
            other for other in rows if other.number and (other.name, other.before) == (row.name, row.before)
        ]
        assert [other.ratio for other in own] == [own[0].ratio] * 2
        assert row.devices == 2
        assert row.ratio == pytest.approx(own[0].ratio, rel=0.05)


def test_the_table_and_the_files_say_who_measured_what() -> None:
    rows = ladder_rows([ladder(1, 1.99), ladder(2, 2.01), ladder(4, None, OTHER)])
    lines = fleet_lines(rows, Terminal())
    assert [line for line in lines if line.startswith(("1: ", "2: ", "4: "))][2].startswith("4: NVIDIA A100")
    (line,) = (line for line in lines if line.startswith("tiled"))
    assert "1.99×" in line
    assert "FASTER" in line
    header, *cells = export.fleet_csv(rows).splitlines()
    assert header.startswith("schema,time_utc,number,host,device")
    assert len(cells) == len(rows)
