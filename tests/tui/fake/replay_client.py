"""A recording whose forecasts stand still, as no model may change what a snapshot shows."""

from __future__ import annotations

from gputop.ipc.connection import Connection
from gputop.plan.types import PlanRequest
from gputop.results.flip_forecast import FlipForecast, FlipForecasts

FORECAST = FlipForecast("prune=off", "graph,prune=off", 5.1e-4, 0.947, 0.7, 1.3)


class FixedForecasts(Connection):
    """Answers all else as a recording does."""

    def forecast_flips(self, request: PlanRequest) -> FlipForecasts:
        return FlipForecasts(str(request), (FORECAST,), 20)
