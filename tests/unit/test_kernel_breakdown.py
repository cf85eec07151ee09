"""A framework's pass in a window: its kernels by kind are rows, and a host that sets the pace is named."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from gputop.backends.base import PassTimes, PhaseTimes, Trace
from gputop.perf.paired_stats import paired
from gputop.plan.launch_shape import LaunchInfo
from gputop.plan.types import Dims, Plan, PlanRequest, Step
from gputop.planner.resolver import Resolver
from gputop.results.breakdown import from_rows
from gputop.results.records import DeviceFacts, Gate, Health, Tuned
from gputop.session import paired_comparison
from gputop.session.aa_noise import NoiseFloors
from gputop.session.kernel_breakdown import breakdown_of
from gputop.session.prepared_plans import PreparedLane
from gputop.session.rows import PlanModel, WindowContext, host_bound, lane_rows
from gputop.session.sampling import LaneSamples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gputop.backends.base import Floats, TimedRun, Tokens

TF32 = Plan("cuda", PlanRequest("torch-eager"), (), math="tf32", peer="torch-eager")
FP32 = TF32.change(math="fp32", request=PlanRequest("torch-eager", (("math", "fp32"),)))
PHYSICS = PlanModel(sites=(), plan_floors=(), question_floors={})
SPLIT = PhaseTimes(
    time_s={"gemm": 5e-4, "attention": 6e-5, "pointwise": 2e-4, "other": 1e-6},
    gap_s={"gemm": 4e-5, "attention": 1e-5, "pointwise": 5e-5, "other": 0.0},
    overlap_s={},
    timer="cupti",
    timer_floor_s=1e-7,
)
FACTS = (
    LaunchInfo("gemm", "torch-eager", 49, library_kernel="sm90_xmma_gemm"),
    LaunchInfo("attention", "torch-eager", 12, library_kernel="fmha"),
    LaunchInfo("pointwise", "torch-eager", 75, library_kernel="elementwise_kernel"),
    LaunchInfo("other", "torch-eager", 1, library_kernel="mystery"),
)
OCCASION = WindowContext(1, "t", DeviceFacts("cuda", "A GPU"), Health(), "mini", "in-situ", "v")
DIMS = Dims(2, 256, 4, 1024, 128, 256)


@dataclass
class Framework:
    """A prepared framework's pass, of which the split is as given."""

    plan: Plan
    steps: tuple[Step, ...] = ()
    known: tuple[LaunchInfo, ...] = field(default=FACTS)

    def run(self, tokens: Tokens, poison: float) -> Floats:
        raise NotImplementedError

    def run_each(self, runs: Sequence[tuple[Tokens, float]]) -> list[TimedRun]:
        raise NotImplementedError

    def trace(self, tokens: Tokens, poison: float) -> Trace:
        raise NotImplementedError

    def sample_pass(self, passes: int) -> PassTimes:
        raise NotImplementedError

    def sample_phases(self, passes: int) -> tuple[PhaseTimes, ...]:
        raise NotImplementedError

    def facts(self) -> tuple[LaunchInfo, ...]:
        return self.known

    def tuned(self) -> tuple[Tuned, ...]:
        return ()

    def close(self) -> None:
        """Nothing to give back."""


def samples(
    plan: Plan, device_s: float, wall_s: float, submit_s: float, split: PhaseTimes | None = SPLIT
) -> LaneSamples:
    framework = Framework(plan, known=FACTS if split else ())
    lane = LaneSamples(PreparedLane(plan, framework, Gate("PASS pass-only", 1e-4, 4e-3), wall_s))
    for index in range(12):
        # A thousandth of unrest, as intervals need some.
        unrest = 1 + 1e-3 * (index % 2)
        lane.keep(PassTimes(wall_s * unrest, device_s * unrest, submit_s), split)
    return lane


def test_kinds_of_kernels_are_rows_that_reconcile_with_the_pass() -> None:
    lane = samples(TF32, 8.7e-4, 2.5e-3, 2.4e-3)
    rows = {row.phase: row for row in lane_rows(OCCASION, lane, DIMS, PHYSICS, None)}
    assert list(rows)[:4] == ["gemm", "attention", "pointwise", "other"]
    assert rows["gemm"].launches == 49
    assert rows["gemm"].kernel == "torch-eager"
    assert rows["other"].library_kernel == "mystery"
    assert rows["other"].library_kernel_demangled == "mystery"
    assert rows["sum"].time_s == pytest.approx(7.61e-4)
    assert rows["gaps"].time_s == pytest.approx(1e-4)
    assert rows["device"].launches == 137
    assert rows["residual"].time_s == pytest.approx(8.7e-4 - 8.61e-4, rel=0.1)


def test_what_ran_beside_the_launch_before_is_no_part_of_the_residual() -> None:
    beside = replace(SPLIT, overlap_s={"gemm": 3e-4, "attention": 1e-4})
    lane = samples(TF32, 8.7e-4, 2.5e-3, 2.4e-3, split=beside)
    rows = {row.phase: row for row in lane_rows(OCCASION, lane, DIMS, PHYSICS, None)}
    assert rows["gemm"].overlap_s == pytest.approx(3e-4)
    assert rows["residual"].time_s == pytest.approx(8.7e-4 - 8.61e-4, rel=0.1)


def test_a_ladder_divides_a_pass_as_its_phase_table_does() -> None:
    lane = samples(TF32, 8.7e-4, 2.5e-3, 2.4e-3)
    assert breakdown_of(lane, PHYSICS) == from_rows(lane_rows(OCCASION, lane, DIMS, PHYSICS, None))
    assert breakdown_of(lane, PHYSICS).others == ("mystery",)


