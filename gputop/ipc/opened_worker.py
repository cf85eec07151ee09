"""A worker opened on a device for a piece of work; a lost window is measured once more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from gputop.ipc.conversation import Conversation
from gputop.ipc.protocol import Opened
from gputop.plan.types import PlanRequest
from gputop.results.ladder import Ladder
from gputop.results.records import Ceilings, Gate, Window
from gputop.util.errors import WorkerLost

Result = TypeVar("Result")
Say = Callable[[str], None]


@dataclass(slots=True)
class OpenedWorker:
    """The conversation, what the worker opened, and who hears of it."""

    client: Conversation
    opened: Opened
    note: Say
    """Takes what should be read even after the work is done."""
    progress: Say
    """Takes what goes on just now."""
    seconds: float | None = None
    """The longest that one window may take."""

    def measure(
        self,
        current: PlanRequest,
        pinned: PlanRequest | None = None,
        *,
        aa: bool = False,
        check_phases: bool = False,
    ) -> Window:
        """Measure one window. Raise WorkerLost if the second worker is lost too, and for what it refuses."""
        return self.retry_once(
            lambda: self.client.measure(
                current,
                pinned,
                seconds=self.seconds,
                aa=aa,
                check_phases=check_phases,
                on_progress=self.progress,
            )
        )

    def measure_ladder(
        self, requests: list[PlanRequest], *, seconds: float | None, check_phases: bool
    ) -> Ladder:
        """Measure several plans in one window; errors as of `measure`."""
        return self.retry_once(
            lambda: self.client.measure_ladder(
                requests, seconds=seconds, check_phases=check_phases, on_progress=self.progress
            )
        )

    def check(self, request: PlanRequest) -> Gate:
        """Run both gates of a plan; errors as of `measure`."""
        return self.retry_once(lambda: self.client.check(request, on_progress=self.progress))

    def calibrate(self, *, force: bool = False) -> Ceilings:
        """Measure the device's ceilings, or return those that are kept; errors as of `measure`."""
        return self.retry_once(lambda: self.client.calibrate(force=force, on_progress=self.progress))

    def retry_once(self, work: Callable[[], Result]) -> Result:
        """Return what `work` does, if need be once more with a new worker; then raise WorkerLost."""
        try:
            return work()
        except WorkerLost as lost:
            self.note(str(lost))
            self.note("That window is lost. Starting a new worker and measuring it again.")
            self.client.restart(on_progress=self.progress)
            return work()
