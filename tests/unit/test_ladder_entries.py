"""Predictions held against gains, those that were revised by what they were first too."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from gputop.backends.base import Prepared
from gputop.perf.verdicts import Paired
from gputop.phases import rungs
from gputop.plan.rungs import Prediction
from gputop.plan.types import Plan, PlanRequest
from gputop.results import recording
from gputop.results.ladder import PredictedGain
from gputop.results.recording import LadderLine, encode, parse
from gputop.results.records import Gate
from gputop.session import paired_comparison
from gputop.session.aa_noise import NoiseFloors
from gputop.session.ladder_entries import LadderMeasurement, entries
from gputop.session.prepared_plans import PreparedLane
from gputop.session.sampling import LaneSamples
from gputop.util.interval import Interval

TIMER_S = 1e-7
NO_SITES = cast(Prepared, SimpleNamespace(steps=()))
"""Of a plan whose sites nobody asks for."""
PASS = Gate("PASS", 1e-7, 1e-5)
PREDICTION = Prediction(2.0, 1.5, 3.0, "floor")


@pytest.mark.parametrize(
    ("gain", "lo", "hi", "held"),
    [
        (2.0, 1.9, 2.1, True),
        (2.0, 1.4, 2.1, None),
        (1.2, 1.1, 1.3, False),
        (3.3, 3.1, 3.5, False),
        (2.0, None, None, True),
        (4.0, None, None, False),
        (None, None, None, None),
    ],
)
def test_a_prediction_holds_by_the_whole_interval_of_the_gain(
    gain: float | None, lo: float | None, hi: float | None, held: bool | None
) -> None:
    assert PREDICTION.holds(Interval(gain, lo, hi)) is held


def climb(rung: str, time_s: float) -> LadderMeasurement:
    """A rung whose every pass took that long."""
    plan = Plan("cuda", PlanRequest(rung), ())
    samples = LaneSamples(PreparedLane(plan, NO_SITES, PASS, time_s))
    samples.device_s = samples.wall_s = [time_s * (1 + 1e-4 * (turn % 2)) for turn in range(16)]
    return LadderMeasurement(plan, next(each for each in rungs() if each.id == rung), PASS, samples)


def test_a_ladder_keeps_what_was_first_predicted_beside_what_is_predicted() -> None:
    _, dispatch, cublaslt = entries(
        [climb("algebra", 1.6e-3), climb("dispatch", 1e-3), climb("cublaslt", 0.9e-3)],
        NoiseFloors(0.003),
        TIMER_S,
    )
    assert (dispatch.predicted, dispatch.hit) == (1.4, True)
    assert dispatch.foretold is not None
    assert (dispatch.foretold.gain, dispatch.foretold.hit) == (1.05, False)
    assert cublaslt.foretold is not None
    assert (cublaslt.hit, cublaslt.foretold.hit) == (True, True)
    assert PredictedGain.of(PREDICTION, Interval(2.0, 1.9, 2.1)) is None, "it is the first"


def noise(effect: float) -> NoiseFloors:
    """Copies of `graph` that differed by so much."""
    seen = NoiseFloors(0.003)
    for _ in range(12):
        seen.add("graph", "device", Paired(effect, effect - 1e-4, effect + 1e-4, 16))
    return seen


@pytest.mark.parametrize(
    ("copies", "timer_s", "verdict"),
    [(0.001, TIMER_S, "FASTER"), (0.0117, TIMER_S, "SAME"), (0.001, 4e-4, "UNRESOLVED")],
)
def test_a_ladder_is_held_to_the_floor_and_the_clock_that_a_window_is(
    copies: float, timer_s: float, verdict: str
) -> None:
    """The same samples as a window of the two, and as a ladder's rungs."""
    graph, tournament = climb("graph", 478e-6), climb("tournament", 474e-6)
    floors = noise(copies)
    _, entry = entries([graph, tournament], floors, timer_s)
    assert graph.samples is not None
    assert tournament.samples is not None
    window = paired_comparison.compare(graph.samples, tournament.samples, floors, timer_s).get("device")
    assert window is not None
    assert (entry.verdict, entry.status) == (window.verdict, window.status)
    assert entry.verdict == verdict
    assert entry.aa_floor == window.aa_floor == floors.floor("graph", "device").apart
    assert entry.same_within == window.same_within == floors.floor("graph", "device").same


def test_a_recorded_ladder_keeps_its_floors_and_an_older_one_has_none() -> None:
    kept = recording.read(recording.shipped()["h200"])
    assert kept.ladder is not None
    first, rung, *_ = kept.ladder.entries
    assert rung.verdict
    for floor in (None, 0.004):
        line = LadderLine(ladder=replace(kept.ladder, entries=(first, replace(rung, aa_floor=floor))))
        assert (b"aa_floor" in encode(line)) == (floor is not None)
        read = parse(encode(kept.header) + encode(line), "a test").ladder
        assert read is not None
        assert read.entries[1].aa_floor == floor


def test_every_revised_prediction_says_when_it_was() -> None:
    found = {rung.id: rung.prediction for rung in rungs() if rung.prediction and rung.prediction.first}
    assert found
    for prediction in found.values():
        assert prediction.revised.startswith("when ")
        assert prediction.first is not None
        assert prediction.first.lo <= prediction.first.gain <= prediction.first.hi


def test_a_recording_that_did_not_keep_what_was_first_predicted_is_read_with_it() -> None:
    kept = recording.read(recording.shipped()["h200"])
    assert kept.ladder is not None
    by_rung = {entry.rung: entry for entry in kept.ladder.entries}
    flash = by_rung["flash"]
    assert flash.hit is True
    assert flash.foretold is not None
    assert (flash.foretold.gain, flash.foretold.source, flash.foretold.hit) == (1.06, "floor", False)
    assert by_rung["coalesced"].foretold is None
    unkept = replace(flash, foretold=None)
    for recorded, expected in (
        (replace(unkept, predicted=flash.predicted_hi), None),
        (unkept, flash.foretold),
        (flash, flash.foretold),
    ):
        line = LadderLine(ladder=replace(kept.ladder, entries=(replace(recorded, before=None),)))
        read = parse(encode(kept.header) + encode(line), "a test").ladder
        assert read is not None
        assert read.entries[0].foretold == expected
