"""What a phase's row says of its kernel and of its times, and what of a comparison is its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from gputop.backends.base import PassTimes, PhaseTimes
from gputop.model.workloads import WORKLOADS
from gputop.perf.roofline import TERMS, Binding, Floor, LaunchTerms, SiteTerms
from gputop.plan.launch_shape import LaunchInfo
from gputop.plan.types import PlanRequest
from gputop.planner.resolver import Resolver
from gputop.results.records import (
    TOTAL_ROWS,
    Ceiling,
    Ceilings,
    Comparison,
    Delta,
    DeviceFacts,
    Gate,
    Health,
    Row,
)
from gputop.session.cost_model import Machine, site_models
from gputop.session.prepared_plans import PreparedLane
from gputop.session.rows import PlanModel, WindowContext, lane_rows, timed_sites
from gputop.session.sampling import LaneSamples
from gputop.session.timed_site import pass_binding

CATALOG = Resolver.load()
DIMS = WORKLOADS[0].dims
DEVICE = DeviceFacts("cuda", "A GPU", arch="sm_90", sm_count=132, l2_bytes=50 << 20)
MACHINE = Machine(DEVICE, Ceilings("A GPU", None, "t", ()), None)
OCCASION = WindowContext(1, "t", DEVICE, Health(), "gpt2-small", "in-situ", "v")


@dataclass
class Known:
    """A prepared plan of which only the launch facts are asked."""

    launched: tuple[LaunchInfo, ...]

    def facts(self) -> tuple[LaunchInfo, ...]:
        return self.launched


def rows(rung: str, *facts: LaunchInfo) -> Mapping[str, Row]:
    """Of a plan at gpt2-small whose every site took a microsecond."""
    plan = CATALOG.resolve(PlanRequest(rung), DIMS, "cuda")
    dims = replace(DIMS, batch=plan.batch)
    models = site_models(CATALOG, plan, dims, CATALOG.steps(plan, dims), MACHINE, {})
    prepared: Any = Known(facts)
    lane = LaneSamples(PreparedLane(plan, prepared, Gate("PASS", 1e-6, 1e-5), 1e-3))
    times = {model.name: 1e-6 for model in models}
    lane.keep(PassTimes(2e-3, 1e-3, 1e-4), PhaseTimes(times, {}, {}, "event", 1e-8))
    physics = PlanModel(models, (), {phase: model.floor for model in models for phase in model.phases})
    return {row.phase: row for row in lane_rows(OCCASION, lane, dims, physics, None)}


def test_spills_of_the_loaded_code_are_in_the_row_and_unknown_ones_are_not() -> None:
    found = rows(
        "naive", LaunchInfo("w1", "gemm_naive", 12, spill_bytes=24), LaunchInfo("w2", "gemm_naive", 12)
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


# Times that leave gaps out

CEILINGS = (
    Ceiling("dram_read", 4.6e12, "B/s", ""),
    Ceiling("fp32", 60e12, "FLOP/s", ""),
    Ceiling("launch_empty_queued", 2e-6, "s", ""),
)
KNOWN = replace(MACHINE, ceilings=Ceilings("A GPU", None, "t", CEILINGS), clock_hz=1.98e9)
LAUNCHES = 12
LAUNCH_S = LAUNCHES * 2e-6


def lane_of(
    time_s: float,
    gap_s: Mapping[str, float],
    overlap_s: Mapping[str, float] | None = None,
    *,
    prune: str = "off",
    machine: Machine = KNOWN,
) -> tuple[LaneSamples, PlanModel]:
    """The naive rung, every site launched as often as there are layers, and all of them timed alike."""
    plan = CATALOG.resolve(PlanRequest("naive", sets=(("prune", prune),)), DIMS, "cuda")
    steps = CATALOG.steps(plan, DIMS)
    facts = tuple(LaunchInfo(name, "k", LAUNCHES) for name in dict.fromkeys(step.site for step in steps))
    models = site_models(CATALOG, plan, DIMS, steps, machine, {fact.site: fact for fact in facts})
    prepared: Any = Known(facts)
    lane = LaneSamples(PreparedLane(plan, prepared, Gate("PASS", 1e-6, 1e-5), 1e-3))
    times = {model.name: time_s for model in models}
    lane.keep(PassTimes(2e-3, 1e-3, 1e-4), PhaseTimes(times, gap_s, overlap_s or {}, "cupti", 1e-8))
    return lane, PlanModel(models, (), {phase: model.floor for model in models for phase in model.phases})


def rows_of(lane: LaneSamples, physics: PlanModel, comparison: Comparison | None = None) -> Mapping[str, Row]:
    return {row.phase: row for row in lane_rows(OCCASION, lane, DIMS, physics, comparison)}


@pytest.mark.parametrize(
    ("gap_s", "launch_s", "binds"),
    [({}, LAUNCH_S, "launch"), ({"ln1": 20e-6}, 4e-6, "unknown"), ({"ln1": 30e-6}, 0.0, "unknown")],
    ids=["no gaps are seen", "most of it is gaps", "more than all of it is"],
)
def test_of_a_launch_only_what_is_no_gap_is_held_against_a_time_without_gaps(
    gap_s: Mapping[str, float], launch_s: float, binds: str
) -> None:
    lane, physics = lane_of(22e-6, gap_s)
    row = rows_of(lane, physics)["ln1"]
    assert row.launch_s == pytest.approx(launch_s)
    assert row.binds == binds
    told = "modelled at 1.09 times what was measured" in (row.status or "")
    assert told == (not gap_s), "a launch that reaches into a gap is not above the time"
    assert row.unexplained_s is not None
    assert (row.unexplained_s < 0) == (not gap_s)


def test_a_pass_that_is_mostly_gaps_is_bound_by_launches() -> None:
    lane, physics = lane_of(60e-6, {}, machine=replace(KNOWN, clock_hz=None))
    lane.phases[0] = replace(lane.phases[0], gap_s={model.name: 80e-6 for model in physics.sites})
    found = rows_of(lane, physics)
    assert {found[model.name].binds for model in physics.sites}.isdisjoint({"launch"})
    assert found["device"].binds == "launch"
    assert pass_binding(timed_sites(lane, physics), 1e-3).binds == "launch", "a ladder says the same"
    fewer = {model.name: 24e-6 for model in physics.sites}
    lane.phases[0] = replace(lane.phases[0], gap_s=fewer)
    assert rows_of(lane, physics)["device"].binds != "launch"


def test_a_frameworks_gaps_alone_bind_nothing() -> None:
    """Of its kernels nothing is known to bind, so neither can a share of the pass be."""
    lane, physics = lane_of(1e-6, {"ln1": 1e-3})
    assert pass_binding(timed_sites(lane, replace(physics, sites=())), 1e-3) == Binding("unknown", None, None)


def test_a_phase_that_ran_beside_the_launch_before_says_so_where_it_is_over_its_floor() -> None:
    lane, physics = lane_of(1e-6, {}, {"w1": 5e-3, "w2": 1e-7})
    found = rows_of(lane, physics)
    assert (found["w1"].efficiency or 0) > 1
    assert "5.00 ms of it ran beside the launch before" in (found["w1"].status or "")
    assert "ceiling" not in (found["w1"].status or ""), "what ran beside is all of it"
    assert "100 ns of it ran beside the launch before" in (found["w2"].status or "")
    assert "beyond that the clock" in (found["w2"].status or ""), "what ran beside is too little of it"
    assert "beside" not in (found["wo"].status or "")


# Deltas


def between(name: str, a_s: float, b_s: float) -> Delta:
    return Delta(
        name, a_s, b_s, b_s - a_s, None, None, a_s / b_s, None, None, 9, 0.003, "UNRESOLVED", f"why {name}"
    )


def test_the_delta_of_a_row_is_of_its_own_site() -> None:
    """Two sites in both plans: each has its own, and none the phase's."""
    lane, physics = lane_of(1e-5, {}, prune="on")
    own = (between("w1", 2e-4, 1e-4), between("w1@1", 1e-5, 3e-5))
    pair = Comparison("a", "b", 1, (between("w1", 2.1e-4, 1.3e-4),), own)
    found = rows_of(lane, physics, pair)
    assert found["w1"].delta_s == pytest.approx(-1e-4)
    assert found["w1@1"].ratio == pytest.approx(1 / 3)
    assert "why w1@1" in (found["w1@1"].status or "")
    assert "against all of" not in (found["w1"].status or "")
    assert found["w2"].delta_s is None