def test_without_records_nothing_is_known_and_nothing_is_zero() -> None:
    lane = samples(TF32, 8.7e-4, 2.5e-3, 2.4e-3, split=None)
    rows = lane_rows(OCCASION, lane, DIMS, PHYSICS, None)
    assert [row.phase for row in rows] == ["sum", "gaps", "device", "wall", "residual"]
    assert rows[0].time_s is None
    found = breakdown_of(lane, PHYSICS)
    assert found == from_rows(rows)
    assert (found.launches, found.gemm_s, found.gap_s) == (None, None, None)


@pytest.mark.parametrize(
    ("submit_s", "wall_s", "bound"),
    [(9e-4, 1e-3, True), (2e-4, 2.5e-3, True), (2e-4, 1.1e-3, False)],
    ids=["slow to enqueue", "far longer as used", "neither"],
)
def test_a_pass_is_host_bound_by_what_it_takes_to_enqueue_or_as_used(
    submit_s: float, wall_s: float, bound: bool
) -> None:
    assert host_bound(samples(TF32, 8.7e-4, wall_s, submit_s)) is bound


def test_equal_times_in_two_maths_are_the_hosts() -> None:
    a, b = samples(TF32, 8.7e-4, 2.5e-3, 2.4e-3), samples(FP32, 2.3e-3, 2.5e-3, 2.4e-3)
    floors = NoiseFloors(0.003)
    copies = [1 + 1e-3 * (index % 2) for index in range(12)]
    for name in ("wall", "device"):
        floors.add(TF32.word, name, paired(copies, copies))
    pair = paired_comparison.compare(a, b, floors, 1e-6)
    wall, device = pair.get("wall"), pair.get("device")
    assert wall is not None
    assert device is not None
    assert wall.status == "host-bound: as long in tf32 as in fp32"
    assert "host-bound" not in device.status
    slower = paired_comparison.compare(a, samples(FP32, 2.3e-3, 4e-3, 2.4e-3), floors, 1e-6).get("wall")
    assert slower is not None
    assert "host-bound" not in slower.status
    other = FP32.change(request=PlanRequest("torch-compile"), peer="torch-compile")
    apart = paired_comparison.compare(a, samples(other, 2.3e-3, 2.5e-3, 2e-4), floors, 1e-6).get("wall")
    assert apart is not None
    assert "host-bound" not in apart.status


def test_a_replayed_row_keeps_its_kind() -> None:
    from gputop.results.export import phase_csv, read_phase_csv

    lane = samples(TF32, 8.7e-4, 2.5e-3, 2.4e-3)
    rows = lane_rows(OCCASION, lane, DIMS, PHYSICS, None)
    assert read_phase_csv(phase_csv(rows)) == tuple(replace(row) for row in rows)


@pytest.mark.parametrize("timer", [1e-7, 1e-4])
def test_a_short_phase_is_held_to_the_clock_that_timed_it(timer: float) -> None:
    lane = samples(TF32, 8.7e-4, 2.5e-3, 2.4e-3, split=replace(SPLIT, timer_floor_s=timer))
    rows = {row.phase: row for row in lane_rows(OCCASION, lane, DIMS, PHYSICS, None)}
    told = {name for name in SPLIT.time_s if "unresolved" in (rows[name].status or "")}
    assert told == {name for name, time_s in SPLIT.time_s.items() if time_s < 3 * timer}
    pair = paired_comparison.compare(*ours_twice(timer), NoiseFloors(0.003), timer_floor_s=1.0)
    short = {delta.phase for delta in (*pair.deltas, *pair.sites) if "steps of the timer" in delta.status}
    assert short >= {"device", "wall"}, "they have a clock of their own"
    assert ("attention" in short) == (timer > 1e-5)


def test_a_batch_is_held_to_the_clock_by_the_time_of_its_pass() -> None:
    """Not by a sequence's share of it."""
    ours, theirs = ours_twice(2e-6)
    theirs.lane = replace(theirs.lane, plan=theirs.lane.plan.change(batch=32))
    attention = next(
        delta
        for delta in paired_comparison.compare(ours, theirs, NoiseFloors(0.003), timer_floor_s=1e-7).deltas
        if delta.phase == "attention"
    )
    assert attention.b_s is not None
    assert attention.b_s < 3 * 2e-6
    assert "steps of the timer" not in attention.status


def ours_twice(timer_floor_s: float) -> tuple[LaneSamples, LaneSamples]:
    catalog = Resolver.load()
    plan = catalog.resolve(PlanRequest("graph"), DIMS, "cuda")
    steps = catalog.steps(plan, DIMS)
    sites = [step.site for step in steps]
    split = PhaseTimes(dict.fromkeys(sites, 1e-5), dict.fromkeys(sites, 1e-6), {}, "cupti", timer_floor_s)
    first, second = (samples(plan, 3e-4, 4e-4, 1e-4, split) for _ in range(2))
    for lane in (first, second):
        lane.lane = replace(lane.lane, prepared=Framework(plan, steps))
    return first, second


def test_a_phase_that_a_framework_does_not_have_is_not_compared_as_nothing() -> None:
    ours, _ = ours_twice(1e-7)
    theirs = samples(TF32, 8.7e-4, 2.5e-3, 2.4e-3)
    pair = paired_comparison.compare(ours, theirs, NoiseFloors(0.003), 1e-6)
    assert [delta.phase for delta in pair.deltas] == ["attention", "device", "wall"], "a phase and a kind"
    assert all(delta.a_s and delta.b_s for delta in pair.deltas)
