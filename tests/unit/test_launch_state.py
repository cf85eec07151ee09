"""Windows are told apart by what launches cost in them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gputop.results.launch_state import of_one_state
from gputop.results.records import DeviceFacts, Health, Window
from gputop.session.interference import launch_notes

WINDOW = Window(1, "2026-01-01T00:00:00+00:00", 1.0, DeviceFacts("cuda", "A GPU"), Health(), "mini", ())
USUAL_S = 0.51e-6


def windows(*costs_s: float | None) -> list[Window]:
    return [
        replace(WINDOW, number=number, health=Health(launch_s=cost_s))
        for number, cost_s in enumerate(costs_s, 1)
    ]


def numbers(*costs_s: float | None) -> list[int]:
    return [window.number for window in of_one_state(windows(*costs_s))]


def test_windows_of_another_state_than_the_first_are_left_out() -> None:
    assert numbers(USUAL_S, 0.69e-6, 0.52e-6) == [1, 3]
    assert numbers(0.69e-6, USUAL_S, 0.70e-6) == [1, 3]


def test_a_window_that_does_not_tell_stays() -> None:
    assert numbers(None, USUAL_S, None, 0.69e-6) == [1, 2, 3]
    assert numbers(None, None) == [1, 2]


@pytest.mark.parametrize("cost_s", [0.69e-6, 0.4e-6])
def test_launches_that_cost_other_than_their_ceiling_are_said(cost_s: float) -> None:
    (note,) = launch_notes(Health(launch_s=USUAL_S), Health(launch_s=cost_s), USUAL_S)
    assert f"{cost_s / USUAL_S:.2f} times" in note


def test_nothing_is_said_of_launches_at_their_ceiling_or_that_nobody_measured() -> None:
    assert launch_notes(Health(launch_s=0.52e-6), Health(launch_s=0.50e-6), USUAL_S) == ()
    assert launch_notes(Health(), Health(), USUAL_S) == ()
    assert launch_notes(Health(launch_s=1e-6), Health(), None) == ()