def test_where_only_a_phase_can_be_compared_the_row_says_of_which_sites() -> None:
    """The pinned plan has no `w1@1`: its `w1` is twelve layers, the pruned one's eleven."""
    lane, physics = lane_of(1e-5, {}, prune="on")
    pair = Comparison("a", "b", 1, (between("w1", 2e-4, 1.5e-4),), (between("w1", 2e-4, 1.4e-4),))
    found = rows_of(lane, physics, pair)
    assert found["w1"].delta_s == pytest.approx(-5e-5)
    assert "delta of w1 and w1@1 here against all of w1 there" in (found["w1"].status or "")
    assert found["w1@1"].delta_s is None
    assert "its delta is in the row of w1" in (found["w1@1"].status or "")


def test_nor_is_a_site_compared_with_one_that_does_less() -> None:
    """The other way round: the pinned plan does a twelfth of its `w1` at `w1@1`."""
    lane, physics = lane_of(1e-5, {})
    pair = Comparison("b", "a", 1, (between("w1", 1.5e-4, 2e-4),), (between("w1", 1.4e-4, 2e-4),))
    found = rows_of(lane, physics, pair)
    assert found["w1"].delta_s == pytest.approx(5e-5)
    assert "delta of w1 here against all of w1 there" in (found["w1"].status or "")


