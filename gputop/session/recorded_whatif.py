"""What a change of a recorded plan would do: by the recording's ceilings and rows, and the model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gputop.perf import gpu_specs
from gputop.plan.plan_string import checked_once
from gputop.plan.types import PlanRequest
from gputop.planner.resolver import Resolver
from gputop.results.kindred_ceilings import completed
from gputop.results.whatif import WhatIf, WhatIfAsked
from gputop.session.cost_model import Machine
from gputop.session.whatif import Setting, datasheet_machine, what_if
from gputop.util.errors import UsageError

if TYPE_CHECKING:
    from gputop.session.replay import Replay


def recorded_what_if(replay: Replay, asked: WhatIfAsked, resolver: Resolver) -> WhatIf:
    """Return each site of a recorded plan beside the same of the changed one.

    Raise UsageError for a recording of a CPU, for a plan that was not recorded, and for a change that can't
    be.
    """
    window = replay.first_window(asked.plan)
    facts = replay.facts
    if not (facts.arch or "").startswith("sm_"):
        raise UsageError("This recording is of a CPU: it has no occupancy, and nothing to turn.")
    here = Machine(facts, completed(replay.calibrate()), window.health.sm_clock_hz)
    plan, dims = replay.view(asked.plan).plan, replay.workload.dims
    before = Setting.recorded(resolver, plan, dims, here)
    lane = next(lane for lane in window.lanes if lane.role == "current")
    model = gpu_specs.model(asked.device_model) if asked.device_model else None
    changed = _changed(plan.request, asked)
    if not asked.changes_pass:
        return what_if(before, before, lane)
    sizes = replace(dims, seq=asked.seq or dims.seq)
    after = Setting.of(resolver, changed, sizes, datasheet_machine(model) if model else here)
    return what_if(before, after, lane, model.source if model else "")


def _changed(request: PlanRequest, asked: WhatIfAsked) -> PlanRequest:
    """Return a recorded plan's request with what is asked in the place of its own."""
    checked_once(replace(request, sets=asked.sets, uses=asked.uses))
    sets, uses = dict(asked.sets), dict(asked.uses)
    return replace(
        request,
        sets=(*(pair for pair in request.sets if pair[0] not in sets), *asked.sets),
        uses=(*(pair for pair in request.uses if pair[0] not in uses), *asked.uses),
    )
