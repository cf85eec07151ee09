"""How many passes a window asks for, given how long they take and how long it may."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gputop.backends.base import PassTimes, PhaseTimes, TimedRun, Trace, run_in_turn
from gputop.plan.launch_shape import LaunchInfo
from gputop.plan.types import Plan, PlanRequest, Step
from gputop.results.records import Gate, Tuned
from gputop.session import sampling
from gputop.session.prepared_plans import PreparedLane
from gputop.session.sampling import LaneSamples, expected_sample_s, sample_lanes

if TYPE_CHECKING:
    from gputop.backends.base import Floats, Tokens

PLAN = Plan("cpu", PlanRequest("any"), ())
PASSED = Gate("PASS pass-only", 1e-7, 1e-5)


@dataclass
class Passes:
    """A prepared plan whose passes take as long as said, and which keeps what was asked of it."""

    pass_s: float
    plan: Plan = PLAN
    steps: tuple[Step, ...] = ()
    samples: list[int] = field(default_factory=list)
    splits: int = 0

    def run(self, tokens: Tokens, poison: float) -> Floats:
        return np.zeros((1, 1), np.float32)

    def run_each(self, runs: Sequence[tuple[Tokens, float]]) -> list[TimedRun]:
        return run_in_turn(self.run, runs)

    def trace(self, tokens: Tokens, poison: float) -> Trace:
        raise NotImplementedError

    def sample_pass(self, passes: int) -> PassTimes:
        self.samples.append(passes)
        return PassTimes(self.pass_s, self.pass_s)

    def sample_phases(self, passes: int) -> tuple[PhaseTimes, ...]:
        self.splits += passes
        return ()

    def facts(self) -> tuple[LaunchInfo, ...]:
        return ()

    def tuned(self) -> tuple[Tuned, ...]:
        return ()

    def close(self) -> None:
        """Nothing to give back."""


def silent(text: str) -> None:
    """Narrates to nobody."""


def sampled(*passes: Passes, budget_s: float) -> None:
    """One round over the lanes."""
    lanes = [LaneSamples(PreparedLane(PLAN, each, PASSED, each.pass_s)) for each in passes]
    sample_lanes(
        lanes, budget_s=budget_s, least_rounds=1, enough=lambda: "one round", stop=lambda: False, say=silent
    )


@pytest.mark.parametrize(
    ("pass_s", "budget_s", "passes"),
    [(1.0, 4.0, [3]), (1.0, 2.9, [2]), (0.2, 0.5, [2]), (0.12, 0.5, [3])],
)
def test_a_long_pass_is_not_warmed_up_and_a_window_too_short_for_a_sample_takes_fewer(
    pass_s: float, budget_s: float, passes: list[int]
) -> None:
    long = Passes(pass_s)
    sampled(long, budget_s=budget_s)
    assert long.samples == passes
    assert long.splits == 1


def test_all_lanes_of_a_round_count() -> None:
    lanes = (Passes(1.0), Passes(0.5))
    sampled(*lanes, budget_s=4.0)
    assert [lane.samples for lane in lanes] == [[2], [2]], "4.5 s are needed"


def test_a_short_pass_is_warmed_up_and_its_samples_stay_long_enough_for_the_timer() -> None:
    short = Passes(0.0005)
    sampled(short, budget_s=1e-6)
    warm_up, *kept = short.samples
    assert warm_up * short.pass_s >= 0.008
    assert kept == [warm_up]


@dataclass
class Clock:
    """Stands still but where a sample is taken."""

    now_s: float = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(sampling, "perf_counter", clock)
    return clock


def twice(clock: Clock, pass_s: float) -> Passes:
    """Passes that a sample runs twice, for two clocks, and once more before its phases: as a device does."""

    class Twice(Passes):
        def sample_pass(self, passes: int) -> PassTimes:
            clock.now_s += 2 * passes * pass_s
            return super().sample_pass(passes)

        def sample_phases(self, passes: int) -> tuple[PhaseTimes, ...]:
            clock.now_s += (1 + passes) * pass_s
            return super().sample_phases(passes)

    return Twice(pass_s)


def ticking(clock: Clock, pass_s: float, sample_s: float = 0.02) -> Passes:
    """Passes of which a sample takes as long as `sample_s` says."""

    class Ticking(Passes):
        def sample_pass(self, passes: int) -> PassTimes:
            clock.now_s += sample_s
            return super().sample_pass(passes)

    return Ticking(pass_s)


def test_warming_up_is_not_taken_from_the_budget(clock: Clock) -> None:
    lanes = [LaneSamples(PreparedLane(PLAN, ticking(clock, 0.002), PASSED, 0.001)) for _ in range(2)]
    sample_lanes(lanes, budget_s=0.1, least_rounds=1, enough=lambda: "", stop=lambda: False, say=silent)
    assert [len(lane.device_s) for lane in lanes] == [2, 2], "warming up took 0.08 s, a round takes 0.04 s"


def test_what_a_short_sample_takes_is_found_by_trying(clock: Clock) -> None:
    short, long = ticking(clock, 0.0001), ticking(clock, 1.0)
    # The gate's pass, poisoned, took ten times as long.
    tried_s = expected_sample_s(PreparedLane(PLAN, short, PASSED, 10 * short.pass_s))
    assert tried_s == pytest.approx(0.02)
    assert short.samples == [9, 81], "as many passes as a warm sample has"
    assert expected_sample_s(PreparedLane(PLAN, long, PASSED, long.pass_s)) == pytest.approx(4.0)
    assert not long.samples, "known without"


def test_a_sample_that_runs_each_pass_by_two_clocks_is_expected_to_take_as_long(clock: Clock) -> None:
    """Else copies for an A/A floor fill a window that was to compare two plans."""
    slow = twice(clock, 0.05)
    lane = PreparedLane(PLAN, slow, PASSED, slow.pass_s)
    before_s = clock.now_s
    assert expected_sample_s(lane) == pytest.approx(8 * slow.pass_s, rel=0.1)
    assert slow.samples == [2]
    assert expected_sample_s(lane) == lane.sample_s
    assert slow.samples == [2], "tried once"
    assert clock.now_s - before_s == pytest.approx(6 * slow.pass_s)


def test_a_round_that_can_not_end_in_time_is_not_begun(clock: Clock) -> None:
    slow = ticking(clock, 1.0)
    why = sample_lanes(
        [LaneSamples(PreparedLane(PLAN, slow, PASSED, 1.0))],
        budget_s=0.05, least_rounds=1, enough=lambda: "", stop=lambda: False, say=silent,
    )  # fmt: skip
    assert why == "time budget"
    assert len(slow.samples) == 2, "two rounds end after 0.04 s, a third after 0.06 s"


def test_phases_of_another_clock_than_a_windows_first_are_left_out() -> None:
    lane = LaneSamples(PreparedLane(PLAN, Passes(0.001), PASSED, 0.001))
    for timer, time_s in (("cupti", 1e-6), ("event", 3e-6), ("cupti", 1.1e-6)):
        lane.keep(PassTimes(0.001, 0.001), PhaseTimes({"w1": time_s}, {}, {}, timer, 0.0))
    assert lane.site_s("w1") == [1e-6, 1.1e-6]
    assert len(lane.device_s) == 3, "the whole pass was timed all the same"
