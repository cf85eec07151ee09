"""A recording served inside the test's process: what a worker would answer, without one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gputop.ipc.client import OnProgress
from gputop.ipc.log import WorkerLog
from gputop.ipc.protocol import Opened
from gputop.plan.choices import PlanView, SiteChoices
from gputop.plan.types import PlanRequest, Workload
from gputop.results import recording
from gputop.results.flip_forecast import FlipForecast, FlipForecasts
from gputop.results.ladder import Ladder
from gputop.results.records import Ceilings, Gate, Window
from gputop.session.replay import Replay

FORECAST = FlipForecast("prune=off", "graph,prune=off", 5.1e-4, 0.947, 0.7, 1.3)
"""As no model may change what a snapshot shows."""


class RecordingClient:
    """Answers at once."""

    def __init__(self, file: Path, folder: Path) -> None:
        self.log = WorkerLog(folder / "worker.log")
        self._replay = Replay(recording.read(file))

    def start(self) -> None:
        """Nothing to start."""

    def open(
        self,
        backend: str,
        workload: Workload,
        *,
        device: str | None = None,
        kernels_dir: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> Opened:
        return Opened(
            id=1,
            device=self._replay.facts,
            workload=self._replay.workload,
            rungs=self._replay.rung_views(),
            default_rung=self._replay.default_rung,
        )

    def resolve(self, request: PlanRequest) -> PlanView:
        return self._replay.view(request)

    def choices(self, request: PlanRequest, site: str) -> SiteChoices:
        return self._replay.choices(request, site)

    def measure(
        self,
        current: PlanRequest,
        pinned: PlanRequest | None = None,
        *,
        seconds: float | None = None,
        first_look: bool = False,
        on_progress: OnProgress | None = None,
    ) -> Window:
        return self._replay.measure(current, pinned)

    def measure_ladder(
        self, requests: Sequence[PlanRequest], *, on_progress: OnProgress | None = None
    ) -> Ladder:
        return self._replay.measure_ladder(requests)

    def forecast_flips(self, request: PlanRequest) -> FlipForecasts:
        return FlipForecasts(str(request), (FORECAST,), 20)

    def check(self, request: PlanRequest, *, on_progress: OnProgress | None = None) -> Gate:
        return self._replay.check(request)

    def calibrate(self, *, on_progress: OnProgress | None = None) -> Ceilings:
        return self._replay.calibrate()

    def stop(self) -> None:
        """Nothing goes on that could be stopped."""

    def kill(self) -> None:
        """There is no process."""

    def restart(self, *, on_progress: OnProgress | None = None) -> Opened | None:
        return None

    def close(self) -> None:
        self.log.close()
