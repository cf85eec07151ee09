"""Several rungs sampled in one window: each against the rung before it and the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gputop import stats
from gputop.results import Gate, LadderEntry
from gputop.session.noise import NoiseFloors
from gputop.session.sampling import LaneSamples
from gputop.spec import Plan, Rung


@dataclass(frozen=True, slots=True)
class Climb:
    """One rung's share of the window. `samples` is None where its gate failed: no gate, no time."""

    plan: Plan
    rung: Rung
    gate: Gate
    samples: LaneSamples | None
    binds: str | None = None


def entries(climbs: Sequence[Climb], noise: NoiseFloors) -> tuple[LadderEntry, ...]:
    """One a rung, in the order asked for."""
    timed = [climb for climb in climbs if climb.samples is not None]
    return tuple(_entry(climb, climbs[:index], timed, noise) for index, climb in enumerate(climbs))


def _entry(climb: Climb, earlier: Sequence[Climb], timed: Sequence[Climb], noise: NoiseFloors) -> LadderEntry:
    rung, samples = climb.rung, climb.samples
    entry = LadderEntry(
        rung=climb.plan.word,
        number=rung.number,
        kind=rung.kind,
        idea=rung.idea,
        kernels=tuple(dict.fromkeys(kernel for _, kernel in climb.plan.dispatch)),
        gate=climb.gate,
        binds=climb.binds,
    )
    if samples is None:
        return replace(entry, status=climb.gate.where)
    entry = replace(
        entry,
        device_s=stats.summarize(samples.device_s).median,
        wall_s=stats.summarize(samples.wall_s).median,
        ratio_first=_per_sequence(timed[0], climb).ratio if timed else None,
    )
    before = _before(climb, earlier)
    if before is None:
        return entry
    pair = _per_sequence(before, climb)
    verdict, why = stats.verdict(pair, noise.floor(before.plan.word, "device"))
    batches = ""
    if before.plan.batch != climb.plan.batch:
        batches = f"per sequence: batch {before.plan.batch} against {climb.plan.batch}"
    entry = replace(
        entry,
        before=before.plan.word,
        ratio_before=pair.ratio,
        ratio_before_lo=pair.ratio_lo,
        ratio_before_hi=pair.ratio_hi,
        verdict=verdict,
        status="; ".join(part for part in (why, batches) if part),
    )
    prediction = rung.prediction
    if prediction is None or before.plan.word != rung.before or climb.plan.word != rung.id:
        return entry
    return replace(
        entry,
        predicted=prediction.gain,
        predicted_lo=prediction.lo,
        predicted_hi=prediction.hi,
        source=prediction.source,
        hit=None if pair.ratio is None else prediction.lo <= pair.ratio <= prediction.hi,
    )


def _before(climb: Climb, earlier: Sequence[Climb]) -> Climb | None:
    """The rung that this one changes where it was measured, else the last measured one above it."""
    candidates = [other for other in earlier if other.samples is not None]
    own = next((other for other in candidates if other.plan.word == climb.rung.before), None)
    return own or (candidates[-1] if candidates else None)


def _per_sequence(a: Climb, b: Climb) -> stats.Paired:
    """b against a, by the time of one sequence."""
    assert a.samples is not None
    assert b.samples is not None
    return stats.paired(
        [value / a.plan.batch for value in a.samples.device_s],
        [value / b.plan.batch for value in b.samples.device_s],
    )
