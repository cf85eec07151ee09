"""How each key and click changes the state. Pure functions."""

from __future__ import annotations

from dataclasses import replace

from gputop.plan.choices import ToggleView
from gputop.plan.types import PlanRequest
from gputop.tui.state import SORTS, PinSource, PlanPair, State, View, rung_before


def change_plan(state: State, request: PlanRequest) -> State:
    """Make a changed plan current. Pin the plan before the change, unless the user or a change pinned one."""
    keep = state.pinned is not None and state.pin_from != "rung"
    return _change(
        state, request, state.pinned if keep else state.current, state.pin_from if keep else "flip"
    )


def _change(state: State, request: PlanRequest, against: PlanRequest | None, pin_from: PinSource) -> State:
    """Make a plan current, paired with `against` unless that one's answer is wrong."""
    if state.current is None or request == state.current:
        return state
    before = state.undo or PlanPair(state.current, state.pinned)
    seen = state.seen.get(state.word(against) or "")
    pinned = None if seen is not None and not seen.gate.ok else against
    return replace(state, current=request, pinned=pinned, pin_from=pin_from, undo=before, trouble="")


def change_pair(state: State, current: PlanRequest, pinned: PlanRequest | None) -> State:
    """Make a plan current and pair it with another, whatever was pinned."""
    if (current, pinned) == (state.current, state.pinned):
        return state
    return replace(state, current=current, pinned=pinned, pin_from="flip", undo=None, trouble="")


def choose_rung(state: State, rung: str) -> State:
    """Make a rung current and compare it with the rung that it changes: what did this step buy?

    A batch that was asked for stays, since it is the question.
    """
    kept = tuple(item for item in state.current.sets if item[0] == "batch") if state.current else ()
    request = PlanRequest(rung, kept)
    if state.pinned is not None and state.pin_from == "user":
        return _change(state, request, state.pinned, "user")
    return _change(state, request, rung_before(state.rungs, request) or state.current, "rung")


def choose_plan(state: State, word: str) -> State:
    """Make a rung, or a plan that was tried before, current by its plan string."""
    if state.rung(word) is not None:
        return choose_rung(state, word)
    found = next((plan for plan in state.tried if str(plan) == word), None)
    return state if found is None else change_plan(state, found)


def with_toggle(state: State, name: str, value: str) -> State:
    """The current plan with a toggle set."""
    asked = _asked(state)
    if asked is None:
        return state
    return change_plan(state, asked.with_set(name, value))


def _asked(state: State) -> PlanRequest | None:
    """The current plan in the fewest words, so that flipping there and back asks for the same plan."""
    return state.view.request if state.view else state.current


def next_value(toggle: ToggleView) -> str | None:
    """The value that a flip gives, or None when every other value is refused."""
    refused = dict(toggle.refused)
    if toggle.value not in toggle.values:
        return next((value for value in toggle.values if value not in refused), None)
    at = toggle.values.index(toggle.value)
    others = toggle.values[at + 1 :] + toggle.values[:at]
    return next((value for value in others if value not in refused), None)


def pin_or_unpin(state: State) -> State:
    """Pins the current plan; where it is the pinned one, unpins it."""
    if state.current is None:
        return state
    pinned = None if state.is_pinned else state.current
    return replace(state, pinned=pinned, pin_from="user")


def stop_or_go(state: State) -> State:
    return replace(state, measuring=not state.measuring)


def freeze_or_thaw(state: State) -> State:
    """Holds the window on the screen, or lets go of it. Nothing to hold before the first window."""
    return replace(state, frozen=None if state.frozen else state.latest)


def show_view(state: State, view: View) -> State:
    """Another view of the same selection."""
    return replace(state, view_name=view)


def select_site(state: State, site: str | None) -> State:
    """Select a phase in every view."""
    return replace(state, site=site)


def next_sort(state: State) -> State:
    """Sort the phases by the next column that has something to sort by."""
    paired = state.lane is not None and any(row.delta_s is not None for row in state.lane.rows)
    able = [column for column in SORTS if column != "delta_s" or paired]
    at = able.index(state.sort) if state.sort in able else -1
    return replace(state, sort=able[(at + 1) % len(able)], sorted_backwards=False)


def sort_by(state: State, column: str) -> State:
    """Sort the phases by a column; by the one that sorts them already, the other way round."""
    again = column == state.sort
    return replace(state, sort=column, sorted_backwards=again and not state.sorted_backwards)
