"""The what-if view of a recording: what is turned is priced by the model, and the answer is the command's."""

from __future__ import annotations

from pathlib import Path

import pytest

from gputop.ipc.connection import Connection
from gputop.model.workloads import parse_workload
from gputop.plan.types import PlanRequest
from gputop.session.replay import Replay
from gputop.tui.app import GputopApp
from gputop.tui.options import Options
from gputop.tui.views.whatif_knobs import PRICE_KNOBS, Subject
from tests.tui.screen import until, until_shown

SMALL = Path(__file__).parent / "data" / "small.jsonl"


async def test_another_batch_is_priced_and_r_takes_what_was_measured(tmp_path: Path) -> None:
    options = Options("replay", parse_workload("tiny"), device=str(SMALL))
    app = GputopApp(options, Connection(log_path=tmp_path / "worker.log"), update_s=0.02)
    async with app.run_test(size=(140, 45)) as pilot:
        await until(pilot, lambda: bool(app.state.ladder), "the ladder")
        await pilot.press("5")
        at_once = await until_shown(pilot, "of the measured time")
        assert "gain a token ≈ 1.00×:" in at_once
        await pilot.press("down", "down", "down", "down", "down", "right")
        await until_shown(pilot, "recorded: 1")
        shown = await until_shown(pilot, "gain a token ≈")
        assert "gain a token ≈ 1.00×:" not in shown
        answer = app.state.whatif
        assert answer is not None
        assert answer.asked.sets == (("batch", "2"),)
        assert answer.found == Replay.open(str(SMALL)).what_if(answer.asked)
        await pilot.press("r")
        await until_shown(pilot, "gain a token ≈ 1.00×:")
        await pilot.press("up", "right")
        await until_shown(pilot, "is offered as")


@pytest.mark.parametrize("steps", [-100, -1, 1, 100])
def test_a_knob_stops_at_its_ends_and_comes_back(steps: int) -> None:
    plan = Replay.open("h200").view(PlanRequest("graph")).plan
    subject = Subject(plan, PlanRequest("graph"), "w2", 128)
    for knob in PRICE_KNOBS:
        own = knob.recorded(subject)
        values = knob.values(subject)
        assert own in values
        assert knob.turned(subject, own, steps) in values
        end = knob.turned(subject, own, 100 if steps > 0 else -100)
        assert end == (values[-1] if steps > 0 else values[0])
    # What was measured is asked without a change.
    assert not subject.asked({}).changes_pass
    assert subject.asked({"parts": "4"}).uses[0][1].splits == 4
