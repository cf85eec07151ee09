"""Flips that a recording does not hold, forecast by the model and held against the recording's own steps."""

from __future__ import annotations

from dataclasses import replace
from math import log

import pytest

from gputop.plan.types import PlanRequest
from gputop.session import flip_forecast
from gputop.session.flip_forecast import COVERED, FEWEST_STEPS, FlipForecaster
from gputop.session.pass_forecast import savings
from gputop.session.replay import Replay
from gputop.util.errors import UsageError

GRAPH = PlanRequest("graph")


@pytest.fixture(scope="module")
def replay() -> Replay:
    return Replay.open("h200")


def forecaster(replay: Replay) -> FlipForecaster:
    return replay._forecaster


def test_only_what_was_not_recorded_is_forecast(replay: Replay) -> None:
    found = replay.forecast_flips(GRAPH)
    flips = {item.flip for item in found.items}
    assert found.plan == "graph"
    assert "prune=off" in flips
    assert not flips & {"pdl=on", "graph=off"}, "rungs `dependent` and `flash`: measured"
    toggles = {toggle.name: toggle.values for toggle in replay.view(GRAPH).toggles}
    for flip in flips:
        name, _, value = flip.partition("=")
        assert value in toggles[name]


def test_the_interval_holds_as_many_of_the_recorded_steps_as_it_says(replay: Replay) -> None:
    errors = forecaster(replay)._errors
    (item, *_) = replay.forecast_flips(GRAPH).items
    assert item.lo is not None
    assert item.hi is not None
    assert item.lo < item.ratio * 1.0001
    lo, hi = log(item.lo / item.ratio), log(item.hi / item.ratio)
    inside = sum(1 for error in errors if lo - 1e-9 <= error <= hi + 1e-9)
    assert inside >= COVERED * len(errors)
    assert len(errors) >= FEWEST_STEPS


def test_with_too_few_steps_no_interval_is_given(replay: Replay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flip_forecast, "FEWEST_STEPS", 1000)
    assert all((item.lo, item.hi) == (None, None) for item in replay.forecast_flips(GRAPH).items)


def test_a_plan_is_forecast_to_take_as_long_as_itself(replay: Replay) -> None:
    made = forecaster(replay)
    for word in ("naive", "flash", "graph", "megakernel"):
        plan = replay._find(PlanRequest(word))
        rows, models = made._rows[word], made._model(plan)
        assert models is not None
        found = savings(rows, models, models)
        assert found
        assert [item.saved_s for item in found] == [0.0] * len(found)


def test_work_that_is_gone_saves_no_more_than_it_took(replay: Replay) -> None:
    made = forecaster(replay)
    models = made._model(replay._find(PlanRequest("naive")))
    assert models is not None
    (w2,) = (model for model in models if model.name == "w2")
    others = tuple(model for model in models if model is not w2)
    row = next(row for row in made._rows["naive"] if row.phase == "w2")
    # A measured time below the model's: its saving is scaled down to it.
    (gone,) = savings((replace(row, time_s=1e-9, gap_s=None),), models, others)
    assert gone.sites == ("w2",)
    assert gone.saved_s == pytest.approx(1e-9, rel=1e-3)


def test_a_pass_that_was_not_timed_has_no_forecast(replay: Replay) -> None:
    made = forecaster(replay)
    models = made._model(replay._find(GRAPH))
    assert models is not None
    assert savings((), models, models) == ()


def test_what_a_pruned_layer_still_does_counts_with_what_it_did(replay: Replay) -> None:
    """Without pruning the last layer's `w1@1` is one more `w1`: the change is of one launch, not of all."""
    made = forecaster(replay)
    plan = replay._find(GRAPH)
    whole = made._resolve(plan.request.with_set("prune", "off"))
    before, after = made._model(plan), made._model(whole)
    assert before is not None
    assert after is not None
    found = {item.sites: item.saved_s for item in savings(made._rows["graph"], before, after)}
    (w1,) = (sites for sites in found if "w1" in sites)
    assert set(w1) == {"w1", "w1@1"}
    pruned = next(row for row in made._rows["graph"] if row.phase == "w1@1")
    assert pruned.time_s is not None
    assert 0 < abs(found[w1]) < pruned.time_s


def test_frameworks_are_not_forecast(replay: Replay) -> None:
    assert replay.forecast_flips(PlanRequest("torch-eager")).items == ()


def test_what_was_not_recorded_has_no_forecasts_of_its_own(replay: Replay) -> None:
    with pytest.raises(UsageError, match="was not recorded"):
        replay.forecast_flips(PlanRequest("graph", (("prune", "off"),)))
