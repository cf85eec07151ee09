"""What a phase's row says of its kernel, beside its times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from gputop.backends.base import PassTimes, PhaseTimes
from gputop.catalog import Catalog
from gputop.results import TOTAL_ROWS, Ceilings, DeviceFacts, Gate, Health, Row
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


def test_bytes_moved_are_held_against_those_that_any_kernel_moves() -> None:
    """A naive product's tile of 8 rows and 32 columns reads its panels again for each other tile."""
    found = rows("naive")["w1"]
    d, ff, tokens = DIMS.d_model, DIMS.d_ff, DIMS.seq
    once = 4 * (d * ff + ff + tokens * d + tokens * ff)
    panels = 4 * (8 + 32) * d * (tokens // 8) * (ff // 32)
    assert found.l2_bytes is not None
    assert found.moved_over_compulsory is not None
    assert found.l2_bytes >= DIMS.layers * panels
    assert found.moved_over_compulsory == pytest.approx(found.l2_bytes / (DIMS.layers * once))
    assert found.moved_over_compulsory > 15


def test_the_ladder_moves_ever_less_of_what_is_not_compulsory() -> None:
    moved = [rows(rung)["w1"].moved_over_compulsory for rung in ("naive", "tiled", "register-tiled", "wmma")]
    assert None not in moved
    assert moved == sorted(moved, key=lambda value: -(value or 0.0))


def test_of_a_librarys_kernel_and_of_totals_nothing_is_said() -> None:
    found = rows("oracle-fp32")
    assert found["w1"].moved_over_compulsory is None
    assert {found[name].moved_over_compulsory for name in TOTAL_ROWS} == {None}


@pytest.mark.parametrize("rung", ["naive", "wmma", "dispatch"])
def test_no_kernel_of_ours_asks_for_less_than_what_it_reads_and_writes(rung: str) -> None:
    """But for what a fold has taken off: gain and shift, which are half of what one row needs."""
    for row in rows(rung).values():
        if row.moved_over_compulsory is not None:
            folded = rung == "dispatch" and row.phase in ("ln2@1", "lnf")
            assert row.moved_over_compulsory >= (0.5 if folded else 0.98), row.phase
