"""Findings of the campaign's story that rest on phase tables, and of the rungs that it did not have."""

from __future__ import annotations

from docs.evidence import NOT_TOGETHER, Evidence
from docs.findings import Finding, Reading, absent, all_products, faster, products_s
from gputop.results.records import Row
from gputop.util import units

IN_ONE = "in one window"
PRODUCTS = ("qkv", "wo", "w1", "w2")


def _time_s(row: Row | None) -> float | None:
    return row.time_s if row is not None else None


def _apart(evidence: Evidence, *rungs: str) -> Reading:
    """Nothing, where one of them was not measured; else that their windows are not to be compared."""
    if any(not evidence.rows(rung) for rung in rungs):
        return absent(evidence, *rungs)
    return Reading(NOT_TOGETHER)


def _split(evidence: Evidence) -> Reading:
    both = evidence.together("register-tiled", "split-k")
    whole, split = (rows.get("w2") for rows in both) if both else (None, None)
    if not (whole and split and whole.time_s and split.time_s):
        return _apart(evidence, "register-tiled", "split-k")
    ours = f"w2 {units.seconds(whole.time_s)} to {units.seconds(split.time_s)}, {IN_ONE}"
    before, after = whole.warps_in_flight, split.warps_in_flight
    if before is None or after is None:
        return Reading(ours, None, "the warps in flight are not known")
    ours += f"; {before:.0f} warps in flight, then {after:.0f}"
    return Reading(ours, split.time_s <= whole.time_s / 2 and after > before)


def _attention(evidence: Evidence) -> Reading:
    both = evidence.together("split-k", "attention")
    before_s, after_s = (_time_s(rows.get("attention")) for rows in both) if both else (None, None)
    if not before_s or not after_s:
        return _apart(evidence, "split-k", "attention")
    ours = f"{units.seconds(before_s)} to {units.seconds(after_s)}, {IN_ONE}"
    return Reading(ours, after_s <= before_s / 2)


def _fp32(evidence: Evidence) -> Reading:
    rungs = ("sass-fp32", "oracle-fp32")
    both = evidence.together(*rungs)
    if both is not None:
        own, library = (sum(_time_s(rows.get(site)) or 0.0 for site in PRODUCTS) for rows in both)
        ours = f"{units.seconds(own)} against {units.seconds(library)} for the four products, {IN_ONE}"
        return Reading(ours, own < library)
    ours_s, theirs_s = (products_s(evidence, rung) for rung in rungs)
    if not ours_s or not theirs_s:
        return absent(evidence, *rungs)
    why = "a ladder divides only few of its passes, so this has no interval"
    return Reading(" ".join(all_products(evidence, *rungs)), ours_s < theirs_s, why)


def _dependent(evidence: Evidence) -> Reading:
    pair, both = evidence.pair("graph", "dependent"), evidence.together("graph", "dependent")
    before_s, after_s = (_time_s(rows.get("gaps")) for rows in both) if both else (None, None)
    if pair is None or not before_s or after_s is None:
        return _apart(evidence, "graph", "dependent")
    ours = f"{pair.text}; gaps {units.seconds(before_s)}, then {units.seconds(after_s)}, {IN_ONE}"
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
        "7 % ahead", "all products of a pass together take less time", _fp32,
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
