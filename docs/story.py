"""Findings of the campaign's story that rest on phase tables, and of the rungs that it did not have."""

from __future__ import annotations

from docs.evidence import Evidence
from docs.findings import Finding, Reading, absent, faster
from gputop import units
from gputop.results import Row

GEMMS = ("qkv", "wo", "w1", "w2")
APART = "each in a window of its own"


def _time_s(row: Row | None) -> float | None:
    return row.time_s if row is not None else None


def _split(evidence: Evidence) -> Reading:
    whole, split = (evidence.rows(rung).get("w2") for rung in ("register-tiled", "split-k"))
    if not (whole and split and whole.time_s and split.time_s):
        return absent(evidence, "register-tiled", "split-k")
    ours = f"w2 {units.seconds(whole.time_s)} to {units.seconds(split.time_s)}, {APART}"
    before, after = whole.warps_in_flight, split.warps_in_flight
    if before is None or after is None:
        return Reading(ours, None, "the warps in flight are not known")
    ours += f"; {before:.0f} warps in flight, then {after:.0f}"
    return Reading(ours, split.time_s <= whole.time_s / 2 and after > before)


def _attention(evidence: Evidence) -> Reading:
    before_s, after_s = (_time_s(evidence.rows(rung).get("attention")) for rung in ("split-k", "attention"))
    if not before_s or not after_s:
        return absent(evidence, "split-k", "attention")
    ours = f"{units.seconds(before_s)} to {units.seconds(after_s)}, {APART}"
    return Reading(ours, after_s <= before_s / 2)


def _fp32(evidence: Evidence) -> Reading:
    sums: list[float] = []
    for rung in ("sass-fp32", "oracle-fp32"):
        times = [_time_s(evidence.rows(rung).get(site)) for site in GEMMS]
        if None in times:
            return absent(evidence, "sass-fp32", "oracle-fp32")
        sums.append(sum(time or 0.0 for time in times))
    ours_s, theirs_s = sums
    ours = f"{units.seconds(ours_s)} against {units.seconds(theirs_s)} for the four products, {APART}"
    return Reading(ours, ours_s < theirs_s)


def _dependent(evidence: Evidence) -> Reading:
    pair = evidence.pair("graph", "dependent")
    before_s, after_s = (_time_s(evidence.rows(rung).get("gaps")) for rung in ("graph", "dependent"))
    if pair is None or not before_s or after_s is None:
        return absent(evidence, "graph", "dependent")
    ours = f"{pair.text}; gaps {units.seconds(before_s)}, then {units.seconds(after_s)}, {APART}"
    return Reading(ours, after_s <= before_s / 2)


def _hopper(evidence: Evidence) -> Reading:
    pair = evidence.pair("dependent", "hopper")
    return Reading(pair.text, faster(pair)) if pair else absent(evidence, "dependent", "hopper")


FINDINGS = (
    Finding(
        None, "Dividing the inner axis gives a starved product the warps that it lacked.",
        "w2 4.03 to 1.00 ms; 192 warps in flight, then 1536",
        "w2 takes at most half the time, with more warps in flight", _split,
    ),
    Finding(
        None, "Attention by warps, with sums by shuffle trees, takes less than half of its phase.",
        "0.98 to 0.42 ms", "at most half of the time", _attention,
    ),
    Finding(
        None, "fp32 products written against their machine code are ahead of the library's.",
        "7 % ahead", "the four products of all layers together take less time", _fp32,
    ),
    Finding(
        None, "Kernels that may start early close the gaps that a graph leaves.",
        "not tried", "the gaps are at most half as long", _dependent,
    ),
    Finding(
        None, "Our own products on the newest instructions win once they start early.",
        "not tried", "known to be faster", _hopper,
    ),
)  # fmt: skip
