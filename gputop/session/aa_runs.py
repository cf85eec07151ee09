"""Copies of a plan, prepared anew and sampled beside it for its A/A floor: what placement alone is worth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gputop.backends.base import Say
from gputop.perf import paired_stats
from gputop.session import paired_comparison
from gputop.session.aa_noise import NoiseFloors
from gputop.session.context import SessionContext
from gputop.session.prepared_plans import PreparedLane
from gputop.session.sampling import LaneSamples, expected_sample_s

ENOUGH = 6
"""Pairs of copies of one plan after which a window adds one more only: without any nothing is the same."""
SHORT_PASS_S = 0.02
LONG_PASS_S = 0.5
"""A copy of a pass longer than this would cost minutes: the backend's minimum stands in for its floor."""
OF_A_LADDER = 2
"""Rungs of a ladder that are sampled twice: the fastest, of which placement moves the largest share."""


def copies_for_pair(
    bench: SessionContext, pinned: LaneSamples, current: LaneSamples, seconds: float | None, say: Say
) -> tuple[list[LaneSamples], tuple[str, ...]]:
    """Copies of the pinned plan, as many as the window leaves time for, and why there can't be any."""
    plan, pass_s = pinned.lane.plan, pinned.lane.pass_s
    known = bench.noise.count(plan.word)
    if pass_s > LONG_PASS_S:
        return [], ("A/A floor: a copy of a pass this long would take minutes",)
    wanted = 3 if pass_s < SHORT_PASS_S and known < ENOUGH else 1
    if seconds is not None:
        copy_s = expected_sample_s(pinned.lane)
        left_s = seconds / paired_stats.MIN_ROUNDS - copy_s - expected_sample_s(current.lane)
        wanted = min(wanted, max(0, int(left_s / copy_s)))
    held = [pinned.lane, current.lane]
    while len(held) < 2 + wanted:
        if not bench.lanes.room_for(plan):
            return _lanes(held[2:], pinned), ("A/A floor: no memory for more copies of the pinned plan",)
        held.append(bench.lanes.get(plan, say, copy=f"A/A {len(held)}", held=held))
    return _lanes(held[2:], pinned), ()


def copies_for_ladder(
    bench: SessionContext, rungs: Sequence[LaneSamples], say: Say
) -> list[tuple[LaneSamples, LaneSamples]]:
    """Originals among the rungs, each with its copy."""
    if len(rungs) < 2:
        return []
    ours = sorted((rung for rung in rungs if not rung.lane.plan.peer), key=lambda rung: rung.lane.pass_s)
    held = [rung.lane for rung in rungs]
    found = []
    for rung in ours[:OF_A_LADDER]:
        plan, pass_s = rung.lane.plan, rung.lane.pass_s
        if pass_s > LONG_PASS_S or not bench.lanes.room_for(plan):
            continue
        held.append(bench.lanes.get(plan, say, copy="A/A", held=held))
        found += [(rung, copy) for copy in _lanes(held[-1:], rung)]
    return found


def owner_of(noise: NoiseFloors, copies: Iterable[tuple[LaneSamples, LaneSamples]]) -> str:
    """Return the ladder's sentence on the A/A floors of its pairs."""
    words = [original.lane.plan.word for original, _ in copies if noise.count(original.lane.plan.word)]
    return f"A/A floor: from copies of {' and '.join(words)}" if words else "A/A floor: no copy was measured"


def keep(noise: NoiseFloors, original: LaneSamples, copy: LaneSamples) -> None:
    """Keep by how much the two copies differ: each phase, each site and the whole pass."""
    found = paired_comparison.groups(original.prepared.steps)
    word = original.lane.plan.word
    pairs = zip(
        paired_comparison.all_series(original, found), paired_comparison.all_series(copy, found), strict=True
    )
    for (name, a), (_, b) in pairs:
        noise.add(word, name, paired_stats.paired(a, b))
    copied = paired_comparison.site_series(copy)
    for site, times in paired_comparison.site_series(original).items():
        if site in copied:
            noise.add(word, paired_comparison.site_key(site), paired_stats.paired(times, copied[site]))


def unknown_floor(noise: NoiseFloors, word: str) -> tuple[str, ...]:
    """Return a sentence on a floor that no copy of the plan measured; empty if one did."""
    if noise.count(word):
        return ()
    stands_in = "what copies of other plans differed by" if noise.any_known else "this backend's minimum"
    return (f"A/A floor: no copy of {word} was measured, {stands_in} stands in",)


def _lanes(copies: list[PreparedLane], original: LaneSamples) -> list[LaneSamples]:
    return [LaneSamples(copy, original.sample_s) for copy in copies if copy.gate.ok]
