"""Every key of the main screen."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual.widgets import OptionList

from gputop.plan.choices import SiteView
from gputop.plan.types import PlanRequest
from gputop.tui.screens.help import HelpScreen
from gputop.tui.screens.kernels import KernelsScreen
from gputop.tui.screens.main import MainScreen
from gputop.tui.widgets.dispatch_table import explain_site
from gputop.tui.widgets.phase_table import unit_labels
from tests.tui.conftest import Running
from tests.tui.screen import cell, table, text_of, until, until_shown


async def test_opens_on_the_default_rung_with_a_whole_table(running: Running) -> None:
    async with running() as (app, _, _):
        shown = text_of(app)
        assert app.state.current == PlanRequest("cpu-blas")
        assert cell(app, "phases", "w2", "time_s") == "13.400"
        assert cell(app, "totals", "device", "time_s") == "42.310"
        assert cell(app, "ladder", "cpu-blas", "number") == "▶ 2"
        for words in (
            "AMD EPYC 9R14",
            "gpt2-small",
            "batch 1",
            "window 1",
            "power –",
            "PASS",
            "the next window pairs",
        ):
            assert words in shown


async def test_down_and_enter_choose_a_rung_and_pin_the_one_before(running: Running) -> None:
    async with running() as (app, pilot, client):
        await pilot.press("down", "enter")
        shown = await until_shown(pilot, "FASTER than cpu-blas: 1.71×")
        assert client.calls[-1] == "measure cpu-threads cpu-blas"
        assert cell(app, "ladder", "cpu-threads", "number") == "▶ 3"
        assert cell(app, "ladder", "cpu-blas", "number") == "◆ 2"
        assert cell(app, "phases", "w1", "delta_s") == "−4.650 ▲"
        assert "cpu-threads: The same products on every core." in shown


async def test_differences_between_batches_are_labelled_as_a_sequences(running: Running) -> None:
    """They stand beside times of a pass, from which they could not be."""
    async with running() as (app, pilot, _):
        await pilot.press("down", "enter")
        await until_shown(pilot, "FASTER")
        assert unit_labels(app.state)["delta_s"] == "Δ ms"
        shot = app.state.shot
        assert shot is not None
        lanes = tuple(
            replace(lane, rows=tuple(replace(row, batch=4) for row in lane.rows))
            if lane.role == "current"
            else lane
            for lane in shot.window.lanes
        )
        state = replace(app.state, latest=replace(shot, window=replace(shot.window, lanes=lanes)))
        assert unit_labels(state)["delta_s"] == "Δ/seq ms"


async def test_between_a_choice_and_its_window_the_old_rows_are_marked(running: Running) -> None:
    async with running() as (_app, pilot, client):
        client.hold()
        await pilot.press("down", "enter")
        shown = " ".join((await until_shown(pilot, "… Next window")).split())
        assert "The rows are of cpu-blas, window 1." in shown
        assert "… Next window: cpu-threads against cpu-blas" in shown
        client.release()
        await until_shown(pilot, "FASTER")


async def test_tab_goes_round_the_panes_and_brings_hidden_ones_forward(running: Running) -> None:
    async with running() as (app, pilot, _):
        seen = []
        for _ in range(4):
            assert app.focused is not None
            seen.append(app.focused.id)
            await pilot.press("tab")
        assert seen == ["ladder", "phases", "toggles", "dispatch"]
        await pilot.press("shift+tab")
        assert table(app, "dispatch").has_focus
        assert table(app, "dispatch").region.height > 0


async def test_enter_flips_a_toggle(running: Running) -> None:
    async with running() as (app, pilot, client):
        await pilot.press("t", "enter")
        await until_shown(pilot, "FASTER")
        assert client.calls[-1] == "measure cpu-blas,threads=all cpu-blas"
        assert cell(app, "toggles", "threads", "value") == "all"
        assert cell(app, "ladder", "+cpu-blas,threads=all", "rung") == "└ threads=all"


async def test_a_toggle_that_cannot_flip_says_why(running: Running) -> None:
    async with running() as (app, pilot, _client):
        await pilot.press("t", "down", "down", "down")
        await until_shown(pilot, "layout: How weights are stored. transposed is refused: there is one copy")
        await pilot.press("enter")
        await until(pilot, lambda: bool(app._notifications), "a notification")
        assert app.state.current == PlanRequest("cpu-blas")


async def test_a_number_is_asked_for_and_a_wrong_one_kept_to_be_mended(running: Running) -> None:
    async with running() as (_app, pilot, client):
        await pilot.press("t", "end", "enter")
        await until_shown(pilot, "batch: how many?")
        await pilot.press("end", "x", "enter")
        await until_shown(pilot, "A whole number from 1 up is needed.")
        await pilot.press("backspace", "6", "enter")
        await until(pilot, lambda: client.calls[-1] == "measure cpu-blas,batch=16 cpu-blas", "the window")


async def test_the_worker_refuses_and_the_plan_goes_back(running: Running) -> None:
    async with running() as (app, pilot, _):
        await pilot.press("t", "end", "enter")
        await until_shown(pilot, "batch: how many?")
        await pilot.press("home", "delete", "9", "9", "9", "enter")
        await until_shown(pilot, "A batch of 999 needs 340 GB")
        assert (app.state.current, app.state.pinned) == (PlanRequest("cpu-blas"), None)
        await pilot.press("escape")
        await until(pilot, lambda: not app.screen.query_one("#trouble").display, "the message put away")


async def test_enter_on_a_dispatch_entry_opens_its_kernels(running: Running) -> None:
    async with running() as (app, pilot, client):
        await pilot.press("d", "down", "down", "enter")
        shown = await until_shown(pilot, "Kernels for qkv")
        assert "× gemm-wide: needs 64 columns, this has 16" in shown
        options = app.screen.query_one(OptionList)
        assert [options.get_option_at_index(i).disabled for i in range(4)] == [False, False, False, True]
        await pilot.press("down", "enter")
        await until(
            pilot, lambda: client.calls[-1] == "measure cpu-blas,qkv:gemm-loops cpu-blas", "the window"
        )


async def test_a_second_choice_before_the_dialog_is_up_opens_no_other(running: Running) -> None:
    async with running() as (app, pilot, _):
        main = app.screen
        for site in ("qkv", "attention"):
            main.post_message(MainScreen.Chosen("dispatch", site))
        await until_shown(pilot, "Kernels for qkv")
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is main, "no dialog")


async def test_a_site_with_one_kernel_promises_no_reasons(running: Running) -> None:
    async with running() as (app, _, _):
        view, current = app.state.view, app.state.current
        assert view is not None
        assert current is not None
        alone = SiteView("embed", "gather", ("gather",))
        state = replace(app.state, views={current: replace(view, sites=(alone,))})
        assert explain_site(state, "embed") == "embed: gather is the only kernel there is for it here."
        refusing = replace(alone, refused=(("mega", "it needs a GPU"),))
        state = replace(app.state, views={current: replace(view, sites=(refusing,))})
        assert explain_site(state, "embed").endswith("enter shows why.")


async def test_a_kernel_of_the_whole_pass_is_refused_without_naming_another_site(running: Running) -> None:
    async with running() as (app, pilot, _):
        reason = "mega can't serve embed: it reads transposed weights only."
        app.push_screen(KernelsScreen(SiteView("w1", "plain", ("plain", "mega"), (("mega", reason),))))
        await until_shown(pilot, "× mega: it reads transposed weights only.")


async def test_ctrl_c_names_the_key_that_the_footer_names(running: Running) -> None:
    async with running() as (app, pilot, _):
        await pilot.press("ctrl+c")
        await until(pilot, lambda: any("q leaves gputop" in n.message for n in app._notifications), "the key")


async def test_enter_on_a_phase_opens_the_same_kernels(running: Running) -> None:
    async with running() as (app, pilot, _):
        await pilot.press("tab", "down", "down", "enter")
        await until(pilot, lambda: isinstance(app.screen, KernelsScreen), "the kernels")
        await until_shown(pilot, "Kernels for qkv")
        await pilot.press("escape")
        assert app.state.current == PlanRequest("cpu-blas")


async def test_a_highlighted_phase_is_explained(running: Running) -> None:
    async with running() as (_, pilot, _):
        await pilot.press("tab", "down", "down")
        await until_shown(
            pilot, "qkv (gemm-blas): 8.100 ms; floor 6.600 by compute; binds compute, then launch"
        )


async def test_p_pins_and_unpins(running: Running) -> None:
    async with running() as (app, pilot, _):
        await pilot.press("p")
        await until(pilot, lambda: cell(app, "ladder", "cpu-blas", "number") == "◈ 2", "the mark")
        await until_shown(pilot, "cpu-blas is pinned: choose another rung")
        await pilot.press("p")
        await until(pilot, lambda: cell(app, "ladder", "cpu-blas", "number") == "▶ 2", "the mark")
        assert app.state.pinned is None


async def test_space_stops_and_goes_on(running: Running) -> None:
    async with running() as (_app, pilot, client):
        await pilot.press("space")
        await until_shown(pilot, "■ stopped")
        await until(pilot, lambda: client.waiting == 0, "the window to close")
        windows = client.windows
        client.release()
        await pilot.pause(0.1)
        assert client.windows == windows
        await pilot.press("space")
        await until_shown(pilot, "● measuring")
        await until(pilot, lambda: client.waiting == 1, "the next window")


async def test_f_holds_the_view_while_measuring_goes_on(running: Running) -> None:
    async with running() as (app, pilot, client):
        await pilot.press("f")
        await until_shown(pilot, "FROZEN at window 1")
        client.release()
        shown = await until_shown(pilot, "newest is window 2")
        assert "window 1, " in shown.splitlines()[0]
        await pilot.press("f")
        await until(pilot, lambda: "FROZEN" not in text_of(app), "the live view")
        assert "window 2" in text_of(app).splitlines()[0]


async def test_l_opens_and_closes_the_log(running: Running) -> None:
    async with running() as (app, pilot, _):
        await pilot.press("l")
        await until_shown(pilot, "worker started")
        await pilot.press("l")
        await until(pilot, lambda: "worker started" not in text_of(app), "the log closed")


async def test_question_mark_shows_every_key_and_closes(running: Running) -> None:
    async with running(size=(120, 60)) as (app, pilot, _):
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen), "the help")
        shown = await until_shown(pilot, "Write the phase table as CSV")
        assert "▶ current plan, ◆ pinned" in shown
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, MainScreen), "the main screen")


async def test_the_palette_has_the_actions(running: Running) -> None:
    async with running() as (_app, pilot, _):
        await pilot.press("ctrl+p")
        await until_shown(pilot, "freeze")
        await pilot.press(*"freeze")
        await until_shown(pilot, "Hold the window on the screen")
        await pilot.press("down", "enter")
        await until_shown(pilot, "FROZEN")


async def test_q_quits_and_the_sampler_is_gone(running: Running) -> None:
    async with running() as (app, pilot, _):
        await pilot.press("q")
        await until(pilot, lambda: not app.is_running, "the end")
    assert not app._sampler.is_alive()


async def test_a_window_changes_only_the_cells_that_differ(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running() as (app, pilot, client):
        phases = table(app, "phases")
        touched: list[str] = []
        monkeypatch.setattr(phases, "update_cell", lambda row, column, _: touched.append(f"{row} {column}"))
        monkeypatch.setattr(phases, "clear", lambda columns=False: touched.append("all"))
        client.release()
        await until(pilot, lambda: "window 2" in text_of(app), "the next window")
        assert touched == []
        await pilot.press("down", "enter")
        await until_shown(pilot, "FASTER")
        assert "w2 time_s" in touched
        assert "w2 phase" in touched
        assert "w2 count" not in touched
        assert "all" not in touched
