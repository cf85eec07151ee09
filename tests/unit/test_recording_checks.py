"""Recordings that were changed by hand or put together: refused by line, or shown without a fault."""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gputop.results import recording
from gputop.util.errors import UsageError
from tests.unit.recordings import Lines, NothingToShow, as_bytes, show_everything, small, spoil

Changes = Callable[[Lines], object]


def found(lines: Lines, kind: str) -> dict[str, Any]:
    """The first line of a kind."""
    return next(line for line in lines if line["kind"] == kind)


def window(lines: Lines) -> dict[str, Any]:
    """That of `coalesced` against `graph`, beside which it is SLOWER."""
    windows: list[dict[str, Any]] = [line["window"] for line in lines if line["kind"] == "window"]
    plans = ["coalesced", "graph"]
    return next(window for window in windows if [lane["plan"] for lane in window["lanes"]] == plans)


def lane(lines: Lines) -> dict[str, Any]:
    lanes: list[dict[str, Any]] = window(lines)["lanes"]
    return lanes[0]


def row(lines: Lines, phase: str) -> dict[str, Any]:
    rows: list[dict[str, Any]] = lane(lines)["rows"]
    return next(row for row in rows if row["phase"] == phase)


def device_delta(lines: Lines) -> dict[str, Any]:
    deltas: list[dict[str, Any]] = window(lines)["comparison"]["deltas"]
    return next(delta for delta in deltas if delta["phase"] == "device")


def entry(lines: Lines) -> dict[str, Any]:
    entries: list[dict[str, Any]] = found(lines, "ladder")["ladder"]["entries"]
    return entries[1]


