"""Forecast what flips of a recorded plan would do that were not recorded, and how far such forecasts are off.

The error is the recording's own: each rung that ran in one window with the rung that it changes is forecast
from that one's rows as a flip would be, and the measured ratio is held against it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from math import ceil, exp, floor, log

from gputop.plan.choices import RungView
from gputop.plan.toggles import toggle_text
from gputop.plan.types import Plan, PlanRequest, Workload
from gputop.planner.resolver import Resolver, plan_dims
from gputop.results.flip_forecast import FlipForecast, FlipForecasts
from gputop.results.records import Ceilings, DeviceFacts, Row, Window
from gputop.session.cost_model import Machine, SiteModel, site_models
from gputop.session.pass_forecast import pass_s, savings
from gputop.util.errors import UsageError

COVERED = 0.8
"""Share of the known steps that an interval holds."""
FEWEST_STEPS = 5
"""With fewer known steps no interval is given."""


class FlipForecaster:
    """The model on one recording's device, held against that recording's own steps."""

    def __init__(
        self,
        resolver: Resolver,
        workload: Workload,
        device: DeviceFacts,
        ceilings: Ceilings,
        plans: Iterable[Plan],
        windows: Iterable[Window],
        rungs: Iterable[RungView],
    ) -> None:
        """`plans` are those that were measured, `windows` all that was, `rungs` the recorded session's."""
        self._resolver = resolver
        self._workload = workload
        self._device = device
        self._ceilings = ceilings
        self._plans = {plan.word: plan for plan in plans}
        self._windows = tuple(windows)
        self._steps = {(rung.before, rung.id) for rung in rungs}
        self._models: dict[Plan, tuple[SiteModel, ...] | None] = {}

    def forecasts(self, plan: Plan) -> FlipForecasts:
        """Return a forecast for each toggle's other values, without those that lead to a recorded plan."""
        rows = self._rows.get(plan.word, ())
        items = tuple(
            item
            for flip, after in self._flips(plan)
            if after not in self._plans.values() and (item := self._forecast(flip, plan, rows, after))
        )
        return FlipForecasts(plan.word, items, len(self._errors))

    def _flips(self, plan: Plan) -> Iterator[tuple[str, Plan]]:
        """Yield (`pdl=off`, the plan after it) for all that resolves."""
        for toggle in self._resolver.toggles:
            value = toggle_text(getattr(plan, toggle.field))
            for other in toggle.values:
                if other != value:
                    with suppress(UsageError):
                        yield (
                            f"{toggle.name}={other}",
                            self._resolve(plan.request.with_set(toggle.name, other)),
                        )

    def _resolve(self, request: PlanRequest) -> Plan:
        return self._resolver.resolve(request, self._workload.dims, self._device.backend)

    def _forecast(self, flip: str, plan: Plan, rows: tuple[Row, ...], after: Plan) -> FlipForecast | None:
        ratio = self._ratio(plan, rows, after)
        total_s = pass_s(rows)
        if ratio is None or total_s is None:
            return None
        lo, hi = self._around(ratio)
        return FlipForecast(flip, after.word, total_s / ratio, ratio, lo, hi)

    def _ratio(self, plan: Plan, rows: tuple[Row, ...], after: Plan) -> float | None:
        """Return the time before / the time after as the model sees it; None for what it has no terms of."""
        before_models, after_models = self._model(plan), self._model(after)
        total_s = pass_s(rows)
        if before_models is None or after_models is None or total_s is None:
            return None
        after_s = total_s - sum(item.saved_s for item in savings(rows, before_models, after_models))
        return None if after_s <= 0 else total_s / after_s

    def _model(self, plan: Plan) -> tuple[SiteModel, ...] | None:
        """Return the model of each site of a plan; None for a framework's pass."""
        if plan.peer:
            return None
        if plan not in self._models:
            dims = plan_dims(self._workload, plan)
            machine = Machine(self._device, self._ceilings, self._clock_hz)
            try:
                steps = self._resolver.steps(plan, dims)
                self._models[plan] = site_models(self._resolver, plan, dims, steps, machine, {})
            except (UsageError, KeyError):
                # A kernel that was recorded and is no longer there.
                self._models[plan] = None
        return self._models[plan]

    @cached_property
    def _clock_hz(self) -> float | None:
        """The clock of the first row that tells one."""
        every = (row.sm_clock_hz for rows in self._rows.values() for row in rows)
        return next((clock_hz for clock_hz in every if clock_hz), None)

    @cached_property
    def _rows(self) -> Mapping[str, tuple[Row, ...]]:
        """Plan string -> its rows in the last window that has them."""
        return {lane.plan: lane.rows for window in self._windows for lane in window.lanes if lane.rows}

    @cached_property
    def _errors(self) -> tuple[float, ...]:
        """log(measured ratio / forecast ratio) of every recorded step of one batch, in ascending order."""
        found = {}
        for window in self._windows:
            pair = window.comparison
            delta = pair.get("device") if pair else None
            if pair is None or delta is None or not delta.ratio:
                continue
            before, after = self._plans.get(pair.plan_a), self._plans.get(pair.plan_b)
            if before is None or after is None or before.batch != after.batch:
                continue
            if (before.word, after.word) not in self._steps:
                continue
            ratio = self._ratio(before, self._rows.get(before.word, ()), after)
            if ratio is not None:
                found[before.word, after.word] = log(delta.ratio / ratio)
        return tuple(sorted(found.values()))

    def _around(self, ratio: float) -> tuple[float | None, float | None]:
        errors = self._errors
        if len(errors) < FEWEST_STEPS:
            return None, None
        tail = (1 - COVERED) / 2 * (len(errors) - 1)
        return ratio * exp(errors[floor(tail)]), ratio * exp(errors[ceil(len(errors) - 1 - tail)])
