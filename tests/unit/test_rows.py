"""What a phase's row says of its kernel, beside its times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gputop.backends.base import PassTimes, PhaseTimes
from gputop.catalog import Catalog
from gputop.results import Ceilings, DeviceFacts, Gate, Health, Row
from gputop.session.lanes import PreparedLane
from gputop.session.model import Machine, site_models
from gputop.session.rows import Occasion, Physics, lane_rows
from gputop.session.sampling import LaneSamples
from gputop.spec import LaunchFacts, PlanRequest
from gputop.workloads import WORKLOADS

CATALOG = Catalog.load()
DIMS = WORKLOADS[0].dims
DEVICE = DeviceFacts("cuda", "A GPU", arch="sm_90", sm_count=132, l2_bytes=50 << 20)
MACHINE = Machine(DEVICE, Ceilings("A GPU", None, "t", ()), None)
OCCASION = Occasion(1, "t", DEVICE, Health(), "gpt2-small", "in-situ", "v")


@dataclass
class Known:
    """A prepared plan of which only the launch facts are asked."""

    launched: tuple[LaunchFacts, ...]

    def facts(self) -> tuple[LaunchFacts, ...]:
        return self.launched


def rows(rung: str, *facts: LaunchFacts) -> Mapping[str, Row]:
    """Of a plan at gpt2-small whose every site took a microsecond."""
    plan = CATALOG.resolve(PlanRequest(rung), DIMS, "cuda")
    dims = replace(DIMS, batch=plan.batch)
    models = site_models(CATALOG, plan, dims, CATALOG.steps(plan, dims), MACHINE, {})
    prepared: Any = Known(facts)
    lane = LaneSamples(PreparedLane(plan, prepared, Gate("PASS", 1e-6, 1e-5), 1e-3))
    times = {model.name: 1e-6 for model in models}
    lane.keep(PassTimes(2e-3, 1e-3, 1e-4), PhaseTimes(times, {}, {}, "event", 1e-8))
    physics = Physics(models, (), {phase: model.floor for model in models for phase in model.phases})
    return {row.phase: row for row in lane_rows(OCCASION, lane, dims, physics, None)}


def test_spills_of_the_loaded_code_are_in_the_row_and_unknown_ones_are_not() -> None:
    found = rows(
        "naive", LaunchFacts("w1", "gemm_naive", 12, spill_bytes=24), LaunchFacts("w2", "gemm_naive", 12)
    )
    assert (found["w1"].spill_bytes, found["w2"].spill_bytes) == (24, None)
    assert found["wo"].spill_bytes is None
