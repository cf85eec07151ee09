"""What the measuring thread needs of a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gputop.ipc.conversation import OnPlanned, OnProgress
from gputop.ipc.log import WorkerLog
from gputop.ipc.protocol import Opened
from gputop.plan.choices import PlanView, SiteChoices
from gputop.plan.types import PlanRequest, Workload
from gputop.results.flip_forecast import FlipForecasts
from gputop.results.kernel_report import KernelReport
from gputop.results.ladder import Ladder
from gputop.results.recording import Recording
from gputop.results.records import Ceilings, Gate, Window


class Measurer(Protocol):
    """A conversation, as far as the screen leads it: a worker's, a recording's, or a test's."""

    log: WorkerLog

    @property
    def recording(self) -> Recording | None:
        """All of what is open, if it is a recording that this process has read."""
        ...

    def start(self) -> object: ...

    def open(
        self,
        backend: str,
        workload: Workload,
        *,
        device: str | None = None,
        kernels_dir: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> Opened: ...

    def resolve(self, request: PlanRequest) -> PlanView: ...

    def choices(self, request: PlanRequest, site: str) -> SiteChoices: ...

    def measure(
        self,
        current: PlanRequest,
        pinned: PlanRequest | None = None,
        *,
        seconds: float | None = None,
        first_look: bool = False,
        on_progress: OnProgress | None = None,
        on_planned: OnPlanned | None = None,
    ) -> Window: ...

    def measure_ladder(
        self, requests: Sequence[PlanRequest], *, on_progress: OnProgress | None = None
    ) -> Ladder: ...

    def forecast_flips(self, request: PlanRequest) -> FlipForecasts: ...

    def check(self, request: PlanRequest, *, on_progress: OnProgress | None = None) -> Gate: ...

    def calibrate(self, *, on_progress: OnProgress | None = None) -> Ceilings: ...

    def rebuild(
        self,
        request: PlanRequest,
        site: str | None,
        changed: Sequence[str] = (),
        *,
        on_progress: OnProgress | None = None,
    ) -> tuple[KernelReport, ...]: ...

    def stop(self) -> None: ...

    def kill(self) -> None: ...

    def restart(self, *, on_progress: OnProgress | None = None) -> Opened | None: ...

    def close(self) -> None: ...
