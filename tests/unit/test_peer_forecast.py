"""Forecasts of what was not timed, by what an H200 measured of the rest: a framework, and a larger batch."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputop.perf.roofline import Floor, SiteTerms, batched_s
from gputop.plan.plan_string import parse_choice
from gputop.plan.rungs import Feature
from gputop.plan.types import Dims, Kernel, Plan, PlanRequest
from gputop.plan.work import NOTHING
from gputop.planner.resolver import Resolver
from gputop.results import recording
from gputop.results.breakdown import kind_of
from gputop.results.kindred_ceilings import completed
from gputop.results.recording import Recording
from gputop.results.records import TOTAL_ROWS, Ceilings, PlanResult, Row
from gputop.session.cost_model import Machine, SiteModel
from gputop.session.peer_forecast import OwnPlanTiming, peer_forecast

CATALOG = Resolver.load()
TERMS = ("compute_s", "dram_s", "l2_s", "l1_s", "issue_s", "latency_s", "launch_s")
UNKNOWN_FLOOR = Floor(None, None, None, None)
NEAR = 1.35
"""A forecast of a whole pass without a time of its own is of use when it is this near, as a factor."""


@cache
def kept() -> Recording:
    return recording.read(recording.shipped()["h200"])


def lane(rung: str) -> PlanResult:
    lanes = (lane for window in kept().windows for lane in window.lanes if lane.role == "current")
    return next(lane for lane in lanes if lane.rung == rung)


def sites(of: PlanResult) -> list[Row]:
    return [row for row in of.rows if row.phase not in TOTAL_ROWS]


def ours(rung: str) -> OwnPlanTiming:
    """A recorded plan of ours as its window would have given it."""
    recorded = lane(rung)
    rows = sites(recorded)
    plan = CATALOG.resolve(PlanRequest(rung), kept().header.workload.dims, "cuda")
    return OwnPlanTiming(
        plan=plan,
        sites=tuple(model(row) for row in rows),
        time_s={row.phase: row.time_s for row in rows if row.time_s is not None},
        gap_s={row.phase: row.gap_s for row in rows if row.gap_s is not None},
        launches={row.phase: row.launches for row in rows if row.launches is not None},
    )


def model(row: Row) -> SiteModel:
    phase = row.phase.partition("@")[0]
    kinds = {each.name: each.kind for each in CATALOG.phases}
    choice = parse_choice(row.kernel or "none")
    kernel = CATALOG.kernels.get(choice.kernel, Kernel(choice.kernel, "cuda", "", ()))
    kind = kind_of([kinds.get(phase, "gemm")])
    count = row.count or 1
    return SiteModel(
        row.phase, (phase,), kind, kernel, choice, count, NOTHING, (), 0.0, UNKNOWN_FLOOR, None, SiteTerms()
    )


def machine(ceilings: Ceilings | None = None) -> Machine:
    header = kept().header
    return Machine(header.device, ceilings or completed(header.ceilings), 1.98e9)


def peer(name: str) -> tuple[Plan, Dims, tuple[Feature, ...]]:
    dims = kept().header.workload.dims
    return CATALOG.resolve(PlanRequest(name), dims, "cuda"), dims, CATALOG.rung(name).features


@pytest.mark.parametrize("name", ["torch-eager", "torch-compile"])
def test_a_framework_is_forecast_near_what_it_then_took(name: str) -> None:
    recorded = {lane.plan for window in kept().windows for lane in window.lanes}
    steps = [rung.id for rung in CATALOG.rungs_of("cuda") if rung.kind != "peer" and rung.id in recorded]
    found = peer_forecast(CATALOG, *peer(name), [ours(rung) for rung in steps], machine())
    measured_s = lane(name).device_s
    assert found is not None
    assert measured_s is not None
    assert 1 / NEAR < measured_s / found.time_s < NEAR, (measured_s, found)
    assert "5 of 5 products at the library's times here" in found.basis


def test_each_feature_is_worth_something() -> None:
    plan, dims, every = peer("torch-compile")
    known = [ours("cublaslt"), ours("graph")]
    whole = peer_forecast(CATALOG, plan, dims, every, known, machine())
    assert whole is not None
    for name in ("fusion", "graph"):
        fewer = tuple(feature for feature in every if feature != name)
        without = peer_forecast(CATALOG, plan, dims, fewer, known, machine())
        assert without is not None
        assert without.time_s > whole.time_s, name


def test_without_any_of_our_kernels_it_rests_on_floors_and_says_so() -> None:
    found = peer_forecast(CATALOG, *peer("torch-compile"), [], machine())
    assert found is not None
    assert "0 of 5 products" in found.basis
    assert "at floors: attention, pointwise" in found.basis
    measured = peer_forecast(CATALOG, *peer("torch-compile"), [ours("graph")], machine())
    assert measured is not None
    assert found.time_s < measured.time_s


def test_without_ceilings_and_kernels_there_is_no_forecast() -> None:
    none = replace(kept().header.ceilings, items=())
    assert peer_forecast(CATALOG, *peer("torch-compile"), [], machine(none)) is None


def test_kernels_of_another_batch_are_no_evidence() -> None:
    at_four = replace(ours("graph"), plan=ours("graph").plan.change(batch=4))
    found = peer_forecast(CATALOG, *peer("torch-compile"), [at_four], machine())
    assert found == peer_forecast(CATALOG, *peer("torch-compile"), [], machine())


def modelled_s(of: PlanResult) -> float:
    return sum(max(getattr(row, name) or 0.0 for name in TERMS) for row in sites(of))


def test_a_batch_repays_at_most_what_the_terms_forecast_and_nearer_that_than_nothing() -> None:
    """Terms are the least that a pass can take; the split's own step for shape forecasts nothing."""
    one, many = lane("graph"), lane("batch")
    assert one.device_s is not None
    assert many.device_s is not None
    batch = many.rows[0].batch
    ahead_s = batched_s(one.device_s, modelled_s(one), modelled_s(many))
    forecast, measured = one.device_s / (ahead_s / batch), one.device_s / (many.device_s / batch)
    assert 1 < measured < forecast, (measured, forecast)
    assert forecast / measured < measured, (measured, forecast)


times = st.floats(1e-6, 1.0)


@given(times, times)
def test_the_same_batch_is_forecast_at_what_was_measured(time_s: float, model_s: float) -> None:
    assert batched_s(time_s, model_s, model_s) == pytest.approx(time_s)


@given(times, times, times, times)
def test_more_work_in_the_model_is_more_time(time_s: float, model_s: float, a_s: float, b_s: float) -> None:
    fewer, more = sorted((a_s, b_s))
    assert batched_s(time_s, model_s, fewer) <= batched_s(time_s, model_s, more)
