"""What the screen shows of forecasts: the one place that asks for them and puts them into words.

A forecast is the model's, not a measurement: it wears ≈, is dim, and comes with the interval of its error.
"""

from __future__ import annotations

from typing import Protocol

from gputop.plan.choices import ToggleView
from gputop.plan.types import PlanRequest
from gputop.results.flip_forecast import FlipForecast, FlipForecasts
from gputop.tui.state import State
from gputop.util.units import ratio, ratio_within, seconds

MARK = "≈"


class Forecaster(Protocol):
    def forecast_flips(self, request: PlanRequest) -> FlipForecasts: ...


def ask(client: Forecaster, request: PlanRequest) -> FlipForecasts:
    """Return what is expected of a plan's flips. Raise UsageError if they can be measured instead."""
    return client.forecast_flips(request)


def forecasts_of(state: State) -> tuple[FlipForecast, ...]:
    """Return the forecasts of the current plan's flips, the best first."""
    found = state.forecasts.get(state.current_word or "")
    return tuple(sorted(found.items, key=lambda item: -item.ratio)) if found else ()


def toggle_forecast(state: State, toggle: ToggleView) -> FlipForecast | None:
    """Return the forecast of a toggle's first refused value that has one."""
    found = state.forecasts.get(state.current_word or "")
    if found is None:
        return None
    flips = (found.of(f"{toggle.name}={value}") for value, _ in toggle.refused)
    return next((flip for flip in flips if flip is not None), None)


def short_words(item: FlipForecast) -> str:
    """Return `≈ 1.04×`."""
    return f"{MARK} {ratio(item.ratio)}"


def ratio_words(item: FlipForecast) -> str:
    """Return `≈ 1.04× [0.58, 1.80]`."""
    return f"{MARK} {ratio_within(item.ratio_interval)}"


def sentence(state: State, item: FlipForecast) -> str:
    """Return the forecast with what it is worth."""
    found = state.forecasts.get(state.current_word or "")
    steps = found.steps if found else 0
    worth = (
        f"four of five of the {steps} recorded steps lay in such an interval"
        if item.lo is not None
        else f"how far it is off is not known from {steps} recorded steps"
    )
    return (
        f"{item.plan} was not recorded. {MARK} Forecast by the model, not measured: {seconds(item.after_s)}, "
        f"{ratio_within(item.ratio_interval)}; {worth}."
    )
