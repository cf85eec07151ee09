"""What measuring several rungs in one window gives."""

from __future__ import annotations

from dataclasses import dataclass

from gputop.plan.rungs import Prediction
from gputop.results.records import Breakdown, DeviceFacts, Gate, Health, Tuned
from gputop.util.interval import Interval


@dataclass(frozen=True, slots=True)
class PredictedGain:
    """What was first predicted of a rung whose prediction was revised, and whether that held."""

    gain: float
    lo: float
    hi: float
    source: str
    revised: str
    """When it was, as in `revised when ...`."""
    hit: bool | None = None
    """As of `LadderEntry`."""

    @property
    def interval(self) -> Interval:
        return Interval(self.gain, self.lo, self.hi)

    @classmethod
    def of(cls, prediction: Prediction, gain: Interval) -> PredictedGain | None:
        """Beside a measured gain; None if the prediction is the first."""
        first = prediction.first
        if first is None:
            return None
        hit = first.holds(gain)
        return cls(first.gain, first.lo, first.hi, first.source, prediction.revised, hit)


@dataclass(frozen=True, slots=True)
class LadderEntry:
    """One rung of a ladder measured in one window, beside what was predicted of it."""

    rung: str
    number: int
    kind: str
    idea: str
    kernels: tuple[str, ...]
    gate: Gate
    device_s: float | None = None
    wall_s: float | None = None
    before: str | None = None
    ratio_before: float | None = None
    """Time of the rung before / time of this one, with its 99 % interval."""
    ratio_before_lo: float | None = None
    ratio_before_hi: float | None = None
    ratio_first: float | None = None
    """Time of the first rung / time of this one, of one sequence."""
    predicted: float | None = None
    predicted_lo: float | None = None
    predicted_hi: float | None = None
    source: str | None = None
    hit: bool | None = None
    """Whether the measured gain lies in the predicted interval, its own interval and all; None where that
    straddles a bound. Without an interval of its own (`ratio_before_lo` None) the gain alone decides."""
    binds: str | None = None
    verdict: str = ""
    status: str = ""
    files: tuple[str, ...] = ()
    """The .cu below kernels/ of each of `kernels`; empty for a library's or the cpu's."""
    batch: int | None = None
    tokens_per_s: float | None = None
    flops: float | None = None
    """Work of the plan, all sequences of one pass."""
    saved_s: float | None = None
    """Time of the rung before - time of this one, of one sequence, with its 99 % interval."""
    saved_lo_s: float | None = None
    saved_hi_s: float | None = None
    ratio_first_lo: float | None = None
    ratio_first_hi: float | None = None
    saved_first_s: float | None = None
    """Time of the first rung - time of this one, of one sequence, with its 99 % interval."""
    saved_first_lo_s: float | None = None
    saved_first_hi_s: float | None = None
    shape_tax: float | None = None
    """Time / time without what padding and idle SMs account for, as the model splits it; of sites whose
    shape is unknown nothing is taken off. None where no site's is known."""
    model_s: float | None = None
    """The pass by the term model alone."""
    breakdown: Breakdown | None = None
    tuned: tuple[Tuned, ...] = ()
    host_bound: bool | None = None
    forecast_s: float | None = None
    """Of a peer: its device time, forecast from its features without any time of its own."""
    forecast_from: str = ""
    """What that rests on."""
    through: str = ""
    """The recording's first rung, if it is hidden: ratios to the first one shown go through it and have
    wider intervals. Empty if they were measured directly."""
    foretold: PredictedGain | None = None
    """The original prediction, if `predicted` was revised."""
    aa_floor: float | None = None
    """|log ratio| that two copies of one plan reach, to which `verdict` was held; None where there is no
    rung before, and in recordings older than it."""
    same_within: float | None = None
    """As of `Delta`."""
    binds_share: float | None = None
    """Of `device_s`, what binds takes; None in recordings older than it."""

    @property
    def ratio_before_interval(self) -> Interval:
        return Interval(self.ratio_before, self.ratio_before_lo, self.ratio_before_hi)

    @property
    def ratio_first_interval(self) -> Interval:
        return Interval(self.ratio_first, self.ratio_first_lo, self.ratio_first_hi)

    @property
    def predicted_interval(self) -> Interval:
        return Interval(self.predicted, self.predicted_lo, self.predicted_hi)

    @property
    def saved_interval_s(self) -> Interval:
        return Interval(self.saved_s, self.saved_lo_s, self.saved_hi_s)

    @property
    def saved_first_interval_s(self) -> Interval:
        return Interval(self.saved_first_s, self.saved_first_lo_s, self.saved_first_hi_s)


@dataclass(frozen=True, slots=True)
class Ladder:
    """Several rungs measured alternately in one window."""

    time_utc: str
    device: DeviceFacts
    workload: str
    entries: tuple[LadderEntry, ...]
    notes: tuple[str, ...] = ()
    health: Health | None = None
    """Before and after sampling, as one; None in recordings older than it."""
