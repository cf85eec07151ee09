"""The same by mouse."""

from __future__ import annotations

from tests.tui.conftest import Running
from tests.tui.screen import cell, click_on, table, until, until_shown


async def test_one_click_flips_a_toggle(running: Running) -> None:
    async with running() as (app, pilot, client):
        await click_on(pilot, "prune  ")
        await until_shown(pilot, "→ cpu-blas,prune=on:")
        assert cell(app, "toggles", "prune", "value") == "on"
        assert "measure cpu-blas,prune=on cpu-blas" in client.calls


async def test_one_click_chooses_a_rung(running: Running) -> None:
    async with running() as (_, pilot, client):
        await click_on(pilot, "cpu-fused")
        await until(pilot, lambda: "measure cpu-fused cpu-blas" in client.calls, "the window")


async def test_a_refused_rung_says_why(running: Running) -> None:
    async with running(size=(140, 45)) as (app, pilot, _):
        await click_on(pilot, "torch-eager")
        await until_shown(pilot, "torch-eager can't run here: PyTorch is not installed here.")
        assert app.state.current is not None
        assert app.state.current.rung == "cpu-blas"


async def test_a_click_on_a_site_opens_its_kernels(running: Running) -> None:
    async with running() as (_, pilot, _):
        await click_on(pilot, "gemm-blas")
        await until_shown(pilot, "Kernels for qkv")


async def test_a_click_on_a_phase_selects_it_and_opens_nothing(running: Running) -> None:
    async with running() as (app, pilot, _):
        table_ = table(app, "phases")
        row = list(table_._cells).index("attention")
        await pilot.click("#phases", offset=(2, row + 1))
        await until(pilot, lambda: app.state.site == "attention", "the selection")
        assert len(app.screen_stack) == 2
        await until_shown(pilot, "attention · attention-numpy")


async def test_a_click_on_a_heading_sorts(running: Running) -> None:
    async with running() as (app, pilot, _):
        assert next(iter(table(app, "phases")._cells)) == "w2"
        await pilot.click("#phases", offset=(1, 0))
        await until(pilot, lambda: next(iter(table(app, "phases")._cells)) == "embed", "the pass's order")


async def test_a_click_on_a_view_opens_it(running: Running) -> None:
    async with running() as (app, pilot, _):
        await click_on(pilot, "roofline")
        await until(pilot, lambda: app.state.view_name == "roofline", "the view")


async def test_keys_at_the_bottom_can_be_clicked_and_say_what_they_would_do(running: Running) -> None:
    async with running() as (app, pilot, _):
        await click_on(pilot, "space stop")
        await until_shown(pilot, "space go on")
        assert not app.state.measuring
