"""One window: a plan alone, or two plans alternately with copies of the first beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter
from typing import Literal

from gputop.backends.base import Say
from gputop.model.workloads import label
from gputop.perf import paired_stats, verdicts
from gputop.plan.types import Plan
from gputop.results.comparison_sentence import sentence
from gputop.results.records import Ceilings, Comparison, PlanResult, Row, Window
from gputop.session import aa_runs, interference, paired_comparison
from gputop.session.context import SessionContext
from gputop.session.cost_model import Machine
from gputop.session.prepared_plans import PreparedLane
from gputop.session.progress import ratio_so_far
from gputop.session.rows import NO_CEILINGS, WindowContext, host_bound, lane_rows
from gputop.session.sampling import (
    GATE_FAILED,
    SAMPLE_S,
    SHORT_SAMPLE_S,
    LaneSamples,
    Stop,
    sample_lanes,
    still_right,
)

Role = Literal["current", "pinned"]

ALONE_S = 2.0
"""Default budget of a window on one plan."""
PAIRED_S = 4.0
"""Default budget of a comparison, which goes on beyond it to `stats.MIN_ROUNDS` unless told how long."""


@dataclass(frozen=True, slots=True)
class WindowRequest:
    """What a window is asked to measure."""

    current: Plan
    pinned: Plan | None
    """The same plan again asks for its noise: an independent copy is then the current one."""
    seconds: float | None
    check_phases: bool
    first_look: bool = False
    """Leave ceilings that are still to be measured, and the advice, to a later window."""
    whole: bool = False
    """Time whole passes alone, in short samples, and of a first look's facts: for many windows in turn."""

    @property
    def asks_ceilings(self) -> bool:
        """Return whether its rows are to hold floors, and its words advice."""
        return not (self.first_look or self.whole)


def measure_window(bench: SessionContext, order: WindowRequest, stop: Stop, say: Say) -> Window:
    """Gate, warm up, sample, compare, read. UsageError where a plan does not fit into memory."""
    try:
        return _measure(bench, order, stop, say)
    finally:
        # Copies of the next window must lie elsewhere to tell what placement is worth.
        bench.lanes.drop_copies()


def _measure(bench: SessionContext, order: WindowRequest, stop: Stop, say: Say) -> Window:
    bench.windows += 1
    bench.noise.begin_window()
    lanes = _prepare(bench, order, say)
    sample_s = SHORT_SAMPLE_S if order.whole else SAMPLE_S
    sampled = {role: LaneSamples(lane, sample_s) for role, lane in lanes.items() if lane.gate.ok}
    watch = interference.Watch(bench.backend)
    time_utc, start = datetime.now(UTC).isoformat(timespec="seconds"), perf_counter()
    stopped_because, comparison, notes = _sample(bench, sampled, order, stop, say)
    seconds = perf_counter() - start
    sampled = {role: lane for role, lane in sampled.items() if lane.lane.gate.ok}
    health, disturbance = watch.end()
    of_plans = (*_one_pass(order), *bench.notes(lane.plan for lane in lanes.values()))
    notes = (*of_plans, *notes, *disturbance)
    occasion = WindowContext(
        number=bench.windows,
        time_utc=time_utc,
        device=bench.facts,
        health=health,
        workload=label(bench.workload),
        cache_state=bench.backend.cache_state,
        versions=bench.versions,
    )
    rows: dict[Role, tuple[Row, ...]] = {}
    advice = ""
    if sampled:
        machine = bench.machine(say, health, measure=order.asks_ceilings)
        rows, advice = _read(bench, sampled, comparison, occasion, machine, advise=order.asks_ceilings)
        notes = (*notes, *_untrusted(machine.ceilings))
    return Window(
        number=bench.windows,
        time_utc=time_utc,
        seconds=seconds,
        device=bench.facts,
        health=health,
        workload=label(bench.workload),
        lanes=tuple(_lane(role, lane, sampled.get(role), rows.get(role, ())) for role, lane in lanes.items()),
        comparison=comparison,
        stopped_because=stopped_because,
        advice=advice,
        verdict=_verdict(lanes, comparison),
        notes=notes,
    )


def _prepare(bench: SessionContext, order: WindowRequest, say: Say) -> dict[Role, PreparedLane]:
    """The lanes in place and gated, current first."""
    current, pinned = order.current, order.pinned
    lanes: dict[Role, PreparedLane] = {"current": bench.lanes.get(current, say)}
    if pinned is not None:
        lanes["pinned"] = bench.lanes.get(pinned, say, held=lanes.values())
        if pinned == current:
            lanes["current"] = bench.lanes.get(current, say, copy="current", held=lanes.values())
    for lane in lanes.values():
        if order.check_phases or not lane.gate.ok:
            bench.lanes.check_phases(lane, say)
    return lanes


def _one_pass(order: WindowRequest) -> tuple[str, ...]:
    """Return a sentence if two plans are one pass under two names; empty for one plan and itself."""
    pinned, current = order.pinned, order.current
    if pinned is None or pinned != current or pinned.word == current.word:
        return ()
    return (f"{pinned.word} and {current.word} are the same pass: what they differ by is noise",)


