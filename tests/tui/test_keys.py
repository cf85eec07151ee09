"""Every key of the main screen."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual.widgets import Input, OptionList

from gputop.plan.choices import Candidate, SiteChoices
from gputop.plan.types import KernelChoice, PlanRequest
from gputop.tui.screens.help import HelpScreen
from gputop.tui.screens.kernels import KernelsScreen
from gputop.tui.screens.main import MainScreen
from gputop.tui.widgets.dispatch_table import explain_site
from gputop.tui.widgets.phase_table import labels
from tests.tui.conftest import Running
from tests.tui.screen import cell, table, text_of, until, until_shown


async def test_opens_on_the_default_rung_with_a_whole_table(running: Running) -> None:
    async with running() as (app, _, _):
        shown = text_of(app)
        assert app.state.current == PlanRequest("cpu-blas")
        assert cell(app, "phases", "w2", "time_s") == "13.400"
        assert "device 42.310 = phases 42.230 + gaps 0.060 + 0.020 residual" in shown
        assert cell(app, "ladder", "cpu-blas", "mark") == "▸"
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
        await pilot.press("g", "down", "enter")
        shown = await until_shown(pilot, "cpu-blas → cpu-threads: 1.71×")
        assert "measure cpu-threads cpu-blas" in client.calls
        assert cell(app, "ladder", "cpu-threads", "mark") == "▸"
        assert cell(app, "ladder", "cpu-blas", "mark") == "◆"
        assert cell(app, "phases", "w1", "delta_s") == "−4.650 ▲"
        assert "3 cpu-threads: The same products on every core." in shown


async def test_differences_between_batches_are_labelled_as_a_sequences(running: Running) -> None:
    """They stand beside times of a pass, from which they could not be."""
    async with running() as (app, pilot, _):
        await pilot.press("g", "down", "enter")
        await until_shown(pilot, "FASTER")
        assert labels(app.state, {})["delta_s"] == "Δ ms"
        shot = app.state.shot
        assert shot is not None
        lanes = tuple(
            replace(lane, rows=tuple(replace(row, batch=4) for row in lane.rows))
            if lane.role == "current"
            else lane
            for lane in shot.window.lanes
        )
        state = replace(app.state, latest=replace(shot, window=replace(shot.window, lanes=lanes)))
        assert labels(state, {})["delta_s"] == "Δ/seq ms"


async def test_between_a_choice_and_its_window_the_old_rows_are_marked(running: Running) -> None:
    async with running() as (_app, pilot, client):
        client.hold()
        await pilot.press("g", "down", "enter")
        shown = " ".join((await until_shown(pilot, "… Next window")).split())
        assert "The rows are of cpu-blas, window 1." in shown
        assert "… Next window: cpu-threads against cpu-blas" in shown
        client.release()
        await until_shown(pilot, "FASTER")


async def test_tab_goes_round_the_panes_and_brings_hidden_ones_forward(running: Running) -> None:
    async with running(size=(80, 24)) as (app, pilot, _):
        seen = []
        for _ in range(4):
            assert app.focused is not None
            seen.append(app.focused.id)
            await pilot.press("tab")
        assert seen == ["phases", "toggles", "dispatch", "ladder"]
        await pilot.press("shift+tab")
        assert table(app, "ladder").has_focus
        assert table(app, "ladder").region.height > 0


async def test_enter_flips_a_toggle(running: Running) -> None:
    async with running() as (app, pilot, client):
        await pilot.press("t", "enter")
        await until_shown(pilot, "FASTER")
        assert "measure cpu-blas,threads=all cpu-blas" in client.calls
        assert cell(app, "toggles", "threads", "value") == "all"
        assert cell(app, "ladder", "+cpu-blas,threads=all", "rung") == "└ threads=all"


async def test_a_toggle_that_cannot_flip_says_why(running: Running) -> None:
    async with running() as (app, pilot, _client):
        await pilot.press("t", "end")
        await until_shown(pilot, "layout: How weights are stored. transposed is refused: there is one copy")
        await pilot.press("enter")
        await until_shown(pilot, "! layout stays row. transposed: there is one copy")
        assert app.state.current == PlanRequest("cpu-blas")


async def test_a_number_is_asked_for_and_a_wrong_one_kept_to_be_mended(running: Running) -> None:
    async with running() as (_app, pilot, client):
        await pilot.press("t", "end", "up", "enter")
        await until_shown(pilot, "batch: how many?")
        await pilot.press("end", "x", "enter")
        await until_shown(pilot, "A whole number from 1 up is needed.")
        await pilot.press("backspace", "6", "enter")
        await until(pilot, lambda: "measure cpu-blas,batch=16 cpu-blas" in client.calls, "the window")


async def test_the_worker_refuses_and_the_plan_goes_back(running: Running) -> None:
    async with running() as (app, pilot, _):
        await pilot.press("t", "end", "up", "enter")
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
        assert "× needs 64 columns, this has 16: gemm-wide" in shown
        options = app.screen.query_one(OptionList)
        assert [options.get_option_at_index(i).disabled for i in range(4)] == [False, False, False, True]
        await pilot.press("g", "down", "enter")
        await until(pilot, lambda: "measure cpu-blas,qkv:gemm-loops cpu-blas" in client.calls, "the window")


async def test_a_second_choice_before_the_dialog_is_up_opens_no_other(running: Running) -> None:
    async with running() as (app, pilot, _):
        main = app.screen
        for site in ("qkv", "attention"):
            main.post_message(MainScreen.Chosen("dispatch", site))
        await until_shown(pilot, "Kernels for qkv")
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is main, "no dialog")


async def test_a_site_without_another_kernel_says_so(running: Running) -> None:
    async with running() as (app, _, _):
        assert "no other kernel" in explain_site(app.state, "embed")
        assert "the 3 kernels" in explain_site(app.state, "w1")


async def test_a_kernel_of_the_whole_pass_is_refused_without_naming_another_site(running: Running) -> None:
    async with running() as (app, pilot, _):
        plain = Candidate(KernelChoice("plain"), PlanRequest("cpu-blas"))
        refused = tuple(
            (name, f"{name}{part} can't serve embed: it reads transposed weights only.")
            for name, part in (("mega", ""), ("split", "/4"))
        )
        app.push_screen(KernelsScreen(SiteChoices("w1", plain.choice, (plain,), refused)))
        await until_shown(pilot, "× it reads transposed weights only: mega, split")


async def test_ctrl_c_names_the_key_that_the_footer_names(running: Running) -> None:
    async with running() as (_, pilot, _):
        await pilot.press("ctrl+c")
        await until_shown(pilot, "! q leaves gputop")


async def test_enter_on_a_phase_inspects_it_and_k_opens_its_kernels(running: Running) -> None:
    async with running() as (app, pilot, _):
        await pilot.press("down", "enter")
        await until_shown(pilot, "attention · attention-numpy")
        assert app.state.view_name == "inspect"
        await pilot.press("right", "k")
        await until(pilot, lambda: isinstance(app.screen, KernelsScreen), "the kernels")
        await until_shown(pilot, "Kernels for w1")
        await pilot.press("escape", "escape")
        await until(pilot, lambda: app.state.view_name == "phases", "the phases")
        assert app.state.current == PlanRequest("cpu-blas")


@pytest.mark.parametrize("size", [(80, 24), (140, 45)])
async def test_every_view_has_a_key_and_shows_the_selected_phase(
    running: Running, size: tuple[int, int]
) -> None:
    async with running(size=size) as (app, pilot, _):
        await until(pilot, lambda: app.state.ceilings is not None, "the ceilings")
        await pilot.press("down")
        expected = {
            "2": "attention",
            "3": "No ladder was measured here yet",
            "4": "attention · attention-numpy",
            "5": "attention: its launch is not known here",
            "6": "This window has one plan",
            "1": "excess ▾",
        }
        for key, words in expected.items():
            await pilot.press(key)
            await until_shown(pilot, words)
        assert app.state.site == "attention"


async def test_the_cursor_stays_on_the_toggle_through_a_flip_and_a_second_enter_undoes_it(
    running: Running,
) -> None:
    async with running() as (app, pilot, client):
        await pilot.press("t", "down", "down", "enter")
        await until_shown(pilot, "cpu-blas → cpu-blas,fold=on: 1.00×")
        assert table(app, "toggles").highlighted_key == "fold"
        await pilot.press("enter")
        await until(
            pilot, lambda: app.state.current_word == "cpu-blas" and not app.state.pending, "the flip back"
        )
        assert table(app, "toggles").highlighted_key == "fold"
        assert [call for call in client.calls if "prune" in call or "layout" in call] == []


async def test_the_cursor_stays_on_the_site_through_a_choice_of_kernel(running: Running) -> None:
    async with running() as (app, pilot, _):
        await pilot.press("d", *["down"] * 7, "enter")
        await until_shown(pilot, "Kernels for w2")
        await pilot.press("down", "enter")
        await until(pilot, lambda: "w2:gemm-loops" in (app.state.current_word or ""), "the plan")
        await until(pilot, lambda: not app.state.pending, "its window")
        assert table(app, "dispatch").highlighted_key == "w2"


async def test_s_sorts_and_the_cursor_stays_on_its_phase(running: Running) -> None:
    async with running() as (app, pilot, _):
        phases = table(app, "phases")
        await pilot.press("down")
        assert phases.highlighted_key == "attention"
        await pilot.press("s")
        await until(pilot, lambda: list(phases._cells)[:3] == ["w2", "w1", "qkv"], "by time")
        assert phases.highlighted_key == "attention"
        await pilot.press("s", "s", "s")
        await until(pilot, lambda: next(iter(phases._cells)) == "embed", "in the order of the pass")


async def test_z_gives_a_pane_the_whole_screen_and_back(running: Running) -> None:
    async with running() as (app, pilot, _):
        await pilot.press("z")
        await until(pilot, lambda: not app.screen.query_one("#left").display, "the phases alone")
        await pilot.press("escape")
        await until(pilot, lambda: app.screen.query_one("#left").display, "all panes")


async def test_arrows_walk_the_rungs(running: Running) -> None:
    async with running(size=(80, 24)) as (app, pilot, _):
        await until_shown(pilot, "▸cpu-blas")
        await pilot.press("right")
        await until_shown(pilot, "▸cpu-threads")
        assert app.state.current == PlanRequest("cpu-threads")


async def test_a_highlighted_phase_is_explained(running: Running) -> None:
    async with running() as (_, pilot, _):
        await pilot.press("end", "home")
        await until_shown(pilot, "w2: 24 samples by perf_counter")


async def test_p_pins_and_unpins(running: Running) -> None:
    async with running() as (app, pilot, _):
        await pilot.press("p")
        await until(pilot, lambda: cell(app, "ladder", "cpu-blas", "mark") == "◈", "the mark")
        await until_shown(pilot, "cpu-blas is pinned: choose another rung")
        await pilot.press("p")
        await until(pilot, lambda: cell(app, "ladder", "cpu-blas", "mark") == "▸", "the mark")
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
        assert "window 1" in shown.splitlines()[0]
        await pilot.press("f")
        await until(pilot, lambda: "FROZEN" not in text_of(app), "the live view")
        assert "window 2" in text_of(app).splitlines()[0]


async def test_w_opens_and_closes_the_workers_log(running: Running) -> None:
    async with running() as (app, pilot, _):
        await pilot.press("w")
        await until_shown(pilot, "worker started")
        await pilot.press("w")
        await until(pilot, lambda: "worker started" not in text_of(app), "the log closed")


async def test_question_mark_shows_every_key_and_closes(running: Running) -> None:
    async with running(size=(120, 60)) as (app, pilot, _):
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen), "the help")
        shown = await until_shown(pilot, "Write the phases (CSV, JSON)")
        assert "Give the pane with the keys the whole screen" in shown
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, MainScreen), "the main screen")


async def test_the_palette_has_the_actions(running: Running) -> None:
    async with running() as (app, pilot, _):
        await pilot.press("ctrl+p")
        await until(pilot, lambda: len(app.screen_stack) == 3, "the palette")
        await pilot.press(*"freeze")
        await until_shown(pilot, "Hold the window on the screen")
        await pilot.press("down", "enter")
        await until_shown(pilot, "FROZEN")


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("rung cpu-threads", "cpu-blas → cpu-threads:"),
        ("phase attention", "attention · attention-numpy"),
        ("toggle prune=on", "cpu-blas → cpu-blas,prune=on:"),
        ("kernel gemm-loops at w1", "Kernels for w1"),
        ("word split-K", "! split-K: The inner axis"),
        ("column time_mad_s", "! time_mad_s: Median absolute deviation"),
    ],
)
async def test_slash_finds_things_and_goes_to_them(running: Running, typed: str, shown: str) -> None:
    async with running() as (app, pilot, _):
        await pilot.press("slash")
        await until(pilot, lambda: len(app.screen_stack) == 3, "the search")
        app.screen.query_one(Input).value = typed
        hits = app.screen.query_one(OptionList)
        await until(pilot, lambda: hits.option_count > 0 and first_hit(hits).startswith(typed), "the hit")
        await pilot.press("enter")
        await until_shown(pilot, shown)


async def test_a_kernel_that_is_found_is_where_the_cursor_is(running: Running) -> None:
    async with running() as (app, pilot, _):
        app._open_kernels("w1", "gemm-loops")
        await until_shown(pilot, "Kernels for w1")
        await pilot.press("enter")
        await until_shown(pilot, "cpu-blas → cpu-blas,w1:gemm-loops:")


def first_hit(hits: OptionList) -> str:
    return str(hits.get_option_at_index(0).prompt)


async def test_help_opens_at_the_focused_pane(running: Running) -> None:
    async with running(size=(120, 60)) as (_, pilot, _):
        await pilot.press("t", "question_mark")
        shown = await until_shown(pilot, "A field of the plan; enter or a click flips it")
        assert shown.index("Toggles") < shown.index("Keys")
        await pilot.press("escape", "2", "question_mark")
        await until_shown(pilot, "Keys of this view: roofline")


async def test_q_quits_and_the_sampler_is_gone(running: Running) -> None:
    async with running(own=True) as (app, pilot, _):
        await pilot.press("q")
        await until(pilot, lambda: not app.is_running, "the end")
    assert not app._sampler.is_alive()


async def test_a_window_changes_only_the_cells_that_differ(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running() as (app, pilot, client):
        await pilot.press("g", "down", "enter")
        await until_shown(pilot, "FASTER")
        phases = table(app, "phases")
        touched: list[str] = []
        monkeypatch.setattr(phases, "update_cell", lambda row, column, _: touched.append(f"{row} {column}"))
        monkeypatch.setattr(phases, "clear", lambda columns=False: touched.append("all"))
        number = client.windows
        client.release()
        await until(pilot, lambda: f"window {number + 1}" in text_of(app), "the next window")
        assert touched == []
        await pilot.press("down", "enter")
        await until_shown(pilot, "→ cpu-fused:")
        assert "w2 time_s" in touched
        assert "w2 phase" in touched
        assert "w2 count" not in touched
        assert "all" not in touched
