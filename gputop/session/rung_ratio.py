"""Two rungs of one measured ladder against each other: paired there, or each against its first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gputop.results.ladder import LadderEntry


@dataclass(frozen=True, slots=True)
class RungPair:
    """Time of a / time of b, of one sequence, in the ladder's window, with its 99 % interval; None is
    unknown."""

    ratio: float
    lo: float | None = None
    hi: float | None = None
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
        return RungPair(after.ratio_before, after.ratio_before_lo, after.ratio_before_hi, after.verdict)
    return _through_the_first(before, after, entries[0].rung)


def _through_the_first(a: LadderEntry, b: LadderEntry, first: str) -> RungPair | None:
    """Compare through the first rung, adding both intervals: wide, but right."""
    if not a.ratio_first or not b.ratio_first:
        return None
    ratio = b.ratio_first / a.ratio_first
    through = "" if first in (a.rung, b.rung) else first
    (lo_a, hi_a), (lo_b, hi_b) = _interval(a), _interval(b)
    if not lo_a or not hi_a or lo_b is None or hi_b is None:
        return RungPair(ratio, through=through)
    return RungPair(ratio, lo_b / hi_a, hi_b / lo_a, through=through)


def _interval(entry: LadderEntry) -> tuple[float | None, float | None]:
    """Return the interval of the ratio to the first rung, which is no wider than that ratio."""
    if entry.ratio_first == 1.0 and entry.ratio_first_lo is None:
        return 1.0, 1.0
    return entry.ratio_first_lo, entry.ratio_first_hi
