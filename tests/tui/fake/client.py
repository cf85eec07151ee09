"""A client that replays a canned run: what it returns has been through the protocol's encoder and decoder."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from gputop.ipc.answers import PlanImpossible
from gputop.ipc.conversation import OnPlanned, OnProgress
from gputop.ipc.log import WorkerLog
from gputop.ipc.protocol import (
    Checked,
    ChoicesListed,
    Measured,
    Message,
    Opened,
    Planned,
    Resolved,
    decode_event,
    encode,
)
from gputop.plan.choices import PlanView, SiteChoices
from gputop.plan.types import KernelChoice, PlanRequest, Workload
from gputop.results.flip_forecast import FlipForecasts
from gputop.results.kernel_report import KernelReport
from gputop.results.ladder import Ladder
from gputop.results.records import Ceilings, Gate, Window
from gputop.util.errors import UsageError, WorkerLost
from tests.tui.fake.records import (
    CEILINGS,
    DEVICE,
    RUNGS,
    WORKLOAD,
    WRONG_KERNEL,
    choices_of,
    gate_of,
    view_of,
    window_of,
)

T = TypeVar("T", bound=Message)
IMPOSSIBLE = ("batch", "999")
"""A setting that the worker refuses."""


class ReplayedClient:
    """Each plan gets one window at once; the next one waits for `release` or `stop`."""

    recording = None

    def __init__(self, folder: Path) -> None:
        self.log = WorkerLog(folder / "worker.log")
        self.calls: list[str] = []
        self.windows = 0
        self.resolved = 0
        """Requests for a plan by itself."""
        self.die_next = False
        """The next window ends with the worker's death."""
        self.die_always = False
        self.may_restart = threading.Event()
        """A new worker takes as long as a test wants."""
        self.may_restart.set()
        self.check_fails = False
        self.waiting = 0
        """Windows under way."""
        self._held = False
        self._last: tuple[PlanRequest, PlanRequest | None] | None = None
        self._go_on = threading.Event()

    def behave(self) -> None:
        """Neither die nor wait nor fail any more."""
        self.die_next = self.die_always = self.check_fails = False
        self.may_restart.set()
        self.release()

    def hold(self) -> None:
        """Let no window end, not even a plan's first, until `release`."""
        self._held = True

    def release(self) -> None:
        """Let the window under way end."""
        self._held = False
        self._go_on.set()

    def start(self) -> None:
        self.log.add("worker started")

    def open(
        self,
        backend: str,
        workload: Workload,
        *,
        device: str | None = None,
        kernels_dir: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> Opened:
        if on_progress is not None:
            on_progress("measuring ceilings")
        self.calls.clear()
        self.windows, self._last = 0, None
        self.calls.append(f"open {backend} {workload.name}")
        return _through(
            Opened(id=1, device=DEVICE, workload=workload, rungs=RUNGS, default_rung="cpu-blas"), Opened
        )

    def resolve(self, request: PlanRequest) -> PlanView:
        self.resolved += 1
        _refuse_impossible(request)
        return _through(Resolved(id=2, view=view_of(request)), Resolved).view

    def choices(self, request: PlanRequest, site: str) -> SiteChoices:
        self.calls.append(f"choices {site}")
        event = ChoicesListed(id=6, choices=choices_of(request, site))
        return _through(event, ChoicesListed).choices

    def measure(
        self,
        current: PlanRequest,
        pinned: PlanRequest | None = None,
        *,
        seconds: float | None = None,
        first_look: bool = False,
        on_progress: OnProgress | None = None,
        on_planned: OnPlanned | None = None,
    ) -> Window:
        if on_planned is not None:
            on_planned(self._planned(current, pinned))
        self.waiting = 1
        while self._held or self._last == (current, pinned):
            self._go_on.wait()
            self._go_on.clear()
            if not self._held:
                break
        self._go_on.clear()
        self.waiting = 0
        self._last = (current, pinned)
        if self.die_next or self.die_always:
            self.die_next = False
            self._last = None
            raise WorkerLost("The worker died during measure: it was killed by SIGKILL.")
        self.windows += 1
        self.calls.append(f"measure {view_of(current).word} {view_of(pinned).word if pinned else '-'}")
        return _through(Measured(id=3, window=window_of(self.windows, current, pinned)), Measured).window

    def _planned(self, current: PlanRequest, pinned: PlanRequest | None) -> Planned:
        for request in filter(None, (current, pinned)):
            try:
                _refuse_impossible(request)
            except UsageError as error:
                raise PlanImpossible(str(error), request) from error
        other = view_of(pinned) if pinned else None
        return _through(Planned(id=3, current=view_of(current), pinned=other), Planned)

    def measure_ladder(
        self, requests: Sequence[PlanRequest], *, on_progress: OnProgress | None = None
    ) -> Ladder:
        raise UsageError("Only a recording has a ladder for the asking.")

    def forecast_flips(self, request: PlanRequest) -> FlipForecasts:
        raise UsageError("Flips are forecast in a recording only; here they can be measured.")

    def check(self, request: PlanRequest, *, on_progress: OnProgress | None = None) -> Gate:
        self.calls.append(f"check {view_of(request).word}")
        wrong = PlanRequest("cpu-blas", (), (("w1", KernelChoice(WRONG_KERNEL)),))
        checked = wrong if self.check_fails else request
        return _through(Checked(id=4, gate=gate_of(checked)), Checked).gate

    def calibrate(self, *, on_progress: OnProgress | None = None) -> Ceilings:
        self.calls.append("calibrate")
        return CEILINGS

    def rebuild(
        self,
        request: PlanRequest,
        site: str | None,
        changed: Sequence[str] = (),
        *,
        on_progress: OnProgress | None = None,
    ) -> tuple[KernelReport, ...]:
        raise UsageError("There is no folder of your own kernels.")

    def stop(self) -> None:
        self._go_on.set()

    def kill(self) -> None:
        self.may_restart.set()
        self.release()

    def restart(self, *, on_progress: OnProgress | None = None) -> Opened:
        self.may_restart.wait()
        self.log.add("worker restarted")
        self.calls.append("restart")
        return Opened(id=5, device=DEVICE, workload=WORKLOAD, rungs=RUNGS, default_rung="cpu-blas")

    def close(self) -> None:
        self.log.close()


def _refuse_impossible(request: PlanRequest) -> None:
    if IMPOSSIBLE in request.sets:
        raise UsageError("A batch of 999 needs 340 GB; 8 GB are free. Allowed here: up to 24.")


def _through(event: Message, kind: type[T]) -> T:
    """The event as it comes out at the other end of the wire."""
    decoded = decode_event(encode(event))
    assert isinstance(decoded, kind)
    return decoded
