"""What is sent to a device and what comes back. Everything here travels between hosts as a pickle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from gputop.ipc.opened_worker import OpenedWorker
from gputop.ipc.protocol import Opened
from gputop.ipc.recorder import Recorder, RecordingSettings
from gputop.plan.choices import PlanView
from gputop.plan.types import PlanRequest, Workload
from gputop.results.ladder import Ladder
from gputop.results.recording import encode
from gputop.results.records import Ceilings, Gate, Window
from gputop.results.search_space import SearchSpace
from gputop.util.errors import UsageError

Result_co = TypeVar("Result_co", covariant=True)
KeepLine = Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class Opening:
    """What each device opens."""

    backend: str
    workload: Workload
    kernels_dir: str | None = None
    """On that host."""


@dataclass(frozen=True, slots=True)
class Met:
    """What a Dask worker says of itself before it measures."""

    version: str
    """Of its gputop."""
    host: str
    cores: tuple[int, ...]
    """Cores that it may run on; empty if the system does not tell."""
    opened: Opened

    @property
    def order(self) -> tuple[str, int, tuple[int, ...]]:
        """By host, then by what the host calls first."""
        return self.host, self.opened.device.index or 0, self.cores

    @property
    def places(self) -> frozenset[object]:
        """What it measures on: two workers that share a place would disturb each other."""
        device = self.opened.device
        return frozenset((device.uuid,) if device.uuid else ((self.host, core) for core in self.cores))


class Job(Protocol[Result_co]):
    """One piece of work for one device."""

    @property
    def seconds(self) -> float | None:
        """The longest that one window may take."""

    def run(self, worker: OpenedWorker, keep: KeepLine) -> Result_co:
        """Measure. `keep` sends a line home at once, so that it outlives this device."""


@dataclass(frozen=True, slots=True)
class RecordJob:
    """A recording of some rungs; the result is its gates, the lines go to `keep`."""

    settings: RecordingSettings
    rungs: tuple[str, ...]
    seconds: float | None = None

    def run(self, worker: OpenedWorker, keep: KeepLine) -> tuple[Gate, ...]:
        """Raise UsageError if no rung could be measured."""
        recorder = Recorder(worker, self.settings)
        rungs = [rung for rung in worker.opened.rungs if rung.id in self.rungs]
        for line in recorder.lines(rungs):
            keep(encode(line))
        if not recorder.gates:
            raise UsageError("None of these rungs could be measured there.")
        return recorder.gates


@dataclass(frozen=True, slots=True)
class LadderJob:
    """Several plans in one window."""

    requests: tuple[PlanRequest, ...]
    seconds: float | None = None
    check_phases: bool = False

    def run(self, worker: OpenedWorker, keep: KeepLine) -> Ladder:
        """Errors as of `OpenedWorker.measure`."""
        return worker.measure_ladder(
            list(self.requests), seconds=self.seconds, check_phases=self.check_phases
        )


@dataclass(frozen=True, slots=True)
class CalibrateJob:
    """The device's ceilings."""

    force: bool = False
    seconds: float | None = None

    def run(self, worker: OpenedWorker, keep: KeepLine) -> Ceilings:
        """Errors as of `OpenedWorker.measure`."""
        return worker.calibrate(force=self.force)


@dataclass(frozen=True, slots=True)
class SpaceJob:
    """All that may be chosen at the sites of a plan."""

    request: PlanRequest
    seconds: float | None = None

    def run(self, worker: OpenedWorker, keep: KeepLine) -> SearchSpace:
        """Raise UsageError for an impossible plan."""
        return worker.client.search_space(self.request, on_progress=worker.progress)


@dataclass(frozen=True, slots=True)
class ResolveJob:
    """What a request comes to."""

    request: PlanRequest
    seconds: float | None = None

    def run(self, worker: OpenedWorker, keep: KeepLine) -> PlanView:
        """Raise UsageError for an impossible plan."""
        return worker.client.resolve(self.request)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two plans that are measured in one window, so on one device."""

    incumbent: PlanRequest
    candidate: PlanRequest
    number: int = 0
    """Tells apart pairs of the same plans; not looked at."""


@dataclass(frozen=True, slots=True)
class PairJob:
    """One window of a pair: the incumbent is the window's pinned plan.

    What kills or hangs the measuring process is not tried again there: a search strikes it.
    """

    pair: Pair
    seconds: float | None = None
    check_phases: bool = False

    def run(self, worker: OpenedWorker, keep: KeepLine) -> Window:
        """Raise WorkerLost if the measuring process dies or hangs, and for what it refuses."""
        return worker.client.measure(
            self.pair.candidate,
            self.pair.incumbent,
            seconds=self.seconds,
            check_phases=self.check_phases,
            on_progress=worker.progress,
        )
