"""Several rungs in one window."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

from gputop.backends.base import Say
from gputop.model.workloads import label
from gputop.perf import paired_stats, verdicts
from gputop.plan.types import Plan
from gputop.results.ladder import Ladder
from gputop.results.records import Gate
from gputop.session import aa_runs, interference, kernel_breakdown, ladder_entries
from gputop.session.context import SessionContext
from gputop.session.cost_model import Machine, modelled_s
from gputop.session.ladder_entries import LadderMeasurement
from gputop.session.peer_forecast import OwnPlanTiming, peer_forecast
from gputop.session.prepared_plans import PreparedLane
from gputop.session.rows import PlanModel, host_bound, timed_sites
from gputop.session.sampling import GATE_FAILED, LaneSamples, Stop, sample_lanes, still_right
from gputop.session.timed_site import pass_binding, shape_tax
from gputop.util.errors import DeviceLost, GputopError, UsageError
from gputop.validation.gate import PASS_TOLERANCES

LADDER_S = 120.0
"""Longest default budget: at gpt2-small the first rungs of a CPU take seconds a pass."""
RUNG_S = 4.0
"""Default budget of each rung up to that."""
PHASE_ROUNDS = 2
"""Rounds that split their passes into phases: a ladder shows no phases, only what binds."""


def measure_ladder(
    bench: SessionContext,
    plans: Sequence[Plan],
    seconds: float | None,
    stop: Stop,
    say: Say,
    *,
    check_phases: bool = False,
) -> Ladder:
    """Every plan gated, with `check_phases` phase by phase too, then all that pass sampled alternately.

    One that can't be prepared is an entry with the reason, unless that holds of them all.
    """
    try:
        return _measure(bench, plans, seconds, stop, say, check_phases=check_phases)
    finally:
        # Copies of the next window must lie elsewhere to tell what placement is worth.
        bench.lanes.drop_copies()


def _measure(
    bench: SessionContext,
    plans: Sequence[Plan],
    seconds: float | None,
    stop: Stop,
    say: Say,
    *,
    check_phases: bool,
) -> Ladder:
    time_utc = datetime.now(UTC).isoformat(timespec="seconds")
    bench.windows += 1
    bench.noise.begin_window()
    lanes, refused = _prepare(bench, plans, check_phases, say)
    sampled = {word: LaneSamples(lane) for word, lane in lanes.items() if lane.gate.ok}
    watch = interference.Watch(bench.backend)
    notes = _sample(bench, tuple(sampled.values()), seconds, stop, say)
    sampled = {word: lane for word, lane in sampled.items() if lane.lane.gate.ok}
    health, disturbance = watch.end()
    machine = bench.machine(say, health)
    readings = {word: bench.physics(lane.lane.plan, lane, machine) for word, lane in sampled.items()}
    ours = [
        kernel_breakdown.ours(lane, readings[word])
        for word, lane in sampled.items()
        if not lane.lane.plan.peer
    ]
    climbs = [
        _climb(bench, lanes[plan.word], sampled.get(plan.word), readings.get(plan.word), ours, machine)
        if plan.word in lanes
        else LadderMeasurement(plan, bench.catalog.rung(plan.rung), refused[plan.word], None)
        for plan in {plan.word: plan for plan in plans}.values()
    ]
    return Ladder(
        time_utc=time_utc,
        device=bench.facts,
        workload=label(bench.workload),
        entries=ladder_entries.entries(climbs, bench.noise, bench.backend.timer_floor_s),
        notes=(
            *bench.notes(lane.plan for lane in lanes.values()),
            *notes,
            *disturbance,
        ),
        health=health,
    )


def _prepare(
    bench: SessionContext, plans: Sequence[Plan], check_phases: bool, say: Say
) -> tuple[dict[str, PreparedLane], dict[str, Gate]]:
    """The lanes that could be prepared, and for each other plan a gate that says why it was not checked."""
    lanes: dict[str, PreparedLane] = {}
    errors: dict[str, GputopError] = {}
    for plan in plans:
        # Two rungs may be one pass on this device: each has a lane, as each has an entry.
        named_before = any(lane.plan == plan for lane in lanes.values())
        try:
            copy = plan.word if named_before else ""
            lane = bench.lanes.get(plan, say, copy=copy, held=lanes.values())
            if check_phases or not lane.gate.ok:
                bench.lanes.check_phases(lane, say)
            lanes[plan.word] = lane
        except DeviceLost:
            raise
        except GputopError as error:
            # Said anew: the one caught holds, by its traceback, the memory of what was half prepared.
            errors[plan.word] = type(error)(str(error))
        except Exception as error:
            # A fault of this rung's kernels or library; what is known of it stands in the log.
            traceback.print_exc()
            errors[plan.word] = UsageError(f"{plan.word} can't be prepared: {type(error).__name__}: {error}")
    if errors and not lanes:
        raise next(iter(errors.values()))
    return lanes, {plan.word: _unchecked(plan, errors[plan.word]) for plan in plans if plan.word in errors}


def _unchecked(plan: Plan, error: GputopError) -> Gate:
    return Gate("unchecked", pass_error=None, tolerance=PASS_TOLERANCES[plan.math], where=str(error))


def _sample(
    bench: SessionContext, lanes: Sequence[LaneSamples], seconds: float | None, stop: Stop, say: Say
) -> tuple[str, ...]:
    """Sample the plans; return what ended the window, and whose copies gave the A/A floors."""
    if not lanes:
        return ("ended by: no rung passes its gate",)
    copies = aa_runs.copies_for_ladder(bench, lanes, say)
    stopped_because = sample_lanes(
        (*lanes, *(copy for _, copy in copies)),
        budget_s=min(LADDER_S, RUNG_S * len(lanes)) if seconds is None else seconds,
        least_rounds=1,
        enough=lambda: _enough(bench, lanes),
        stop=stop,
        say=say,
        phase_rounds=PHASE_ROUNDS,
    )
    still_right(bench.lanes, lanes, say)
    for original, copy in copies:
        if original.lane.gate.ok and copy.lane.gate.ok:
            aa_runs.keep(bench.noise, original, copy)
    ended = f"ended by: {stopped_because}"
    return (ended, aa_runs.owner_of(bench.noise, copies)) if len(lanes) > 1 else (ended,)


def _enough(bench: SessionContext, lanes: Sequence[LaneSamples]) -> str:
    """Return whether each rung against the one that it changes is known well enough, or the only one by
    itself.
    """
    lanes = [lane for lane in lanes if lane.lane.gate.ok]
    if not lanes:
        return GATE_FAILED
    if len(lanes) == 1:
        return "one plan: spread narrow enough" if paired_stats.enough_for_one(lanes[0].device_s) else ""
    narrow = all(
        verdicts.narrow_enough(
            paired_stats.paired(before.device_s, lane.device_s),
            bench.noise.floor(before.lane.plan.word, "device").apart,
        )
        for before, lane in reported_pairs(bench, lanes)
    )
    return "intervals narrow enough" if narrow else ""


def reported_pairs(
    bench: SessionContext, lanes: Sequence[LaneSamples]
) -> Iterator[tuple[LaneSamples, LaneSamples]]:
    """Return each rung with the one that it is compared with: what it changes, else the one above it."""
    earlier = {lanes[0].lane.plan.word: lanes[0]}
    for above, lane in pairwise(lanes):
        plan = lane.lane.plan
        yield earlier.get(bench.catalog.rung(plan.rung).before or "", above), lane
        earlier[plan.word] = lane


def _climb(
    bench: SessionContext,
    lane: PreparedLane,
    samples: LaneSamples | None,
    physics: PlanModel | None,
    ours: Sequence[OwnPlanTiming],
    machine: Machine,
) -> LadderMeasurement:
    """`physics`: of `samples`. `ours`: our own plans of this window, from which a framework is forecast."""
    catalog, plan, dims = bench.catalog, lane.plan, bench.dims(lane.plan)
    climb = LadderMeasurement(
        plan=plan,
        rung=catalog.rung(plan.rung),
        gate=lane.gate,
        samples=samples,
        files=tuple(catalog.kernel(choice.kernel).source for choice in plan.kernels),
        tokens=dims.tokens,
        flops=catalog.work(catalog.sites(dims, plan.prune, plan.fold), dims).flops,
    )
    if plan.peer:
        features = catalog.rung(plan.rung).features
        climb = replace(climb, forecast=peer_forecast(catalog, plan, dims, features, ours, machine))
    if samples is None or physics is None:
        return climb
    timed = timed_sites(samples, physics)
    binding = pass_binding(timed, paired_stats.summarize(samples.device_s).median)
    return replace(
        climb,
        binds=binding.binds,
        binds_share=binding.share,
        shape_tax=shape_tax(timed),
        model_s=modelled_s(physics.sites),
        breakdown=kernel_breakdown.breakdown_of(samples, physics),
        host_bound=host_bound(samples),
        tuned=samples.prepared.tuned(),
    )
