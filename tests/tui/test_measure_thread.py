"""The sampler by itself, its messages read in the screen's place."""

from __future__ import annotations

from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from textual.message import Message

from gputop.plan.types import PlanRequest
from gputop.tui.measure_thread import MeasureRequest, Sampler
from gputop.tui.messages import CannotOpen, DeviceReady, PlanReady, Said, WindowReady
from gputop.tui.options import Options
from gputop.tui.state import PlanPair
from gputop.util.errors import UsageError
from tests.tui.fake.client import IMPOSSIBLE, ReplayedClient
from tests.tui.fake.records import WORKLOAD

PATIENCE_S = 60.0
BLAS, THREADS = PlanRequest("cpu-blas"), PlanRequest("cpu-threads")
IMPOSSIBLE_PLAN = PlanRequest("cpu-blas", (IMPOSSIBLE,))


def test_the_first_window_waits_for_no_screen(tmp_path: Path) -> None:
    """A screen still being put together wishes for nothing; what it is going to wish for is measured."""
    said: SimpleQueue[Message] = SimpleQueue()
    sampler = Sampler(ReplayedClient(tmp_path), Options("cpu", WORKLOAD, batch=2), said.put)
    sampler.start()
    kinds: list[type[Message]] = []
    while not kinds or kinds[-1] is not WindowReady:
        message = said.get(timeout=PATIENCE_S)
        kinds += [] if isinstance(message, Said) else [type(message)]
    assert kinds == [DeviceReady, PlanReady, WindowReady]
    assert isinstance(message, WindowReady)
    assert message.pair == PlanPair(PlanRequest("cpu-blas", (("batch", "2"),)))
    sampler.finish()


def test_another_wish_ends_the_window_that_was_begun_for_the_screen(tmp_path: Path) -> None:
    said: SimpleQueue[Message] = SimpleQueue()
    client = ReplayedClient(tmp_path)
    sampler = Sampler(client, Options("cpu", WORKLOAD, request=BLAS), said.put)
    sampler.start()
    pairs: list[PlanPair] = []
    while not pairs or pairs[-1].current != THREADS:
        message = said.get(timeout=PATIENCE_S)
        if isinstance(message, WindowReady):
            pairs.append(message.pair)
            sampler.want(MeasureRequest(PlanPair(THREADS, BLAS)))
    assert pairs[0] == PlanPair(BLAS)
    assert pairs[-1] == PlanPair(THREADS, BLAS)
    assert client.resolved == 1, (
        "the plan that was named; a flip's own comes before its window, in one answer"
    )
    sampler.finish()


@pytest.mark.parametrize("options", [{"request": IMPOSSIBLE_PLAN}, {"batch": 999}], ids=["plan", "batch"])
def test_a_plan_that_was_named_and_can_not_be_is_not_replaced_by_another(
    options: dict[str, Any], tmp_path: Path
) -> None:
    said: SimpleQueue[Message] = SimpleQueue()
    client = ReplayedClient(tmp_path)
    sampler = Sampler(client, Options("cpu", WORKLOAD, **options), said.put)
    sampler.start()
    while isinstance(message := said.get(timeout=PATIENCE_S), Said):
        continue
    assert isinstance(message, CannotOpen)
    assert message.exit_code == UsageError.exit_code
    assert "A batch of 999" in message.reason
    sampler.finish()
    assert client.windows == 0
