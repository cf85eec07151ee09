"""Sampling lanes alternately: how many passes make a sample, warming up, and when to stop."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter

from gputop.backends.base import PassTimes, PhaseTimes, Prepared, Say
from gputop.perf import paired_stats
from gputop.session.prepared_plans import PreparedLane, PreparedLanes
from gputop.session.progress import RoundBudget, SoFar, round_words

LEAST_PASSES = 3
FEWEST_PASSES = 2
"""Of a sample where not even one round of `LEAST_PASSES` a lane fits into the time asked for."""
SAMPLE_S = 0.008
"""A sample of a short pass takes at least this long: the timer's own step must not show."""
SHORT_SAMPLE_S = 0.004
"""The same where whole passes alone are timed, in many windows."""
MOST_PASSES = 200
PHASE_PASSES = 5
"""Most passes behind one sample of a phase: short phases are noisy one pass at a time."""
TRIED_S = 0.05
"""A sample that is expected to take longer is tried with the fewest passes to know how long it takes."""
LONGEST_TRIED_S = 0.5
"""A pass that takes longer is not run once more for that."""
WARM_UP_S = 0.3
STEADY = 0.03
"""Warm when two samples in a row differ by less than this. Where a sample takes longer than the warm-up, none
is needed: the first pass of every sample is dropped."""

GATE_FAILED = "gate failed"
"""Why a window ends that has nothing left to time."""

Stop = Callable[[], bool]


@dataclass(slots=True, eq=False)
class LaneSamples:
    """What a lane gave in one window, sample by sample; seconds per pass."""

    lane: PreparedLane
    sample_s: float = SAMPLE_S
    """How long a sample's passes take at least."""
    passes: int = LEAST_PASSES
    device_s: list[float] = field(default_factory=list)
    wall_s: list[float] = field(default_factory=list)
    submit_s: list[float] = field(default_factory=list)
    clocks_hz: list[float] = field(default_factory=list)
    """SM clock during each sample's passes, where the device's own counters tell it."""
    phases: list[PhaseTimes] = field(default_factory=list)
    """One a sample, of its several passes; empty where the plan has no split."""

    @property
    def prepared(self) -> Prepared:
        return self.lane.prepared

    def keep(self, times: PassTimes, phases: PhaseTimes | None) -> None:
        self.device_s.append(times.device_s)
        self.wall_s.append(times.wall_s)
        if times.submit_s is not None:
            self.submit_s.append(times.submit_s)
        if times.clock_hz is not None:
            self.clocks_hz.append(times.clock_hz)
        # A clock that failed amid a window gave way to another, whose times say nothing beside its own.
        if phases is not None and phases.timer == (self.phases or [phases])[0].timer:
            self.phases.append(phases)

    @property
    def phase_floor_s(self) -> float:
        """Step and spread of what timed the phases; 0 where nothing did."""
        return max((sample.timer_floor_s for sample in self.phases), default=0.0)

    @property
    def clock_hz(self) -> float | None:
        """The median sample's clock; None where no sample tells one."""
        return median(self.clocks_hz) if self.clocks_hz else None

    def site_s(self, site: str) -> list[float]:
        """Time of one site, sample by sample; empty when the plan has no such site."""
        return [sample.time_s[site] for sample in self.phases if site in sample.time_s]


def sample_lanes(
    lanes: Sequence[LaneSamples],
    *,
    budget_s: float,
    least_rounds: int,
    enough: Callable[[], str],
    stop: Stop,
    say: Say,
    phase_rounds: int | None = None,
    so_far: SoFar = lambda: "",
) -> str:
    """Rounds over the lanes in `stats.order`, until something ends them; says what did.

    `enough` gives the reason to end, empty to go on. A round that could not end within the budget is not
    begun, but at least `least_rounds` are done, unless `stop` says otherwise. Warming up comes before the
    budget: many lanes would else have warmed up for nothing. `phase_rounds`: the rounds that also split
    passes by phase; None: all. `so_far` gives what is known of a comparison, for whoever waits. A lane whose
    gate fails on the way is sampled no more.
    """
    for lane in lanes:
        _warm_up(lane, stop)
    start = perf_counter()
    if sum(LEAST_PASSES * lane.lane.pass_s for lane in lanes) > budget_s:
        for lane in lanes:
            lane.passes = FEWEST_PASSES if lane.passes == LEAST_PASSES else lane.passes
    rounds = 0
    budget = RoundBudget(budget_s, least_rounds)
    while not stop():
        begun = perf_counter()
        known = so_far()
        for index in paired_stats.order(rounds, len(lanes)):
            if not lanes[index].lane.gate.ok:
                continue
            say(round_words(budget, rounds, begun - start, lanes[index].lane.plan.word, known))
            _sample(lanes[index], split=phase_rounds is None or rounds < phase_rounds)
            if stop():
                return "stopped"
        rounds += 1
        if not any(lane.lane.gate.ok for lane in lanes):
            return GATE_FAILED
        if rounds < least_rounds:
            continue
        if reason := enough():
            return reason
        now = perf_counter()
        if now - start + (now - begun) > budget_s:
            return "time budget"
    return "stopped"