def _sample(
    bench: SessionContext, sampled: Mapping[Role, LaneSamples], order: WindowRequest, stop: Stop, say: Say
) -> tuple[str, Comparison | None, tuple[str, ...]]:
    """Return why the window ended, the comparison of two plans whose gates hold to the end, and notes."""
    seconds, phase_rounds = order.seconds, 0 if order.whole else None
    if "pinned" not in sampled or "current" not in sampled:
        ended = _sample_alone(sampled, ALONE_S if seconds is None else seconds, phase_rounds, stop, say)
        still_right(bench.lanes, sampled.values(), say)
        return ended, None, ()
    pinned, current = sampled["pinned"], sampled["current"]
    copies, notes = aa_runs.copies_for_pair(bench, pinned, current, seconds, say)
    floor = bench.noise.floor(pinned.lane.plan.word, "device")

    def enough() -> str:
        if not (pinned.lane.gate.ok and current.lane.gate.ok):
            return GATE_FAILED
        narrow = verdicts.narrow_enough(
            paired_stats.paired(pinned.device_s, current.device_s), floor.apart
        ) and all(
            paired_stats.paired(pinned.device_s, copy.device_s).half_width <= bench.noise.copies_known
            for copy in copies
        )
        return "interval narrow enough" if narrow else ""

    stopped_because = sample_lanes(
        (pinned, current, *copies),
        budget_s=PAIRED_S if seconds is None else seconds,
        least_rounds=_least_rounds(order),
        enough=enough,
        stop=stop,
        say=say,
        phase_rounds=phase_rounds,
        so_far=lambda: ratio_so_far(paired_stats.paired(pinned.device_s, current.device_s)),
    )
    if not still_right(bench.lanes, sampled.values(), say):
        return stopped_because, None, notes
    for copy in copies:
        if copy.lane.gate.ok:
            aa_runs.keep(bench.noise, pinned, copy)
    notes += aa_runs.unknown_floor(bench.noise, pinned.lane.plan.word)
    comparison = paired_comparison.compare(pinned, current, bench.noise, bench.backend.timer_floor_s)
    return stopped_because, comparison, notes


def _least_rounds(order: WindowRequest) -> int:
    """Return the rounds that a comparison gets whatever they take; whole passes have to allow SAME."""
    if order.whole:
        return verdicts.MIN_ROUNDS_TO_STOP
    return paired_stats.MIN_ROUNDS if order.seconds is None else 1


def _sample_alone(
    sampled: Mapping[Role, LaneSamples], budget_s: float, phase_rounds: int | None, stop: Stop, say: Say
) -> str:
    """The lane whose gate passed."""
    if not sampled:
        return GATE_FAILED
    (lane,) = sampled.values()

    def enough() -> str:
        return "one plan: spread narrow enough" if paired_stats.enough_for_one(lane.device_s) else ""

    return sample_lanes(
        (lane,),
        budget_s=budget_s,
        least_rounds=1,
        enough=enough,
        stop=stop,
        say=say,
        phase_rounds=phase_rounds,
    )


def _read(
    bench: SessionContext,
    sampled: Mapping[Role, LaneSamples],
    comparison: Comparison | None,
    occasion: WindowContext,
    machine: Machine,
    advise: bool,
) -> tuple[dict[Role, tuple[Row, ...]], str]:
    """The rows of each lane, and the advice on the current one."""
    rows: dict[Role, tuple[Row, ...]] = {}
    advice = ""
    for role, lane in sampled.items():
        plan = lane.lane.plan
        physics = bench.physics(plan, lane, machine)
        ends_here = comparison if role == "current" else None
        rows[role] = lane_rows(occasion, lane, bench.dims(plan), physics, ends_here)
        if role == "current" and advise:
            advice = bench.advice(plan, rows[role], physics, machine)
    return rows, advice


def _untrusted(ceilings: Ceilings) -> tuple[str, ...]:
    """Return each fault of the ceilings once. `ok: ` and a share is a path's own limit, not a fault."""
    if not ceilings.items:
        return (f"{NO_CEILINGS}: floors and what binds come with the next window",)
    wrong = (item.status for item in ceilings.items if not item.status.startswith("ok"))
    return (
        *(
            f"ceilings: {reason}; `gputop calibrate --force` measures them again"
            for reason in dict.fromkeys(wrong)
        ),
        *(f"no ceiling {missing}" for missing in ceilings.missing),
    )


def _lane(role: Role, lane: PreparedLane, samples: LaneSamples | None, rows: tuple[Row, ...]) -> PlanResult:
    plan = lane.plan
    if samples is None:
        return PlanResult(plan.word, plan.rung, role, lane.gate, None, None, None, None, ())
    return PlanResult(
        plan=plan.word,
        rung=plan.rung,
        role=role,
        gate=lane.gate,
        device_s=paired_stats.summarize(samples.device_s).median,
        wall_s=paired_stats.summarize(samples.wall_s).median,
        submit_s=paired_stats.summarize(samples.submit_s).median,
        host_bound=host_bound(samples),
        rows=rows,
        tuned=samples.prepared.tuned(),
    )


def _verdict(lanes: Mapping[Role, PreparedLane], comparison: Comparison | None) -> str:
    failed = [lane for lane in lanes.values() if not lane.gate.ok]
    if failed:
        return "; ".join(
            f"no time for {lane.plan.word}, it fails its gate: {lane.gate.where}" for lane in failed
        )
    return sentence(comparison) if comparison else ""
