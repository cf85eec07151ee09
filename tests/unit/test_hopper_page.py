"""The figures of docs/hopper.md are those of the recording that it names."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from gputop.results import recording
from gputop.results.ladder import LadderEntry
from gputop.results.recording import Recording
from gputop.results.records import Row
from gputop.util import units

PAGE = (Path(__file__).parents[2] / "docs" / "hopper.md").read_text(encoding="utf-8")
LAYER = {
    "ln1 and qkv": ("ln1", "qkv", "ln1+qkv"),
    "attention": ("attention",),
    "wo": ("wo",),
    "ln2 and w1": ("ln2", "w1", "ln2+w1"),
    "w2": ("w2",),
}
"""Name in the table -> the sites that do it, in either plan."""


@cache
def kept() -> Recording:
    return recording.read(recording.shipped()["h200-copy-engine"])


def table_after(heading: str) -> list[list[str]]:
    """The cells of the first table below a line, without its head."""
    rows = re.search(r"\| --- [^\n]*\n((?:\|[^\n]*\n)+)", PAGE[PAGE.index(heading) :])
    assert rows is not None
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in rows[1].splitlines()]


def sites_of(plan: str) -> dict[str, Row]:
    """Site -> its row in the window that gputop shows first of this plan."""
    lanes = [lane for window in kept().windows for lane in window.lanes if lane.plan == plan]
    return {row.phase: row for row in lanes[0].rows}


def launch_us(rows: dict[str, Row], sites: tuple[str, ...], attribute: str) -> float:
    """Microseconds of one launch of each of these sites, together."""
    values = [(getattr(row, attribute), row.count) for site, row in rows.items() if site in sites]
    assert values
    return float(1e6 * sum(value / count for value, count in values))


@pytest.mark.parametrize("cells", table_after("# From"), ids=lambda cells: cells[0])
def test_the_ladder_of_the_page_is_the_recorded_one(cells: list[str]) -> None:
    rung, device, ratio, predicted, held = cells
    ladder = kept().ladder
    assert ladder is not None
    entry: LadderEntry = next(entry for entry in ladder.entries if entry.rung == rung)
    assert entry.device_s is not None
    assert device == units.seconds(entry.device_s)
    if ratio:
        assert entry.ratio_before is not None
        assert entry.predicted is not None
        assert (ratio, predicted) == (f"{entry.ratio_before:.2f}×", f"{entry.predicted:.2f}×")
        assert held == ("hit" if entry.hit else "miss")


@pytest.mark.parametrize("cells", table_after("## What is left"), ids=lambda cells: cells[0])
def test_the_phases_of_a_layer_are_the_recorded_ones(cells: list[str]) -> None:
    name, before, now, floor = cells
    own = sites_of("attention-tma")
    assert float(before) == pytest.approx(launch_us(sites_of("hopper"), LAYER[name], "time_s"), abs=0.05)
    assert float(now) == pytest.approx(launch_us(own, LAYER[name], "time_s"), abs=0.05)
    assert float(floor) == pytest.approx(launch_us(own, LAYER[name], "floor_s"), abs=0.05)


@pytest.mark.parametrize("cells", table_after("## The rungs after"), ids=lambda cells: cells[0])
def test_the_rungs_after_it_are_those_of_their_recording(cells: list[str]) -> None:
    rung, device, before, ratio, against_graph = cells
    assert paced_cells(rung, before or "graph") == (device, ratio, against_graph)


def paced_cells(rung: str, before: str) -> tuple[str, str, str]:
    """A rung's device time, its ratio to the one before if that is not `graph`, and to `graph`, as shown."""
    found = {
        window.comparison.plan_a: window
        for window in recording.read(recording.shipped()["h200-paced"]).windows
        if window.comparison is not None and window.comparison.plan_b == rung
    }

    def ratio_to(plan: str) -> str:
        comparison = found[plan].comparison
        whole = comparison.get("device") if comparison else None
        assert whole is not None
        unresolved = ", UNRESOLVED" if whole.verdict == "UNRESOLVED" else ""
        return units.ratio_within(whole.ratio_interval) + unresolved

    lane = found["graph"].lane("current")
    assert lane is not None
    device = next(row.time_s for row in lane.rows if row.phase == "device")
    return units.seconds(device), "" if before == "graph" else ratio_to(before), ratio_to("graph")


def test_what_hopper_won_and_lost_is_what_was_recorded() -> None:
    found = re.search(r"gained (\d+) µs, and attention lost (\d+) µs", PAGE)
    assert found is not None
    before, after = sites_of("dependent"), sites_of("hopper")

    def saved_us(site: str) -> float:
        then, now = before[site].time_s, after[site].time_s
        assert then is not None
        assert now is not None
        return 1e6 * (then - now)

    assert float(found[1]) == pytest.approx(sum(map(saved_us, ("qkv", "w1", "w2"))), abs=0.5)
    assert float(found[2]) == pytest.approx(-saved_us("attention"), abs=0.5)
