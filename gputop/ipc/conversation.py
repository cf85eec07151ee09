"""What a front end asks of whatever measures, each question as a method: a worker process answers, or a
recording read in this one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Self, TypeVar

from gputop.ipc.log import WorkerLog
from gputop.ipc.protocol import (
    AskWhatIf,
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
    WhatIfAnswered,
)
from gputop.plan.choices import PlanView, SiteChoices
from gputop.plan.types import PlanRequest, Workload
from gputop.results.flip_forecast import FlipForecasts
from gputop.results.kernel_report import KernelReport
from gputop.results.ladder import Ladder
from gputop.results.records import Ceilings, Gate, Window
from gputop.results.search_space import SearchSpace
from gputop.results.whatif import WhatIf, WhatIfAsked
from gputop.util.errors import WorkerLost

if TYPE_CHECKING:
    from gputop.results.recording import Recording

OnProgress = Callable[[str], None]
OnPlanned = Callable[[Planned], None]
ClosingEvent = TypeVar(
    "ClosingEvent",
    Opened,
    Resolved,
    ChoicesListed,
    SpaceListed,
    FlipsForecast,
    WhatIfAnswered,
    Measured,
    LadderDone,
    Checked,
    Calibrated,
    Rebuilt,
)


class Conversation(ABC):
    """One request at a time, from any one thread; `stop`, `kill` and `log` may be used from others meanwhile.

    As a context manager it starts, and ends by `close`, or by `kill` after an exception.
    """

    log: WorkerLog
    recording: Recording | None = None
    """What is open if it is a recording that this process has read."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.kill()

    @abstractmethod
    def start(self) -> object:
        """Make ready for the first request. Raise Unavailable or WorkerLost if that fails."""

    @abstractmethod
    def call(
        self,
        request: Request,
        *,
        on_progress: OnProgress | None = None,
        on_planned: OnPlanned | None = None,
    ) -> Closing:
        """Send a request and wait for its closing event.

        Raise UsageError, Unavailable or GateFailed if it was refused, WorkerLost if nobody is left to answer:
        `restart` goes on.
        """

    @abstractmethod
    def stop(self) -> None:
        """End the window under way; its call returns as usual. From any thread; harmless when idle."""

    @abstractmethod
    def kill(self) -> None:
        """End whatever answers at once, from any thread; a call under way raises WorkerLost."""

    @abstractmethod
    def restart(self, *, on_progress: OnProgress | None = None) -> Opened | None:
        """Begin anew and open what was open last; None when nothing was."""

    @abstractmethod
    def close(self) -> None:
        """Say goodbye. Calling twice is harmless."""

    def open(
        self,
        backend: str,
        workload: Workload,
        *,
        device: str | None = None,
        kernels_dir: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> Opened:
        request = Open(backend=backend, workload=workload, device=device, kernels_dir=kernels_dir)
        return self._ask(request, Opened, on_progress)

    def resolve(self, request: PlanRequest) -> PlanView:
        return self._ask(Resolve(request=request), Resolved, None).view

    def choices(self, request: PlanRequest, site: str) -> SiteChoices:
        """Return which kernels can serve one site of a plan, and why the others can't."""
        return self._ask(ListChoices(request=request, site=site), ChoicesListed, None).choices

    def search_space(self, request: PlanRequest, *, on_progress: OnProgress | None = None) -> SearchSpace:
        """All that a search may choose from at the sites of a plan, priced by the term model."""
        return self._ask(ListSpace(request=request), SpaceListed, on_progress).space

    def forecast_flips(self, request: PlanRequest) -> FlipForecasts:
        """What the model expects of the flips of a recorded plan that were not recorded.

        Raise UsageError where plans can be measured: there a flip is tried.
        """
        return self._ask(ForecastFlips(request=request), FlipsForecast, None).forecasts

    def what_if(self, asked: WhatIfAsked) -> WhatIf:
        """What the model expects of a recorded plan with something changed about it.

        Raise UsageError for a change that can't be, and where plans can be measured.
        """
        return self._ask(AskWhatIf(asked=asked), WhatIfAnswered, None).found

    def measure(
        self,
        current: PlanRequest,
        pinned: PlanRequest | None = None,
        *,
        seconds: float | None = None,
        aa: bool = False,
        check_phases: bool = False,
        first_look: bool = False,
        on_progress: OnProgress | None = None,
        on_planned: OnPlanned | None = None,
    ) -> Window:
        """Measure one window; `on_planned` gets what can be chosen on its plans before it begins.

        Raise PlanImpossible, with the plan, if `on_planned` is given and one of them can't be.
        """
        request = Measure(
            current=current,
            pinned=pinned,
            seconds=seconds,
            aa=aa,
            check_phases=check_phases,
            first_look=first_look,
            views=on_planned is not None,
        )
        return self._ask(request, Measured, on_progress, on_planned).window

    def measure_ladder(
        self,
        requests: Sequence[PlanRequest],
        *,
        seconds: float | None = None,
        check_phases: bool = False,
        on_progress: OnProgress | None = None,
    ) -> Ladder:
        request = MeasureLadder(requests=tuple(requests), seconds=seconds, check_phases=check_phases)
        return self._ask(request, LadderDone, on_progress).ladder

    def check(self, request: PlanRequest, *, on_progress: OnProgress | None = None) -> Gate:
        return self._ask(Check(request=request), Checked, on_progress).gate

    def calibrate(self, *, force: bool = False, on_progress: OnProgress | None = None) -> Ceilings:
        return self._ask(Calibrate(force=force), Calibrated, on_progress).ceilings

    def rebuild(
        self,
        request: PlanRequest,
        site: str | None,
        changed: Sequence[str] = (),
        *,
        on_progress: OnProgress | None = None,
    ) -> tuple[KernelReport, ...]:
        """Read the user's own kernels again; a report on each that a changed file is part of."""
        asked = Rebuild(request=request, site=site, changed=tuple(changed))
        return self._ask(asked, Rebuilt, on_progress).reports

    def _ask(
        self,
        request: Request,
        kind: type[ClosingEvent],
        on_progress: OnProgress | None,
        on_planned: OnPlanned | None = None,
    ) -> ClosingEvent:
        event = self.call(request, on_progress=on_progress, on_planned=on_planned)
        if not isinstance(event, kind):
            self.kill()
            raise WorkerLost(f"The worker answered {type(request).__name__} with {type(event).__name__}.")
        return event