CONTRADICTIONS: dict[str, tuple[Changes, str]] = {
    "dims of 0": (
        lambda lines: lines[0]["workload"]["dims"].update(layers=0),
        "line 1: .*layers must be at least 1, got 0",
    ),
    "heads that do not divide": (
        lambda lines: lines[0]["workload"]["dims"].update(heads=7),
        "line 1: .*heads = 7 does not divide",
    ),
    "opens on no rung": (lambda lines: lines[0].update(default_rung="none"), "line 1: .*'none'"),
    "a rung twice": (
        lambda lines: lines[0]["rungs"].append(lines[0]["rungs"][0]),
        "line 1: .*rung 'naive' stands 2 times",
    ),
    "rungs that build on each other": (
        lambda lines: lines[0]["rungs"][0].update(before="coalesced"),
        "line 1: .*rung 'naive' builds on itself",
    ),
    "an absurd ceiling": (
        lambda lines: lines[0]["ceilings"]["items"][0].update(value=1.8e19),
        r"line 1: .*ceiling dram_read: no device has a value of 1\.8e\+19 B/s",
    ),
    "no time": (lambda lines: lines[0].update(time_utc="yesterday"), "line 1: .*'yesterday' is no time"),
    "a plan of another rung": (
        lambda lines: found(lines, "plan")["view"].update(rung="naive"),
        "line 2: .*is of 'naive'",
    ),
    "a kernel that can't serve": (
        lambda lines: found(lines, "plan")["view"]["sites"][0].update(kernel="gemm_none"),
        "row embed of plan 'graph' has kernel .* and not 'gemm_none'",
    ),
    "a plan twice": (lambda lines: lines.insert(2, lines[1]), "line 3: .*a line before it"),
    "PASS above the tolerance": (
        lambda lines: found(lines, "gate")["gate"].update(pass_error=0.5),
        r"line 3: .*gate PASS with an error of 0\.5, allowed",
    ),
    "PASS with a wrong phase": (
        lambda lines: found(lines, "gate")["gate"]["checks"][0].update(error=0.5),
        r"line 3: .*gate PASS with an error of 0\.5 at",
    ),
    "PASS without an error": (
        lambda lines: found(lines, "gate")["gate"].update(pass_error=None),
        "line 3: .*gate PASS with an error of unknown",
    ),
    "FAIL with times": (
        lambda lines: lane(lines)["gate"].update(status="FAIL"),
        "has times, and its gate is FAIL",
    ),
    "a time below 0": (lambda lines: row(lines, "w1").update(time_s=-1e-6), "row w1: time_s is -1e-06"),
    "a pass in no time": (
        lambda lines: lane(lines).update(device_s=lane(lines)["device_s"] / 2),
        "by its row device",
    ),
    "phases that do not add up": (
        lambda lines: row(lines, "w1").update(time_s=row(lines, "w1")["time_s"] * 2),
        "do not add up to its row sum",
    ),
    "FASTER beside 0.05": (
        lambda lines: device_delta(lines).update(verdict="FASTER"),
        r"difference of device: FASTER beside a ratio of 0\.05",
    ),
    "SLOWER without a ratio": (
        lambda lines: device_delta(lines).update(ratio=None, ratio_lo=None, ratio_hi=None),
        "difference of device: SLOWER without a ratio",
    ),
    "SAME beside a difference": (
        lambda lines: device_delta(lines).update(verdict="SAME"),
        "difference of device: SAME beside a ratio of",
    ),
    "a ratio outside of its interval": (
        lambda lines: device_delta(lines).update(ratio=100.0),
        "difference of device: 100 is not within",
    ),
    "times that are not those of the ratio": (
        lambda lines: device_delta(lines).update(b_s=device_delta(lines)["b_s"] / 20),
        "difference of device: a ratio of .* beside times",
    ),
    "another device": (
        lambda lines: window(lines)["device"].update(name="Another GPU"),
        "of another device, cuda Another GPU",
    ),
    "another card of that name": (
        lambda lines: window(lines)["device"].update(uuid="GPU-1"),
        "of another device, cuda NVIDIA H200 GPU-1",
    ),
    "another workload": (lambda lines: window(lines).update(workload="tiny"), "of workload 'tiny'"),
    "a row of another plan": (lambda lines: row(lines, "w1").update(plan="graph"), "has plan 'graph'"),
    "a row of another batch": (lambda lines: row(lines, "w1").update(batch=2), "has batch 2 and not 1"),
    "a row of another kernel": (
        lambda lines: row(lines, "w1").update(kernel="gemm_naive"),
        "has kernel 'gemm_naive'",
    ),
    "a row twice": (
        lambda lines: lane(lines)["rows"].append(row(lines, "w1")),
        "phase 'w1' stands 2 times",
    ),
    "tokens that were not computed": (
        lambda lines: row(lines, "device").update(tokens_per_s=1e9),
        r"1e\+09 tokens a second are not 128",
    ),
    "more warps than there are": (
        lambda lines: row(lines, "w1").update(occupancy_theoretical=1.5),
        r"occupancy_theoretical is 1\.5",
    ),
    "two current plans": (
        lambda lines: window(lines)["lanes"][1].update(role="current"),
        "2 current plans and 0 pinned ones",
    ),
    "a window of no plan": (lambda lines: window(lines).update(lanes=[]), "0 current plans"),
    "a comparison of others": (
        lambda lines: window(lines)["comparison"].update(plan_a="naive"),
        "which it did not time",
    ),
    "a window of an unknown plan": (lambda lines: lines.pop(1), "no line before it tells of plan 'graph'"),
    "fewer files than kernels": (lambda lines: entry(lines)["files"].pop(), "kernels and [0-9]+ files"),
    "an entry against a later one": (
        lambda lines: found(lines, "ladder")["ladder"]["entries"].reverse(),
        "which does not stand before it",
    ),
    "an entry that failed and has a time": (
        lambda lines: entry(lines)["gate"].update(status="unchecked"),
        "coalesced: it has times, and its gate is unchecked",
    ),
    "an entry of no verdict": (lambda lines: entry(lines).update(verdict="BETTER"), "'BETTER' is no verdict"),
    "a ladder without entries": (
        lambda lines: found(lines, "ladder")["ladder"].update(entries=[]),
        "it has no entries",
    ),
    "batches without entries": (
        lambda lines: found(lines, "batches")["ladder"].update(entries=[]),
        "it has no entries",
    ),
    "two ladders": (
        lambda lines: lines.insert(-1, found(lines, "ladder")),
        "a line before it holds the same",
    ),
    "a number beyond all measure": (
        lambda lines: row(lines, "w1").update(flops=10**400),
        r"line \d+: broken|beyond all measure",
    ),
}


def refusal_of(lines: Lines) -> str:
    """The sentence; empty for a recording that is read."""
    try:
        recording.parse(as_bytes(lines), "t.jsonl")
    except UsageError as error:
        return str(error)
    return ""


def test_a_recording_as_it_was_made_is_read_and_shown() -> None:
    show_everything(recording.parse(as_bytes(small()), "t.jsonl"))


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_what_contradicts_itself_is_refused_by_line(name: str) -> None:
    change, expected = CONTRADICTIONS[name]
    lines = small()
    change(lines)
    refusal = refusal_of(lines)
    assert re.match(r"t\.jsonl, line \d+: ", refusal)
    assert re.search(expected, refusal)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), changes=st.integers(1, 3))
def test_a_spoilt_recording_is_refused_by_line_or_shown(seed: int, changes: int) -> None:
    """Whatever is changed: it never ends in anything but a sentence with file and line, or a screen."""
    lines, chance = small(), random.Random(seed)
    for _ in range(changes):
        spoil(lines, chance)
    refusal = refusal_of(lines)
    if refusal:
        assert re.match(r"t\.jsonl, line \d+: .*\.$", refusal, re.DOTALL)
        return
    kept = recording.parse(as_bytes(lines), "t.jsonl")
    # A recording may hold too little to be shown, as one that was stopped early does.
    with contextlib.suppress(NothingToShow):
        show_everything(kept)
