"""The app on a canned run. One app serves a file's tests: to start one takes longer than most of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import pytest_asyncio

from gputop.plan.types import PlanRequest
from gputop.tui.app import GputopApp
from gputop.tui.options import Options
from gputop.tui.state import State
from gputop.tui.widgets.keyed_table import KeyedTable
from tests.tui.fake.client import ReplayedClient
from tests.tui.fake.records import WORKLOAD
from tests.tui.screen import Driver, until

UPDATE_S = 0.05
"""Less patience than a person has between two drawings."""
SIZE = (140, 45)
Running = Callable[..., AbstractAsyncContextManager[tuple[GputopApp, Driver, ReplayedClient]]]


@dataclass(frozen=True, slots=True)
class Shared:
    """An app that is on its main screen whenever no test has it."""

    app: GputopApp
    pilot: Driver
    client: ReplayedClient

    async def begin(self, size: tuple[int, int]) -> None:
        """Bring it back to its first window, at this size, as if it had just been started."""
        app, main = self.app, self.app._main
        while app.screen is not main:
            app.pop_screen()
        self.client.behave()
        if tuple(app.size) != size:
            await self.pilot.resize_terminal(*size)
        main._whole = ""
        if main.query_one("#log").display:
            main.open_or_close_log()
        fresh = State()
        app.state = replace(
            app.state,
            view_name=fresh.view_name,
            sort=fresh.sort,
            sorted_backwards=fresh.sorted_backwards,
            frozen=None,
            measuring=True,
        )
        app._draw()
        main.go_to("phases")
        for table in main.query(KeyedTable):
            table._wanted = None
            table.move_cursor(row=0)
        await self.pilot.pause()
        before = app.state.opened
        app._sampler.reopen(app._started_with)
        await until(self.pilot, lambda: app.state.opened is not before, "what is opened again")
        await first_window(app, self.pilot)


async def first_window(app: GputopApp, pilot: Driver) -> None:
    await until(pilot, lambda: app.state.lane is not None and not app.state.pending, "a window")
    await until(pilot, lambda: app.is_drawn, "its drawing")


def app_of(folder: Path, request: PlanRequest | None = None) -> tuple[GputopApp, ReplayedClient]:
    client = ReplayedClient(folder)
    return GputopApp(Options("cpu", WORKLOAD, request=request), client, update_s=UPDATE_S), client


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shared]:
    app, client = app_of(tmp_path_factory.mktemp("app"))
    async with app.run_test(size=SIZE) as pilot:
        yield Shared(app, pilot, client)


@pytest.fixture
def running(request: pytest.FixtureRequest, tmp_path: Path) -> Running:
    """`async with running(size=(140, 45)) as (app, pilot, client)`: the first window is on the screen.

    With a `plan` of its own, or with `own`, a test gets an app that no other test has.
    """

    @asynccontextmanager
    async def run(
        size: tuple[int, int] = SIZE, request: PlanRequest | None = None, own: bool = False
    ) -> AsyncIterator[tuple[GputopApp, Driver, ReplayedClient]]:
        if request is None and not own:
            await common.begin(size)
            yield common.app, common.pilot, common.client
            return
        app, client = app_of(tmp_path, request)
        async with app.run_test(size=size) as pilot:
            await first_window(app, pilot)
            yield app, pilot, client

    common: Shared = request.getfixturevalue("shared")
    return run
