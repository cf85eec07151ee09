"""Two rungs of one measured ladder against each other: paired there, or each against its first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gputop.results.ladder import LadderEntry
from gputop.util.interval import Interval


@dataclass(frozen=True, slots=True)
class RungPair:
    """Two rungs in the ladder's window."""

    gain: Interval
    """Time of a / time of b, of one sequence, with its 99 % interval."""
    verdict: str = ""
    """Empty where the two were not paired."""
    through: str = ""
    """Where they were not: the first rung, against which both were."""


def pair_of(entries: Sequence[LadderEntry], a: str, b: str) -> RungPair | None:
    """Compare two rungs of a ladder; None if one of them has no time there."""
    by_rung = {entry.rung: entry for entry in entries}
    before, after = by_rung.get(a), by_rung.get(b)
    if before is None or after is None or not before.device_s or not after.device_s:
        return None
    if after.before == a and after.ratio_before is not None:
        return RungPair(after.ratio_before_interval, after.verdict)
    return _through_the_first(before, after, entries[0].rung)


def _through_the_first(a: LadderEntry, b: LadderEntry, first: str) -> RungPair | None:
    """Compare through the first rung, adding both intervals: wide, but right."""
    if not a.ratio_first or not b.ratio_first:
        return None
    through = "" if first in (a.rung, b.rung) else first
    return RungPair(_to_first(b).over(_to_first(a)), through=through)


def _to_first(entry: LadderEntry) -> Interval:
    """Return the ratio to the first rung, which of the first itself is 1 and no wider."""
    if entry.ratio_first == 1.0 and entry.ratio_first_lo is None:
        return Interval(1.0, 1.0, 1.0)
    return entry.ratio_first_interval
