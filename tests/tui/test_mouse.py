"""The same by mouse."""

from __future__ import annotations

from tests.tui.conftest import Running
from tests.tui.screen import cell, click_on, table, text_of, until, until_shown


async def test_one_click_flips_a_toggle(running: Running) -> None:
    async with running() as (app, pilot, client):
        await click_on(pilot, "prune  ")
        await until_shown(pilot, "prune=on is FASTER")
        assert cell(app, "toggles", "prune", "value") == "on"
        assert client.calls[-1] == "measure cpu-blas,prune=on cpu-blas"


async def test_one_click_chooses_a_rung(running: Running) -> None:
    async with running() as (_, pilot, client):
        await click_on(pilot, "cpu-fused")
        await until(pilot, lambda: client.calls[-1] == "measure cpu-fused cpu-blas", "the window")


async def test_a_refused_rung_says_why(running: Running) -> None:
    async with running(size=(140, 45)) as (app, pilot, _):
        await click_on(pilot, "torch-eager")
        await until_shown(pilot, "torch-eager can't run here: PyTorch is not installed here.")
        assert app.state.current is not None
        assert app.state.current.rung == "cpu-blas"


async def test_a_click_brings_dispatch_forward(running: Running) -> None:
    async with running() as (app, pilot, _):
        await click_on(pilot, "dispatch")
        await until(pilot, lambda: table(app, "dispatch").has_focus, "the dispatch table")
        table(app, "dispatch").move_cursor(row=0)
        await until(pilot, lambda: "embed   " in text_of(app), "the sites")
        await click_on(pilot, "gemm-blas")
        await until_shown(pilot, "Kernels for qkv")


async def test_keys_at_the_bottom_can_be_clicked_and_say_what_they_would_do(running: Running) -> None:
    async with running() as (app, pilot, _):
        await click_on(pilot, "space stop")
        await until_shown(pilot, "space go on")
        assert not app.state.measuring
