"""The shipped recordings hold the model to what was measured; older recordings are read by today's model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from docs.model import EXCEPTIONS, Explained, explained, model_page
from gputop.plan.types import PlanRequest
from gputop.results import recording
from gputop.results.kindred_ceilings import completed
from gputop.results.recording import Recording
from gputop.results.records import TOTAL_ROWS, Ceilings
from gputop.session.recorded_model import RecordedModel
from gputop.session.replay import Replay


@pytest.fixture(scope="module")
def shipped() -> dict[str, Recording]:
    return {name: recording.read(path) for name, path in recording.shipped().items()}


@pytest.fixture(scope="module")
def every(shipped: dict[str, Recording]) -> list[Explained]:
    return [one for name, kept in shipped.items() for one in explained(name, kept)]


def test_no_plan_is_further_from_the_model_than_its_bound(every: list[Explained]) -> None:
    for one in every:
        most = one.exception.held if one.exception else one.bound
        assert one.residual <= most, f"{one.recording}, {one.plan}: {one.residual:.1%}"


def test_an_exception_is_one_and_is_held_to_what_it_has_reached(every: list[Explained]) -> None:
    for plan, ratchet in EXCEPTIONS.items():
        worst = max(one.residual for one in every if one.plan == plan)
        bound = next(one.bound for one in every if one.plan == plan)
        assert worst > bound, f"{plan} keeps its bound now: it is no exception any more"
        assert ratchet.held - worst < 0.015, f"{plan} has reached {worst:.1%}: hold it to that"
        assert ratchet.why.endswith(".")


def test_every_plan_of_ours_is_modelled(shipped: dict[str, Recording], every: list[Explained]) -> None:
    for name, kept in shipped.items():
        ours = {plan.word for plan in kept.plans if not plan.peer}
        measured = {lane.plan for window in kept.windows for lane in window.lanes if lane.rows}
        assert {one.plan for one in every if one.recording == name} == ours & measured


def test_the_page_says_so(shipped: dict[str, Recording], every: list[Explained]) -> None:
    page = model_page(shipped)
    assert page.count("(exception)") == sum(one.exception is not None for one in every)


def test_rows_of_an_older_recording_say_what_binds_and_keep_their_times(
    shipped: dict[str, Recording],
) -> None:
    kept = shipped["h200"]
    window = Replay(kept).measure(PlanRequest("graph"))
    recorded = next(other for other in kept.windows if other.number == window.number)
    lane = window.lane("current")
    before = recorded.lane("current")
    assert lane is not None
    assert before is not None
    assert [(row.phase, row.time_s, row.floor_s) for row in lane.rows] == [
        (row.phase, row.time_s, row.floor_s) for row in before.rows
    ]
    for row in lane.rows:
        if row.phase not in TOTAL_ROWS:
            assert row.binds_share is not None, row.phase
            assert row.reach_s is not None, row.phase
            assert row.reach_s >= (row.floor_s or 0.0)
            assert row.binds != "unknown" or (row.modelled_s or 0.0) < (row.time_s or 0.0) / 2
    assert "by this gputop's model" in " ".join(window.device.notes)


def test_a_rung_of_an_older_ladder_says_what_binds_with_its_share(shipped: dict[str, Recording]) -> None:
    ladder = Replay(shipped["h200"]).measure_ladder(())
    known = [entry for entry in ladder.entries if entry.binds]
    assert {entry.rung for entry in known} >= {"naive", "graph", "hopper"}
    assert all(entry.binds_share is not None for entry in known)


def test_a_plan_that_today_can_not_resolve_keeps_its_times_and_loses_nothing_else(
    shipped: dict[str, Recording],
) -> None:
    kept = shipped["h200-products"]
    gone = replace(kept.plans[0], dispatch=(("embed", replace(kept.plans[0].dispatch[0][1], kernel="gone")),))
    model = RecordedModel(replace(kept, plans=(gone, *kept.plans[1:])))
    window = kept.windows[0]
    lane = next(lane for lane in window.lanes if lane.plan == gone.word)
    assert model.sites(window, lane) == ()
    assert model.window(window).lanes[0].rows == window.lanes[0].rows


def test_a_ceiling_that_a_recording_lacks_is_said_to_be_anothers(shipped: dict[str, Recording]) -> None:
    own = shipped["h200"].header.ceilings
    for item in completed(own).items:
        assert item in own.items or "of recording h200-copy-engine" in item.how
    stranger = Ceilings("another device", None, "t", ())
    assert completed(stranger) == stranger
