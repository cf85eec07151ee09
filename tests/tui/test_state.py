"""The screen's state, without a screen."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from gputop.ipc.protocol import Opened
from gputop.plan.choices import ToggleView
from gputop.plan.types import KernelChoice, PlanRequest, Verdict
from gputop.results.phase_facts import phases_of
from gputop.tui import facts, state_events, state_keys
from gputop.tui.options import Options
from gputop.tui.state import PairedRatio, PlanPair, State, TimedWindow
from gputop.tui.steps import best_step
from gputop.tui.widgets.advice_line import advice_line
from gputop.tui.widgets.ladder_table import FOLDED, explain_rung, ladder_rows
from gputop.tui.widgets.phase_table import COLUMNS, labels
from gputop.tui.widgets.toggle_table import toggle_rows
from gputop.tui.widgets.verdict_line import verdict_line
from gputop.tui.widgets.warnings import warnings
from tests.tui.fake.records import DEVICE, RUNGS, WORKLOAD, WRONG_KERNEL, view_of, window_of

BLAS, THREADS, LOOPS = PlanRequest("cpu-blas"), PlanRequest("cpu-threads"), PlanRequest("cpu-loops")
TRANSPOSED = PlanRequest("cpu-transposed")
WIDTHS = {"bar": 8, "rung": 20}
OPTIONS = Options("cpu", WORKLOAD)


def opened() -> Opened:
    return Opened(id=1, device=DEVICE, workload=WORKLOAD, rungs=RUNGS, default_rung="cpu-blas")


def started() -> State:
    state = state_events.device_ready(State(), opened(), OPTIONS)
    return measured(resolved(state))


def resolved(state: State) -> State:
    assert state.current is not None
    return state_events.plan_ready(state, state.current, view_of(state.current))


def measured(state: State) -> State:
    pair = state.pair
    assert pair is not None
    number = state.latest.window.number + 1 if state.latest else 1
    return state_events.window_ready(
        state, TimedWindow(pair, window_of(number, pair.current, pair.pinned), 0.0)
    )


@pytest.mark.parametrize(
    ("wished", "batch", "current"),
    [
        (None, None, PlanRequest("cpu-blas")),
        (None, 4, PlanRequest("cpu-blas", (("batch", "4"),))),
        (PlanRequest("", (("prune", "on"),)), None, PlanRequest("cpu-blas", (("prune", "on"),))),
        (PlanRequest("cpu-loops"), None, LOOPS),
    ],
)
def test_opens_on_what_was_asked_for(
    wished: PlanRequest | None, batch: int | None, current: PlanRequest
) -> None:
    options = replace(OPTIONS, request=wished, batch=batch)
    assert state_events.device_ready(State(), opened(), options).current == current


def test_a_restarted_worker_does_not_change_the_plan() -> None:
    state = state_keys.choose_rung(started(), "cpu-threads")
    assert state_events.device_ready(state, opened(), replace(OPTIONS, request=LOOPS)).current == THREADS


def test_what_was_passed_over_is_said_at_the_opening_and_not_after_a_restart() -> None:
    told = msgspec.structs.replace(opened(), note="A GPU is here and is not used: add it.")
    state = state_events.device_ready(State(), told, OPTIONS)
    assert state.trouble == told.note
    put_away = replace(state, trouble="")
    assert state_events.device_ready(put_away, told, OPTIONS).trouble == ""


def test_a_change_pins_the_plan_before_it() -> None:
    state = state_keys.choose_rung(started(), "cpu-threads")
    assert state.pair == PlanPair(THREADS, BLAS)


def test_a_rung_is_paired_with_the_rung_that_it_changes() -> None:
    state = state_keys.choose_rung(
        resolved(state_keys.choose_rung(started(), "cpu-threads")), "cpu-transposed"
    )
    assert state.pair == PlanPair(TRANSPOSED, LOOPS), "what did this step buy, read forwards"


def test_a_pin_of_the_users_own_stays() -> None:
    state = state_keys.pin_or_unpin(started())
    state = state_keys.choose_rung(resolved(state_keys.choose_rung(state, "cpu-threads")), "cpu-transposed")
    assert state.pair == PlanPair(TRANSPOSED, BLAS)


def test_a_second_flip_keeps_the_pin_of_the_first() -> None:
    state = state_keys.with_toggle(resolved(state_keys.with_toggle(started(), "prune", "on")), "fold", "on")
    assert state.pinned == BLAS


def test_a_plan_is_not_paired_with_itself() -> None:
    state = resolved(state_keys.pin_or_unpin(started()))
    assert state_keys.choose_rung(
        resolved(state_keys.choose_rung(state, "cpu-threads")), "cpu-blas"
    ).pair == PlanPair(BLAS, None)


def test_toggles_stay_in_place_while_the_worker_resolves_the_flip() -> None:
    before = started()
    flipped = state_keys.with_toggle(before, "prune", "on")
    assert flipped.view is None
    assert flipped.shown_view == before.view
    assert list(toggle_rows(flipped)) == list(toggle_rows(before))


def test_every_plan_that_was_tried_stays_on_the_ladder() -> None:
    state = measured(resolved(state_keys.with_toggle(started(), "prune", "on")))
    state = measured(resolved(state_keys.with_toggle(state, "fold", "on")))
    state = measured(resolved(state_keys.choose_rung(state, "cpu-threads")))
    assert {"+cpu-blas,prune=on", "+cpu-blas,prune=on,fold=on"} <= set(ladder_rows(state, WIDTHS))


def test_flipping_there_and_back_asks_for_the_same_plan() -> None:
    there = resolved(state_keys.with_toggle(started(), "prune", "on"))
    back = resolved(state_keys.with_toggle(there, "prune", "off"))
    assert back.current_word == "cpu-blas"
    assert back.pair is not None
    assert back.pair.pinned is None


def test_many_rungs_that_can_not_run_share_one_row_and_a_tried_plan_of_theirs_keeps_its_own() -> None:
    refused = tuple(replace(rung, id=f"far-{n}", refused="needs a GPU") for n, rung in enumerate(RUNGS * 4))
    state = started()
    assert state.opened is not None
    state = replace(state, opened=msgspec.structs.replace(state.opened, rungs=(*RUNGS, *refused)))
    rows = ladder_rows(state, WIDTHS)
    count = sum(1 for rung in state.rungs if rung.refused)
    assert str(rows[FOLDED]["rung"]) == f"{count} not here"
    assert not {rung.id for rung in refused} & set(rows)
    assert {rung.id for rung in refused} <= set(ladder_rows(state, WIDTHS, unfolded=True))
    assert refused[0].id in explain_rung(state, FOLDED)
    tried = replace(state, current=PlanRequest("far-1", (("math", "fp32"),)))
    assert str(ladder_rows(tried, WIDTHS)["+far-1,math=fp32"]["rung"]).startswith("far-1")


def test_a_refused_change_is_undone_with_its_pin() -> None:
    before = started()
    state = state_keys.with_toggle(before, "batch", "999")
    assert state.pinned == BLAS
    assert state.current is not None
    state = state_events.plan_refused(state, state.current)
    assert (state.current, state.pinned) == (before.current, before.pinned)


def test_two_quick_changes_are_undone_together() -> None:
    state = state_keys.choose_rung(state_keys.choose_rung(started(), "cpu-threads"), "cpu-loops")
    assert state_events.plan_refused(state, LOOPS).current == BLAS


def test_a_refused_first_plan_falls_back_to_the_default_rung() -> None:
    wish = PlanRequest("cpu-blass")
    state = state_events.device_ready(State(), opened(), replace(OPTIONS, request=wish))
    assert state_events.plan_refused(state, wish).current == BLAS


def test_choosing_a_rung_keeps_the_batch_and_drops_the_rest() -> None:
    state = state_keys.with_toggle(started(), "batch", "4")
    state = resolved(state_keys.with_toggle(resolved(state), "prune", "on"))
    assert state_keys.choose_rung(state, "cpu-threads").current == PlanRequest(
        "cpu-threads", (("batch", "4"),)
    )


def test_pin_moves_and_lets_go() -> None:
    state = resolved(state_keys.choose_rung(started(), "cpu-threads"))
    state = state_keys.pin_or_unpin(state)
    assert state.pinned == THREADS
    assert state_keys.pin_or_unpin(state).pinned is None


def test_ratio_only_from_a_window_where_both_ran() -> None:
    state = measured(resolved(state_keys.choose_rung(started(), "cpu-threads")))
    rows = ladder_rows(state, WIDTHS)
    assert str(rows["cpu-threads"]["ratio"]) == "▲ 1.71×"
    assert str(rows["cpu-blas"]["ratio"]) == ""
    other = state_keys.pin_or_unpin(state)
    assert str(ladder_rows(other, WIDTHS)["cpu-blas"]["ratio"]) == ""


@pytest.mark.parametrize(
    ("verdict", "ratio", "shown"),
    [
        ("FASTER", 1.714, "▲ 1.71×"),
        ("SLOWER", 0.5833, "▼ 0.583×"),
        ("SAME", 1.0012, "= 1.00×"),
        ("UNRESOLVED", 1.043, "? 1.04×"),
        ("UNRESOLVED", 0.9333, "? 0.933×"),
        ("UNRESOLVED", 0.01234, "? 0.012×"),
    ],
)
def test_a_verdict_that_the_ratio_does_not_tell_is_marked_beside_it(
    verdict: Verdict, ratio: float, shown: str
) -> None:
    state = measured(resolved(state_keys.choose_rung(started(), "cpu-threads")))
    seen = replace(state.seen["cpu-threads"], paired={"cpu-blas": PairedRatio(ratio, verdict)})
    state = replace(state, seen={**state.seen, "cpu-threads": seen})
    assert str(ladder_rows(state, WIDTHS)["cpu-threads"]["ratio"]) == shown


def test_a_plan_is_not_paired_with_itself_under_another_name() -> None:
    """As where a flip leads to a rung that was pinned."""
    pinned = state_keys.pin_or_unpin(resolved(state_keys.choose_rung(started(), "cpu-threads")))
    flipped = resolved(state_keys.with_toggle(state_keys.choose_rung(pinned, "cpu-blas"), "threads", "all"))
    assert flipped.current_word == "cpu-blas,threads=all"
    assert flipped.is_pinned
    assert flipped.pair == PlanPair(PlanRequest("cpu-blas", (("threads", "all"),)))


def test_a_failed_plan_has_no_time_and_no_ratio() -> None:
    wrong = PlanRequest("cpu-blas", uses=(("w1", KernelChoice(WRONG_KERNEL)),))
    state = resolved(state_keys.change_plan(started(), wrong))
    state = measured(state)
    cells = ladder_rows(state, WIDTHS)[f"+cpu-blas,w1:{WRONG_KERNEL}"]
    assert str(cells["ratio"]) == "FAIL"
    assert str(cells["time"]) == ""


def test_frozen_screen_holds_its_window_while_measuring_goes_on() -> None:
    state = measured(state_keys.freeze_or_thaw(started()))
    assert state.window is not None
    assert state.latest is not None
    assert (state.window.number, state.latest.window.number) == (1, 2)
    thawed = state_keys.freeze_or_thaw(state).window
    assert thawed is not None
    assert thawed.number == 2


def test_how_to_get_a_verdict_is_said_as_it_is_where_nothing_is_measured() -> None:
    recorded = replace(DEVICE, recording="recording of 2026-01-02 on AMD EPYC")
    live = started()
    assert "next window pairs it" in verdict_line(live).plain
    assert live.opened is not None
    assert live.latest is not None
    window = replace(live.latest.window, device=recorded, verdict="")
    replayed = replace(
        live,
        opened=msgspec.structs.replace(live.opened, device=recorded),
        latest=replace(live.latest, window=window),
    )
    assert "as it was recorded" in verdict_line(replayed).plain
    assert "next window" not in verdict_line(replayed).plain
    assert "Looked up: cpu-loops" in verdict_line(replace(replayed, current=LOOPS)).plain


@pytest.mark.parametrize(
    ("toggle", "value"),
    [
        (ToggleView("t", "off", ("off", "on")), "on"),
        (ToggleView("t", "on", ("off", "on")), "off"),
        (ToggleView("t", "a", ("a", "b", "c"), (("b", "why"),)), "c"),
        (ToggleView("t", "c", ("a", "b", "c"), (("b", "why"),)), "a"),
        (ToggleView("t", "off", ("off", "on"), (("on", "why"),)), None),
    ],
)
def test_a_flip_passes_over_refused_values(toggle: ToggleView, value: str | None) -> None:
    assert state_keys.next_value(toggle) == value


def test_a_click_on_the_heading_that_sorts_turns_the_order_round() -> None:
    by_time = state_keys.sort_by(started(), "time_s")
    names = [row.phase for row in facts.shown_phases(by_time)]
    assert names[:2] == ["w2", "w1"]
    assert [row.phase for row in facts.shown_phases(state_keys.sort_by(by_time, "time_s"))] == names[::-1]
    assert not state_keys.sort_by(by_time, "count").sorted_backwards


@pytest.mark.parametrize("column", [column.key for column in COLUMNS])
@pytest.mark.parametrize("backwards", [False, True])
def test_every_column_sorts_and_loses_no_phase(column: str, backwards: bool) -> None:
    state = replace(started(), sort=column, sorted_backwards=backwards)
    shown = [row.phase for row in facts.shown_phases(state)]
    assert sorted(shown) == sorted(row.phase for row in phases_of(state.lane))
    assert labels(state, {column.key: 20 for column in COLUMNS})


def test_units_stay_while_the_times_are_near_and_follow_them_when_not() -> None:
    state = started()
    assert state.latest is not None
    first = state.scale_s

    shot = state.latest

    def slower(factor: float) -> State:
        lanes = tuple(
            replace(lane, device_s=factor * (lane.device_s or 0.0), rows=()) for lane in shot.window.lanes
        )
        return state_events.window_ready(state, replace(shot, window=replace(shot.window, lanes=lanes)))

    assert slower(0.5).scale_s == slower(3.0).scale_s == first
    assert slower(0.001).scale_s != first


def test_a_busy_machine_and_a_split_that_does_not_add_up_are_said_above_the_rows() -> None:
    state = started()
    assert state.latest is not None
    assert list(warnings(state)) == []
    window = state.latest.window
    busy = replace(window, health=replace(window.health, host_cores=2, others_cores=1.6))
    lanes = tuple(
        replace(
            lane,
            rows=tuple(
                replace(row, time_s=0.0275, status="something else ran") if row.phase == "residual" else row
                for row in lane.rows
            ),
        )
        for lane in busy.lanes
    )
    shown = replace(state, latest=replace(state.latest, window=replace(busy, lanes=lanes)))
    said = list(warnings(shown))
    assert said[0].startswith("! others use 1.6 of 2 cores")
    assert said[1] == "! phases account for 35 % of the pass: distrust the rows of this window"
    assert list(warnings(replace(shown, current=LOOPS))) == [], "not of a window that is stale"


def test_what_was_measured_faster_before_is_advised_after_a_loss() -> None:
    """A flip that lost leads back, and not to a forecast."""
    state = measured(resolved(state_keys.choose_rung(started(), "cpu-threads")))
    lost = measured(resolved(state_keys.choose_rung(state_keys.pin_or_unpin(state), "cpu-blas")))
    step = best_step(lost)
    assert step is not None
    assert (step.plan, step.verdict) == ("cpu-threads", "FASTER")
    assert "cpu-threads was measured" in advice_line(lost).plain


def test_another_batch_is_no_faster_answer_to_the_same_question() -> None:
    state = measured(resolved(state_keys.with_toggle(started(), "batch", "4")))
    state = measured(resolved(state_keys.choose_plan(state, "cpu-blas")))
    assert all("batch" not in step.plan for step in [best_step(state)] if step)