def still_right(plans: PreparedLanes, lanes: Collection[LaneSamples], say: Say) -> bool:
    """Return whether no plan failed its gate while it was timed, nor fails the pass gate afterwards."""
    for lane in lanes:
        if lane.lane.gate.ok:
            plans.check_again(lane.lane, say)
    return all(lane.lane.gate.ok for lane in lanes)


def expected_sample_s(lane: PreparedLane) -> float:
    """About how long one sample of a lane takes, its phases included; found once, by trying unless a pass
    takes too long for that.

    What a sample runs besides its passes is its backend's: a device is timed by two clocks in turn, a
    recording of phases has a pass to warm up, and starting and ending it may take longer than short passes.
    """
    if lane.sample_s is None:
        lane.sample_s = _tried_s(lane)
    return lane.sample_s


def _tried_s(lane: PreparedLane) -> float:
    passes = few = _passes(lane.pass_s)
    expected_s = (passes + _phase_passes(passes)) * lane.pass_s
    if lane.pass_s > LONGEST_TRIED_S:
        return expected_s
    if expected_s > TRIED_S:
        few = FEWEST_PASSES
    else:
        # The lane's own time of a pass is a poisoned one's, and samples are of more passes than that.
        passes = few = _passes(lane.sample_pass(passes).wall_s)
    start = perf_counter()
    _sample(LaneSamples(lane, passes=few), split=True)
    return (perf_counter() - start) * (passes + _phase_passes(passes)) / (few + _phase_passes(few))


def _warm_up(lane: LaneSamples, stop: Stop) -> None:
    """Run the real work until it is steady, then choose how many passes make a sample."""
    pass_s, spent_s = lane.lane.pass_s, 0.0
    while LEAST_PASSES * pass_s < WARM_UP_S and spent_s < WARM_UP_S and not stop():
        start = perf_counter()
        before_s, pass_s = pass_s, lane.lane.sample_pass(_passes(pass_s, lane.sample_s)).wall_s
        spent_s += perf_counter() - start
        if abs(pass_s / before_s - 1) < STEADY:
            break
    lane.passes = _passes(pass_s, lane.sample_s)


def _passes(pass_s: float, sample_s: float = SAMPLE_S) -> int:
    return min(MOST_PASSES, max(LEAST_PASSES, math.ceil(sample_s / pass_s) + 1))


def _phase_passes(passes: int) -> int:
    return min(PHASE_PASSES, max(1, passes - LEAST_PASSES + 1))


def _sample(lane: LaneSamples, split: bool) -> None:
    times = lane.lane.sample_pass(lane.passes)
    lane.keep(times, _typical_split(lane.prepared, _phase_passes(lane.passes)) if split else None)


def _typical_split(prepared: Prepared, passes: int) -> PhaseTimes | None:
    """The phases of several passes, each site at its least disturbed."""
    known = prepared.sample_phases(passes)
    if not known:
        return None

    def typical(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
        return {site: paired_stats.undisturbed([part.get(site, 0.0) for part in parts]) for site in parts[0]}

    return PhaseTimes(
        time_s=typical([split.time_s for split in known]),
        gap_s=typical([split.gap_s for split in known]),
        overlap_s=typical([split.overlap_s for split in known]),
        timer=known[0].timer,
        timer_floor_s=known[0].timer_floor_s,
    )
