"""A request answered by what is open: the same for a session that measures and for a recording."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from gputop.ipc.protocol import (
    AskWhatIf,
    Bye,
    Calibrate,
    Calibrated,
    Check,
    Checked,
    ChoicesListed,
    Closing,
    FlipsForecast,
    ForecastFlips,
    LadderDone,
    ListChoices,
    ListSpace,
    Measure,
    Measured,
    MeasureLadder,
    Open,
    Opened,
    Planned,
    Rebuild,
    Rebuilt,
    Request,
    Resolve,
    Resolved,
    SpaceListed,
    Stop,
    WhatIfAnswered,
)
from gputop.plan.choices import PlanView, RungView, SiteChoices
from gputop.plan.types import PlanRequest, Workload
from gputop.results.flip_forecast import FlipForecasts
from gputop.results.kernel_report import KernelReport
from gputop.results.ladder import Ladder
from gputop.results.records import Ceilings, DeviceFacts, Gate, Window
from gputop.results.search_space import SearchSpace
from gputop.results.whatif import WhatIf, WhatIfAsked
from gputop.util.errors import UsageError

Say = Callable[[str], None]
Stopped = Callable[[], bool]
Show = Callable[[Planned], None]


class PlanImpossible(UsageError):
    """A plan that was to be measured can't be."""

    def __init__(self, message: str, request: PlanRequest) -> None:
        super().__init__(message)
        self.request = request


class Answering(Protocol):
    """What a session and a recording have in common; each method raises UsageError for what it refuses."""

    @property
    def note(self) -> str: ...

    @property
    def facts(self) -> DeviceFacts: ...

    @property
    def workload(self) -> Workload: ...

    @property
    def default_rung(self) -> str: ...

    def rung_views(self) -> tuple[RungView, ...]: ...

    def view(self, request: PlanRequest, /) -> PlanView: ...

    def choices(self, request: PlanRequest, site: str, /) -> SiteChoices: ...

    def search_space(self, request: PlanRequest, say: Say, /) -> SearchSpace: ...

    def forecast_flips(self, request: PlanRequest, /) -> FlipForecasts: ...

    def what_if(self, asked: WhatIfAsked, /) -> WhatIf: ...

    def measure(
        self,
        current: PlanRequest,
        pinned: PlanRequest | None = None,
        *,
        seconds: float | None = None,
        aa: bool = False,
        check_phases: bool = False,
        first_look: bool = False,
        stop: Stopped,
        say: Say,
    ) -> Window: ...

    def measure_ladder(
        self,
        requests: Sequence[PlanRequest],
        seconds: float | None,
        stop: Stopped,
        say: Say,
        /,
        *,
        check_phases: bool = False,
    ) -> Ladder: ...

    def check(self, request: PlanRequest, say: Say, /) -> Gate: ...

    def calibrate(self, force: bool, say: Say, /) -> Ceilings: ...

    def rebuild(
        self, request: PlanRequest, site: str | None, changed: Sequence[str], say: Say, /
    ) -> tuple[KernelReport, ...]: ...

    def close(self) -> None: ...


def opened(request: Open, session: Answering, note: str) -> Opened:
    """Say what an Open has led to."""
    return Opened(
        id=request.id,
        device=session.facts,
        workload=session.workload,
        rungs=session.rung_views(),
        default_rung=session.default_rung,
        note=note,
    )


def answer(session: Answering, request: Request, stop: Stopped, say: Say, show: Show) -> Closing:
    """Return the closing event of a request of what is open; `show` takes what comes before a window.

    Raise PlanImpossible for a plan that `Measure.views` asks to see and that can't be.
    """
    match request:
        case Resolve():
            return Resolved(id=request.id, view=session.view(request.request))
        case ListChoices():
            return ChoicesListed(id=request.id, choices=session.choices(request.request, request.site))
        case ListSpace():
            return SpaceListed(id=request.id, space=session.search_space(request.request, say))
        case ForecastFlips():
            return FlipsForecast(id=request.id, forecasts=session.forecast_flips(request.request))
        case AskWhatIf():
            return WhatIfAnswered(id=request.id, found=session.what_if(request.asked))
        case Measure():
            if request.views:
                show(_planned(session, request))
            window = session.measure(
                request.current,
                request.pinned,
                seconds=request.seconds,
                aa=request.aa,
                check_phases=request.check_phases,
                first_look=request.first_look,
                stop=stop,
                say=say,
            )
            return Measured(id=request.id, window=window)
        case MeasureLadder():
            ladder = session.measure_ladder(
                request.requests, request.seconds, stop, say, check_phases=request.check_phases
            )
            return LadderDone(id=request.id, ladder=ladder)
        case Check():
            return Checked(id=request.id, gate=session.check(request.request, say))
        case Calibrate():
            return Calibrated(id=request.id, ceilings=session.calibrate(request.force, say))
        case Rebuild():
            reports = session.rebuild(request.request, request.site, request.changed, say)
            return Rebuilt(id=request.id, reports=reports)
        case Open() | Stop() | Bye():
            raise AssertionError("these concern whoever serves")


def _planned(session: Answering, request: Measure) -> Planned:
    """See the plans of a window. Raise PlanImpossible for the first that can't be."""
    views = []
    for plan in filter(None, (request.current, request.pinned)):
        try:
            views.append(session.view(plan))
        except UsageError as error:
            raise PlanImpossible(str(error), plan) from error
    return Planned(id=request.id, current=views[0], pinned=views[1] if len(views) > 1 else None)
