"""What a part's windows show, held against what was asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.proofs.evidence import Evidence, Measured
from benchmarks.proofs.spin import LARGE, SMALL
from benchmarks.proofs.watched import LABELS
from benchmarks.proofs.windows import COPIES, SPLITS, STATES
from gputop.results.meta_analysis import pool
from gputop.results.records import Comparison, Delta
from gputop.util.units import percent, seconds, significant

MOST_APART = 0.005
LEAST_SAME = 0.9
"""Of the windows of two copies."""
WIDEST_FLOOR = 0.005


@dataclass(frozen=True, slots=True)
class Finding:
    """One claim, and whether it holds."""

    claim: str
    found: str
    holds: bool | None
    """None if too little was measured to say."""


def findings(evidence: Evidence) -> tuple[Finding, ...]:
    """Every claim of the evidence's part."""
    return JUDGES[evidence.part](evidence)


def same_time(evidence: Evidence, labels: Sequence[str], claim: str) -> tuple[Finding, ...]:
    """The median times of several conditions lie within `MOST_APART`."""
    times = {
        label: median(window.device_s for window in windows)
        for label in labels
        if (windows := evidence.labelled(label))
    }
    found = ", ".join(f"{label} {seconds(time_s)}" for label, time_s in times.items())
    if len(times) < len(labels):
        return (Finding(claim, found or "nothing", None),)
    apart = max(times.values()) / min(times.values()) - 1
    return (Finding(claim, f"{found}: {percent(apart)} apart", apart <= MOST_APART),)


def _state(evidence: Evidence) -> tuple[Finding, ...]:
    where = "alone, after a visit to another library, and amid the whole ladder"
    return same_time(evidence, STATES, f"`{evidence.plan}` {where}: equal within {percent(MOST_APART)}")


def _watched(evidence: Evidence) -> tuple[Finding, ...]:
    where = "under a screen that stands still, and one that is resized and scrolled all the time"
    return same_time(evidence, LABELS, f"`{evidence.plan}` {where}: equal within {percent(MOST_APART)}")


def _copies(evidence: Evidence) -> tuple[Finding, ...]:
    deltas = _deltas(evidence.windows)
    told = [delta for delta in deltas if delta.verdict in ("FASTER", "SLOWER")]
    same = [delta for delta in deltas if delta.verdict == "SAME"]
    known = [delta for delta in same if (delta.same_within or math.inf) <= WIDEST_FLOOR]
    whole = len(deltas) >= COPIES
    unknown = len(deltas) - len(told) - len(same)
    return (
        Finding(
            f"{COPIES} windows of two copies: none says FASTER or SLOWER",
            f"{len(told)} of {len(deltas)} do",
            not told if told or whole else None,
        ),
        Finding(
            f"{COPIES} windows of two copies: at least {percent(LEAST_SAME)} say SAME with a floor of "
            f"at most {percent(WIDEST_FLOOR)}",
            f"{len(known)} of {len(deltas)} do; {len(same)} say SAME, {unknown} UNRESOLVED"
            f"{_floors([delta.aa_floor for delta in deltas])}",
            len(known) >= LEAST_SAME * len(deltas) if whole else None,
        ),
    )


def _floors(floors: Sequence[float]) -> str:
    if not floors:
        return ""
    least, most = percent(min(floors)), percent(max(floors))
    return f"; floors from {least} to {most}, median {percent(median(floors))}"


def _spin(evidence: Evidence) -> tuple[Finding, ...]:
    large, small = (evidence.labelled(spin.label) for spin in (LARGE, SMALL))
    found = [delta for delta in _deltas(large) if delta.verdict == "SLOWER"]
    wanted = LARGE.windows
    return (
        Finding(
            f"A wait of {LARGE.label} of the pass is found {wanted} times of {wanted}",
            f"SLOWER in {len(found)} of {len(large)}",
            len(found) == len(large) if len(large) >= wanted else None,
        ),
        _small_wait(small),
    )


def _small_wait(windows: Sequence[Measured]) -> Finding:
    claim = f"One of {SMALL.label}: the pooled interval excludes 0 and covers what was added"
    pooled = pooled_delta(windows)
    if pooled is None or pooled.ratio_lo is None or pooled.ratio_hi is None:
        return Finding(claim, "nothing", None)
    added = median(window.expected_ratio for window in windows if window.expected_ratio)
    covers, excludes = pooled.ratio_lo <= added <= pooled.ratio_hi, pooled.ratio_hi < 1
    words = f"{longer_words(pooled)} longer in {len(windows)} windows, {percent(1 / added - 1)} added"
    return Finding(claim, words, covers and excludes if len(windows) >= SMALL.windows else None)


def _split(evidence: Evidence) -> tuple[Finding, ...]:
    pooled, windows = pooled_delta(evidence.windows), len(evidence.windows)
    claim = f"wo in 8 parts against 4, in {SPLITS} windows pooled: the interval excludes no difference"
    if pooled is None or pooled.ratio_lo is None or pooled.ratio_hi is None:
        return (Finding(claim, "nothing", None),)
    tells = not pooled.ratio_lo <= 1 <= pooled.ratio_hi
    words = f"8 parts take {longer_words(pooled)} longer, {seconds(pooled.delta_s)} a pass"
    return (Finding(claim, words, tells if windows >= SPLITS else None),)


def pooled_delta(windows: Sequence[Measured]) -> Delta | None:
    """Return all windows of a pair as one; None if there is none."""
    deltas = _deltas(windows)
    if not deltas:
        return None
    return pool([Comparison("a", "b", 1, (delta,)) for delta in deltas]).get(deltas[0].phase)


def longer_words(delta: Delta) -> str:
    """By how much plan b takes longer: `0.21 % [0.15, 0.27]`."""
    slower = delta.ratio_interval.inverse
    low, middle, high = (
        "?" if ratio is None else significant(100 * (ratio - 1))
        for ratio in (slower.lo, slower.value, slower.hi)
    )
    return f"{middle} % [{low}, {high}]"


def _deltas(windows: Sequence[Measured]) -> list[Delta]:
    return [window.delta for window in windows if window.delta is not None]


JUDGES: Mapping[str, Callable[[Evidence], tuple[Finding, ...]]] = {
    "state": _state,
    "copies": _copies,
    "spin": _spin,
    "split": _split,
    "watched": _watched,
}
