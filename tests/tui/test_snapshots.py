"""Colours and layout as a whole, beside the plain asserts of the other files."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

import pytest
import textual
from textual.pilot import Pilot

from gputop.plan.types import KernelChoice, PlanRequest
from gputop.tui.app import GputopApp
from gputop.tui.options import Options
from tests.tui.fake.client import ReplayedClient
from tests.tui.fake.records import WORKLOAD, WRONG_KERNEL
from tests.tui.screen import Driver, until, until_shown

DRAWN_WITH = "8.2.8"

pytestmark = pytest.mark.skipif(
    textual.__version__ != DRAWN_WITH,
    reason=f"drawn with Textual {DRAWN_WITH}, here is {textual.__version__}: another version draws otherwise",
)

Steps = Callable[[Pilot[int]], Awaitable[None]]


class Compare(Protocol):
    """pytest-textual-snapshot's fixture."""

    def __call__(self, app: GputopApp, *, terminal_size: tuple[int, int], run_before: Steps) -> bool: ...


def canned(tmp_path: Path, request: PlanRequest | None = None) -> GputopApp:
    """The canned run under a clock that stands still."""
    options = Options("cpu", WORKLOAD, request=request)
    return GputopApp(options, ReplayedClient(tmp_path), clock=lambda: 0.0, update_s=0.02)


async def first_window(pilot: Driver) -> None:
    await until_shown(pilot, "13.4")
    app = pilot.app
    assert isinstance(app, GputopApp)
    await until(pilot, lambda: app.state.ceilings is not None and app.is_drawn, "the ceilings")
    await pilot.pause()


async def paired(pilot: Driver) -> None:
    await first_window(pilot)
    await pilot.press("g", "down", "enter")
    await until_shown(pilot, "FASTER")


async def failed(pilot: Driver) -> None:
    await until_shown(pilot, "gives a wrong answer")
    app = pilot.app
    assert isinstance(app, GputopApp)
    await until(pilot, lambda: not app.screen.query_one("#phases").display, "the table put aside")
    await until(pilot, lambda: app.is_drawn and app._sampler.is_idle, "nothing more to come")
    await pilot.pause()


def test_one_plan(snap_compare: Compare, tmp_path: Path) -> None:
    assert snap_compare(canned(tmp_path), terminal_size=(80, 24), run_before=first_window)


def test_two_plans_with_room(snap_compare: Compare, tmp_path: Path) -> None:
    assert snap_compare(canned(tmp_path), terminal_size=(140, 45), run_before=paired)


def test_a_failed_gate(snap_compare: Compare, tmp_path: Path) -> None:
    wrong = PlanRequest("cpu-blas", (), (("w1", KernelChoice(WRONG_KERNEL)),))
    assert snap_compare(canned(tmp_path, wrong), terminal_size=(100, 30), run_before=failed)
