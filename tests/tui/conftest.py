"""The app on a canned run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from gputop.plan.types import PlanRequest
from gputop.tui.app import GputopApp
from gputop.tui.options import Options
from tests.tui.fake.client import ReplayedClient
from tests.tui.fake.records import WORKLOAD
from tests.tui.screen import Driver, until

UPDATE_S = 0.05
"""Less patience than a person has between two drawings."""
Running = Callable[..., AbstractAsyncContextManager[tuple[GputopApp, Driver, ReplayedClient]]]


@pytest.fixture
def running(tmp_path: Path) -> Running:
    """`async with running(size=(140, 45)) as (app, pilot, client)`: the first window is on the screen."""

    @asynccontextmanager
    async def run(
        size: tuple[int, int] = (140, 45), request: PlanRequest | None = None
    ) -> AsyncIterator[tuple[GputopApp, Driver, ReplayedClient]]:
        client = ReplayedClient(tmp_path)
        app = GputopApp(Options("cpu", WORKLOAD, request=request), client, update_s=UPDATE_S)
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda: app.state.lane is not None and not app.state.pending, "a window")
            await until(pilot, lambda: app.is_drawn, "its drawing")
            yield app, pilot, client

    return run
