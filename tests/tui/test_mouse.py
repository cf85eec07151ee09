"""The same by mouse."""

from __future__ import annotations

from tests.tui.conftest import Running
from tests.tui.screen import cell, table, until, until_shown


async def test_one_click_flips_a_toggle(running: Running) -> None:
    async with running() as (app, pilot, client):
        await pilot.click("#toggles", offset=(3, 1))
        await until_shown(pilot, "prune=on is FASTER")
        assert cell(app, "toggles", "prune", "value") == "on"
        assert client.calls[-1] == "measure cpu-blas,prune=on cpu-blas"


async def test_one_click_chooses_a_rung(running: Running) -> None:
    async with running() as (_, pilot, client):
        await pilot.click("#ladder", offset=(6, 5))
        await until(pilot, lambda: client.calls[-1] == "measure cpu-fused cpu-blas", "the window")


async def test_a_refused_rung_says_why(running: Running) -> None:
    async with running(size=(140, 45)) as (app, pilot, _):
        await pilot.click("#ladder", offset=(6, 8))
        await until_shown(pilot, "torch-eager can't run here: PyTorch is not installed here.")
        assert app.state.current is not None
        assert app.state.current.rung == "cpu-blas"


async def test_a_click_brings_dispatch_forward(running: Running) -> None:
    async with running() as (app, pilot, _):
        await pilot.click("#turn", offset=(13, 0))
        await until(pilot, lambda: table(app, "dispatch").has_focus, "the dispatch table")
        await pilot.click("#dispatch", offset=(2, 2))
        await until_shown(pilot, "Kernels for qkv")