# What a reader of the file can follow


@pytest.mark.parametrize(
    "terms",
    [
        LaunchTerms(launch_s=5e-6, compute_s=4e-5, dram_s=3e-5),
        LaunchTerms(launch_s=1e-6, first_load_s=1e-6, dram_s=1e-5, l1_s=1.1e-5, latency_s=5e-5, stages=0),
        LaunchTerms(compute_s=1e-5, l2_s=1.5e-5, end_s=2e-5),
        LaunchTerms(launch_s=3e-6, l2_s=1e-5),
    ],
)
def test_what_binds_follows_from_the_columns_of_the_row(terms: LaunchTerms) -> None:
    """The largest share of the time binds; unknown only if the terms add up to less than half of it."""
    lane, physics = lane_of(60e-6, {})
    site = next(model for model in physics.sites if model.name == "w1")
    site = replace(site, floor=Floor(None, None, None, None), terms=SiteTerms((terms,)))
    row = rows_of(lane, replace(physics, sites=(site,)))["w1"]
    assert row.time_s is not None
    assert row.modelled_s == pytest.approx(terms.total_s)
    assert row.unexplained_s == pytest.approx(row.time_s - terms.total_s)
    largest = max((getattr(row, f"{name.replace(' ', '_')}_s") or 0.0, name) for name in TERMS)
    if terms.total_s < row.time_s / 2:
        assert (row.binds, row.runner_up) == ("unknown", largest[1])
        assert row.binds_share == pytest.approx(1 - terms.total_s / row.time_s)
    else:
        assert row.binds == largest[1]
        assert row.binds_share == pytest.approx(largest[0] / row.time_s)


def test_reach_holds_the_gap_before_a_launch() -> None:
    lane, physics = lane_of(60e-6, {"w1": 40e-6})
    site = next(model for model in physics.sites if model.name == "w1")
    row = rows_of(lane, replace(physics, sites=(replace(site, reach_s=25e-6),)))["w1"]
    assert row.reach_efficiency == pytest.approx(0.25)
