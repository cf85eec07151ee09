"""Colours and layout as a whole, beside the plain asserts of the other files.

The views are drawn from a small recording of its own, five rungs of an H200, so that a new recording changes
none. One app draws all of its pictures.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest
import textual
from pytest_textual_snapshot import SVGImageExtension
from syrupy.assertion import SnapshotAssertion
from textual.pilot import Pilot

from gputop.model.workloads import parse_workload
from gputop.perf import kernel_facts
from gputop.tui.app import GputopApp
from gputop.tui.options import Options
from gputop.tui.state import VIEWS
from tests.tui.fake.client import ReplayedClient
from tests.tui.fake.records import WORKLOAD
from tests.tui.fake.replay_client import FixedForecasts
from tests.tui.screen import Driver, text_of, until, until_shown

DRAWN_WITH = "8.2.8"
SMALL = Path(__file__).parent / "data" / "small.jsonl"
EVERY_VIEW = ((80, 24), (140, 45))
MAIN_ONLY = ((100, 30), (200, 60))

pytestmark = pytest.mark.skipif(
    textual.__version__ != DRAWN_WITH,
    reason=f"drawn with Textual {DRAWN_WITH}, here is {textual.__version__}: another version draws otherwise",
)

Steps = Callable[[Pilot[int]], Awaitable[None]]


class Compare(Protocol):
    """pytest-textual-snapshot's fixture."""

    def __call__(self, app: GputopApp, *, terminal_size: tuple[int, int], run_before: Steps) -> bool: ...


@pytest.fixture(autouse=True)
def kernels_as_they_were(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is known of the recording's kernels stands still, as no kernel may change what a picture shows."""
    monkeypatch.setattr(kernel_facts, "FOLDER", SMALL.parent / "kernel_facts")
    kernel_facts.known_kernels.cache_clear()
    yield
    kernel_facts.known_kernels.cache_clear()


@pytest.fixture
def pictures(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """As `snap_compare`, for several pictures of one app."""
    return snapshot.use_extension(SVGImageExtension)


def app_on_recording(folder: Path, few_colors: bool = False) -> GputopApp:
    options = Options("replay", parse_workload("tiny"), device=str(SMALL))
    client = FixedForecasts(log_path=folder / "worker.log")
    return GputopApp(options, client, clock=lambda: 0.0, update_s=0.02, few_colors=few_colors)


async def settled(app: GputopApp, pilot: Driver) -> str:
    """Return the screen once nothing more is to come."""
    before = ""
    while True:
        await until(pilot, lambda: app.is_drawn and app._sampler.is_idle, "the last answer")
        if before == (now := text_of(app)):
            break
        before = now
        await pilot.pause()
    return app.export_screenshot(title="gputop")


async def ready(app: GputopApp, pilot: Driver) -> None:
    await until(pilot, lambda: bool(app.state.ladder and app.state.forecasts), "the whole recording")


def wanted() -> Iterator[tuple[tuple[int, int], str, str]]:
    """Yield size, key and name of each picture."""
    for size in EVERY_VIEW:
        for key, view in enumerate(VIEWS, 1):
            yield size, str(key), f"{view}-{size[0]}x{size[1]}"
    for size in MAIN_ONLY:
        yield size, "1", f"{VIEWS[0]}-{size[0]}x{size[1]}"


async def test_every_view_of_a_recording(pictures: SnapshotAssertion, tmp_path: Path) -> None:
    app = app_on_recording(tmp_path)
    differ = []
    async with app.run_test(size=EVERY_VIEW[0]) as pilot:
        await ready(app, pilot)
        for size, key, name in wanted():
            if tuple(app.size) != size:
                await pilot.resize_terminal(*size)
            await pilot.press(key)
            if await settled(app, pilot) != pictures(name=name):
                differ.append(name)
        await pilot.press("1", "T")
        if await settled(app, pilot) != pictures(name="light"):
            differ.append("light")
    assert differ == []


async def test_256_colours(pictures: SnapshotAssertion, tmp_path: Path) -> None:
    app = app_on_recording(tmp_path, few_colors=True)
    async with app.run_test(size=(140, 45)) as pilot:
        await ready(app, pilot)
        assert await settled(app, pilot) == pictures(name="256")


async def test_no_color(pictures: SnapshotAssertion, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = app_on_recording(tmp_path)
    async with app.run_test(size=(140, 45)) as pilot:
        await ready(app, pilot)
        assert await settled(app, pilot) == pictures(name="no-color")


def canned(tmp_path: Path) -> GputopApp:
    """The canned run under a clock that stands still."""
    return GputopApp(Options("cpu", WORKLOAD), ReplayedClient(tmp_path), clock=lambda: 0.0, update_s=0.02)


async def paired(pilot: Driver) -> None:
    app = pilot.app
    assert isinstance(app, GputopApp)
    await until_shown(pilot, "13.4")
    await until(pilot, lambda: app.state.ceilings is not None and app.is_drawn, "the ceilings")
    await pilot.press("g", "down", "enter")
    await until_shown(pilot, "FASTER")


def test_two_plans_measured_live(snap_compare: Compare, tmp_path: Path) -> None:
    assert snap_compare(canned(tmp_path), terminal_size=(140, 45), run_before=paired)
