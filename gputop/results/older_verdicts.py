"""Verdicts of recordings that do not say how well copies of a plan were known, held to today's rule.

They called two plans the same within a floor that the copies' own noise had widened.
"""

from __future__ import annotations

from dataclasses import replace

from gputop.perf.verdicts import COPIES_KNOWN, MIN_ROUNDS_TO_STOP, floor_words
from gputop.results.ladder import Ladder, LadderEntry
from gputop.results.records import Comparison, Delta, PlanResult, Window

WIDEST_UNTOLD = COPIES_KNOWN
"""|log ratio|: the largest floor within which SAME stands if nothing else is known of the copies, since no
floor is below their half width."""


def rejudged_window(window: Window) -> Window:
    """The window with `UNRESOLVED` in place of each `SAME` that its figures do not carry."""
    before = window.comparison
    if before is None:
        return window
    comparison = replace(
        before,
        deltas=tuple(_delta(delta) for delta in before.deltas),
        sites=tuple(_delta(delta) for delta in before.sites),
    )
    if comparison == before:
        return window
    return replace(
        window,
        comparison=comparison,
        lanes=tuple(_lane(lane, comparison) for lane in window.lanes),
        verdict=_sentence(window.verdict, before.get("device"), comparison.get("device")),
    )


def rejudged_ladder(ladder: Ladder) -> Ladder:
    """As `rejudged_window`. An old ladder does not say how many rounds it had."""
    return replace(ladder, entries=tuple(map(_entry, ladder.entries)))


def _delta(delta: Delta) -> Delta:
    if delta.verdict != "SAME" or delta.same_within is not None:
        return delta
    why = ""
    if delta.aa_floor > WIDEST_UNTOLD:
        why = _too_wide(delta.aa_floor)
    elif delta.samples < MIN_ROUNDS_TO_STOP:
        why = f"too few rounds to be the same: {delta.samples} of at least {MIN_ROUNDS_TO_STOP}"
    if not why:
        return delta
    return replace(
        delta, verdict="UNRESOLVED", status="; ".join(part for part in (why, delta.status) if part)
    )


def _entry(entry: LadderEntry) -> LadderEntry:
    floor = entry.aa_floor
    if entry.verdict != "SAME" or entry.same_within is not None or (floor or 0.0) <= WIDEST_UNTOLD:
        return entry
    why = _too_wide(floor or 0.0)
    return replace(
        entry, verdict="UNRESOLVED", status="; ".join(part for part in (why, entry.status) if part)
    )


def _too_wide(floor: float) -> str:
    return f"within the {floor_words(floor)}, which says too little of copies"


def _lane(lane: PlanResult, comparison: Comparison) -> PlanResult:
    """Its rows with the verdicts of the same sites or phases."""
    rows = []
    for row in lane.rows:
        delta = comparison.at(row.phase) or comparison.get(row.phase)
        changed = row.verdict == "SAME" and delta is not None and delta.verdict != "SAME"
        rows.append(replace(row, verdict=delta.verdict) if changed and delta is not None else row)
    return replace(lane, rows=tuple(rows))


def _sentence(words: str, before: Delta | None, after: Delta | None) -> str:
    if before is None or after is None or before.verdict == after.verdict:
        return words
    return words.replace(f", {before.verdict}", f", {after.verdict}: {after.status}", 1)
