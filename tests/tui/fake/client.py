"""A client that replays a canned run: what it returns has been through the protocol's encoder and decoder."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TypeVar, cast

from gputop.ipc.answers import PlanImpossible
from gputop.ipc.conversation import Conversation, OnPlanned, OnProgress
from gputop.ipc.log import WorkerLog
from gputop.ipc.protocol import (
    Calibrate,
    Calibrated,
    Check,
    Checked,
    ChoicesListed,
    Closing,
    ListChoices,
    Measure,
    Measured,
    Message,
    Open,
    Opened,
    Planned,
    Request,
    Resolve,
    Resolved,
    decode_event,
    encode,
)
from gputop.plan.types import KernelChoice, PlanRequest, Workload
from gputop.results.records import Window
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


class ReplayedClient(Conversation):
    """Each plan gets one window at once; the next one waits for `release` or `stop`."""

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

    def call(
        self,
        request: Request,
        *,
        on_progress: OnProgress | None = None,
        on_planned: OnPlanned | None = None,
    ) -> Closing:
        closing: Message
        match request:
            case Open(backend=backend, workload=workload):
                if on_progress is not None:
                    on_progress("measuring ceilings")
                self.calls.clear()
                self.windows, self._last = 0, None
                self.calls.append(f"open {backend} {workload.name}")
                closing = _opened(workload)
            case Resolve(request=plan):
                self.resolved += 1
                _refuse_impossible(plan)
                closing = Resolved(id=2, view=view_of(plan))
            case ListChoices(request=plan, site=site):
                self.calls.append(f"choices {site}")
                closing = ChoicesListed(id=6, choices=choices_of(plan, site))
            case Measure(current=current, pinned=pinned):
                if on_planned is not None:
                    on_planned(_through(_planned(current, pinned)))
                closing = Measured(id=3, window=self._window(current, pinned))
            case Check(request=plan):
                self.calls.append(f"check {view_of(plan).word}")
                wrong = PlanRequest("cpu-blas", (), (("w1", KernelChoice(WRONG_KERNEL)),))
                closing = Checked(id=4, gate=gate_of(wrong if self.check_fails else plan))
            case Calibrate():
                self.calls.append("calibrate")
                closing = Calibrated(id=7, ceilings=CEILINGS)
            case _:
                raise UsageError(f"Here nobody answers {type(request).__name__}.")
        return cast("Closing", _through(closing))

    def _window(self, current: PlanRequest, pinned: PlanRequest | None) -> Window:
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
        return window_of(self.windows, current, pinned)

    def stop(self) -> None:
        self._go_on.set()

    def kill(self) -> None:
        self.may_restart.set()
        self.release()

    def restart(self, *, on_progress: OnProgress | None = None) -> Opened:
        self.may_restart.wait()
        self.log.add("worker restarted")
        self.calls.append("restart")
        return _opened(WORKLOAD)

    def close(self) -> None:
        self.log.close()


def _refuse_impossible(request: PlanRequest) -> None:
    if IMPOSSIBLE in request.sets:
        raise UsageError("A batch of 999 needs 340 GB; 8 GB are free. Allowed here: up to 24.")


def _opened(workload: Workload) -> Opened:
    return Opened(id=1, device=DEVICE, workload=workload, rungs=RUNGS, default_rung="cpu-blas")


def _planned(current: PlanRequest, pinned: PlanRequest | None) -> Planned:
    for request in filter(None, (current, pinned)):
        try:
            _refuse_impossible(request)
        except UsageError as error:
            raise PlanImpossible(str(error), request) from error
    return Planned(id=3, current=view_of(current), pinned=view_of(pinned) if pinned else None)


def _through(event: T) -> T:
    """The event as it comes out at the other end of the wire."""
    decoded = decode_event(encode(event))
    assert isinstance(decoded, type(event))
    return decoded
