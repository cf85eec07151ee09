"""Several rungs sampled in one window: each against the rung before it and the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from gputop.perf import paired_stats, verdicts
from gputop.plan.rungs import Rung
from gputop.plan.types import Plan
from gputop.results.ladder import LadderEntry, PredictedGain
from gputop.results.records import Breakdown, Gate, Tuned
from gputop.session import paired_comparison
from gputop.session.aa_noise import NoiseFloors
from gputop.session.peer_forecast import PeerForecast
from gputop.session.sampling import LaneSamples


@dataclass(frozen=True, slots=True)
class LadderMeasurement:
    """One rung's share of the window. `samples` is None where its gate failed: no gate, no time."""

    plan: Plan
    rung: Rung
    gate: Gate
    samples: LaneSamples | None
    binds: str | None = None
    binds_share: float | None = None
    files: tuple[str, ...] = ()
    """Source of each kernel of the dispatch, below kernels/."""
    tokens: int | None = None
    """Of one pass, all sequences."""
    flops: float | None = None
    shape_tax: float | None = None
    model_s: float | None = None
    breakdown: Breakdown | None = None
    host_bound: bool | None = None
    tuned: tuple[Tuned, ...] = ()
    forecast: PeerForecast | None = None


def entries(
    climbs: Sequence[LadderMeasurement], noise: NoiseFloors, timer_floor_s: float
) -> tuple[LadderEntry, ...]:
    """One a rung, in the order asked for. `timer_floor_s`: as of `comparing.compare`."""
    timed = [climb for climb in climbs if climb.samples is not None]
    return tuple(
        _entry(climb, climbs[:index], timed, noise, timer_floor_s) for index, climb in enumerate(climbs)
    )


def _entry(
    climb: LadderMeasurement,
    earlier: Sequence[LadderMeasurement],
    timed: Sequence[LadderMeasurement],
    noise: NoiseFloors,
    timer_floor_s: float,
) -> LadderEntry:
    rung, samples = climb.rung, climb.samples
    entry = LadderEntry(
        rung=climb.plan.word,
        number=rung.number,
        kind=rung.kind,
        idea=rung.idea,
        kernels=tuple(map(str, climb.plan.kernels)),
        gate=climb.gate,
        binds=climb.binds,
        binds_share=climb.binds_share,
        files=climb.files,
        batch=climb.plan.batch,
        flops=climb.flops,
    )
    if samples is None:
        return replace(entry, status=climb.gate.where)
    device_s = paired_stats.summarize(samples.device_s).median
    entry = replace(
        entry,
        device_s=device_s,
        wall_s=paired_stats.summarize(samples.wall_s).median,
        tokens_per_s=climb.tokens / device_s if climb.tokens and device_s else None,
        shape_tax=climb.shape_tax,
        model_s=climb.model_s,
        breakdown=climb.breakdown,
        host_bound=climb.host_bound,
        tuned=climb.tuned,
        forecast_s=climb.forecast.time_s if climb.forecast else None,
        forecast_from=climb.forecast.basis if climb.forecast else "",
        **_against_first(timed[0], climb),
    )
    before = _before(climb, earlier)
    if before is None or before.samples is None:
        return entry
    pair = _per_sequence(before, climb)
    floor = noise.floor(before.plan.word, "device")
    too_short = paired_comparison.unresolved(timer_floor_s, before.samples.device_s, samples.device_s)
    verdict, why = paired_comparison.judged(pair, floor, too_short)
    saved = _saved(before, climb)
    batches = ""
    if before.plan.batch != climb.plan.batch:
        batches = f"per sequence: batch {before.plan.batch} against {climb.plan.batch}"
    entry = replace(
        entry,
        before=before.plan.word,
        ratio_before=pair.ratio,
        ratio_before_lo=pair.ratio_lo,
        ratio_before_hi=pair.ratio_hi,
        saved_s=saved[0],
        saved_lo_s=saved[1],
        saved_hi_s=saved[2],
        aa_floor=floor.apart,
        same_within=floor.same,
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
        hit=prediction.holds(pair.ratio_interval),
        foretold=PredictedGain.of(prediction, pair.ratio_interval),
    )


def _before(climb: LadderMeasurement, earlier: Sequence[LadderMeasurement]) -> LadderMeasurement | None:
    """The rung that this one changes where it was measured, else the last measured one above it."""
    candidates = [other for other in earlier if other.samples is not None]
    own = next((other for other in candidates if other.plan.word == climb.rung.before), None)
    return own or (candidates[-1] if candidates else None)


def _against_first(first: LadderMeasurement, climb: LadderMeasurement) -> dict[str, Any]:
    """Ratio and saving, each with its interval."""
    if climb is first:
        return {"ratio_first": 1.0}
    pair, saved = _per_sequence(first, climb), _saved(first, climb)
    return {
        "ratio_first": pair.ratio,
        "ratio_first_lo": pair.ratio_lo,
        "ratio_first_hi": pair.ratio_hi,
        "saved_first_s": saved[0],
        "saved_first_lo_s": saved[1],
        "saved_first_hi_s": saved[2],
    }


def _per_sequence(a: LadderMeasurement, b: LadderMeasurement) -> verdicts.Paired:
    """b against a, by the time of one sequence."""
    return paired_stats.paired(_sequence_s(a), _sequence_s(b))


def _saved(a: LadderMeasurement, b: LadderMeasurement) -> tuple[float | None, float | None, float | None]:
    """a - b with its interval, by the time of one sequence."""
    paired = paired_stats.paired_difference(_sequence_s(b), _sequence_s(a))
    return paired.delta_s, paired.delta_lo_s, paired.delta_hi_s


def _sequence_s(climb: LadderMeasurement) -> list[float]:
    """Time of one sequence, sample by sample."""
    assert climb.samples is not None
    return [value / climb.plan.batch for value in climb.samples.device_s]
