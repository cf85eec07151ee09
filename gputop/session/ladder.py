"""Several rungs in one window."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from gputop import stats
from gputop.backends.base import Say
from gputop.results import Ladder
from gputop.session import climbing
from gputop.session.bench import Bench
from gputop.session.climbing import Climb
from gputop.session.lanes import PreparedLane
from gputop.session.model import Machine
from gputop.session.rows import pace, site_binds
from gputop.session.sampling import LaneSamples, Stop, sample_lanes
from gputop.spec import Plan

LADDER_S = 120.0
"""Default budget: at gpt2-small the first rungs of a CPU take seconds a pass."""
PHASE_ROUNDS = 2
"""Rounds that split their passes into phases: a ladder shows no phases, only what binds."""


def measure_ladder(
    bench: Bench, plans: Sequence[Plan], seconds: float | None, stop: Stop, say: Say
) -> Ladder:
    """Every plan gated, then all that pass sampled alternately. BadInput where they do not fit together."""
    time_utc = datetime.now(UTC).isoformat(timespec="seconds")
    bench.windows += 1
    lanes: dict[str, PreparedLane] = {}
    for plan in plans:
        lanes[plan.word] = bench.lanes.get(plan, say, held=lanes.values())
    sampled = {word: LaneSamples(lane) for word, lane in lanes.items() if lane.gate.ok}
    stopped_because = "no rung passes its gate"
    if sampled:
        stopped_because = sample_lanes(
            tuple(sampled.values()),
            budget_s=LADDER_S if seconds is None else seconds,
            least_rounds=1,
            enough=lambda: _enough(bench, tuple(sampled.values())),
            stop=stop,
            say=say,
            phase_rounds=PHASE_ROUNDS,
        )
    machine = bench.machine(say, bench.backend.health())
    climbs = [_climb(bench, lane, sampled.get(word), machine) for word, lane in lanes.items()]
    return Ladder(
        time_utc=time_utc,
        device=bench.facts,
        workload=bench.workload.name,
        entries=climbing.entries(climbs, bench.noise),
        notes=(f"ended by: {stopped_because}",),
    )


def _enough(bench: Bench, lanes: Sequence[LaneSamples]) -> str:
    """Whether each rung against the one above it is known well enough."""
    floors = (bench.noise.floor(lane.lane.plan.word, "device") for lane in lanes)
    pairs = zip(lanes, lanes[1:], floors, strict=False)
    narrow = all(stats.narrow_enough(stats.paired(a.device_s, b.device_s), floor) for a, b, floor in pairs)
    return "intervals narrow enough" if narrow and len(lanes) > 1 else ""


def _climb(bench: Bench, lane: PreparedLane, samples: LaneSamples | None, machine: Machine) -> Climb:
    binds = None
    if samples is not None:
        binds = pace(site_binds(samples, bench.physics(lane.plan, samples, machine)))
    return Climb(lane.plan, bench.catalog.rung(lane.plan.rung), lane.gate, samples, binds)
