"""A recording whose forecasts stand still, as no model may change what a snapshot shows."""

from __future__ import annotations

from gputop.ipc.connection import Connection
from gputop.plan.types import PlanRequest
from gputop.results.flip_forecast import FlipForecast, FlipForecasts
from gputop.results.whatif import SiteChange, WhatIf, WhatIfAsked

FORECAST = FlipForecast("prune=off", "graph,prune=off", 5.1e-4, 0.947, 0.7, 1.3)


def answered(asked: WhatIfAsked) -> WhatIf:
    """`w2` alone, at 1.25 times its speed unless nothing is changed."""
    after_s = 64e-6 if asked.changes_pass else 80e-6
    site = SiteChange("w2", ("gemm", "gemm"), 100e-6, (22e-6, 22e-6), (80e-6, after_s), True, (None, None))
    words = str(asked.plan), str(asked.plan)
    return WhatIf(words, ("a", "a"), "", (site,), (400e-6, 400e-6), 480e-6, (128, 128))


class FixedForecasts(Connection):
    """Answers all else as a recording does."""

    def forecast_flips(self, request: PlanRequest) -> FlipForecasts:
        return FlipForecasts(str(request), (FORECAST,), 20)

    def what_if(self, asked: WhatIfAsked) -> WhatIf:
        return answered(asked)
