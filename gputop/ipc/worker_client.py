"""The front ends' side of the process boundary: starts a worker, speaks the protocol with it, outlives it.

A CUDA fault or a hung kernel costs the window under way: `call` raises WorkerLost, `restart` brings
a new worker to the same backend and workload. Nothing here knows what is measured.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from gputop import __version__
from gputop.ipc.answers import PlanImpossible
from gputop.ipc.conversation import Conversation, OnPlanned, OnProgress
from gputop.ipc.log import WorkerLog
from gputop.ipc.process import WorkerProcess, cause_of_death, worker_command
from gputop.ipc.protocol import (
    PROTOCOL_VERSION,
    Bye,
    Closing,
    Event,
    Failed,
    Hello,
    Measure,
    Measured,
    MeasureLadder,
    Open,
    Opened,
    Planned,
    Progress,
    Request,
    Stop,
)
from gputop.ipc.ssh_failures import ssh_sentence
from gputop.util import thread_limits
from gputop.util.child_environment import child_environment
from gputop.util.errors import GateFailed, GputopError, Unavailable, UsageError, WorkerLost

HANDSHAKE_S = 60.0
"""A cold start over ssh reads a whole Python environment from disk."""
SILENCE_S = 120.0
FAREWELL_S = 2.0
"""How long a worker that was told goodbye may take before it is killed."""
LOOK_S = 1.0
"""How long is waited at a time: of a longer absence no more than this counts as waiting."""
UNREADABLE = 0
"""The id of a worker's complaint about a line that it could not read as a request."""
SHELL_NOT_FOUND = 127
SSH_FAILED = 255
SSH_LINES = 40
"""Lines of ssh in which a reason is looked for: a changed host key is told in a dozen."""

_ERRORS: Mapping[int, type[GputopError]] = {
    kind.exit_code: kind for kind in (GateFailed, UsageError, Unavailable, WorkerLost)
}


class WorkerClient(Conversation):
    """A conversation with a worker process that survives the worker."""

    def __init__(
        self,
        *,
        remote: str | None = None,
        command: Sequence[str] | None = None,
        log_path: Path | None = None,
        silence_s: float = SILENCE_S,
        handshake_s: float = HANDSHAKE_S,
    ) -> None:
        """`remote` is an ssh destination; `command` starts something else that speaks the protocol.

        `silence_s`: how long a request may go without Progress, its own measuring budget not counted.
        """
        if remote is not None and (not remote or remote.startswith("-")):
            raise UsageError(f"{remote!r} is no ssh destination: give HOST or USER@HOST.")
        self.remote = remote
        self.log = WorkerLog(log_path)
        self.hello: Hello | None = None
        self._command = tuple(command) if command is not None else worker_command(remote)
        self.silence_s = silence_s
        self._handshake_s = handshake_s
        self._process: WorkerProcess | None = None
        self._launched = False
        """Whether that process was started and its greeting is still to be heard."""
        self._opening: Open | None = None
        """What was asked for at the launch, whose answer is still to be heard."""
        self._last_open: Open | None = None
        self._last_id = 0
        self._windows = 0
        self._turn = threading.Lock()

    @property
    def ready(self) -> bool:
        """Whether the worker runs and has greeted."""
        return self.alive and not self._launched

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.alive

    @property
    def pid(self) -> int | None:
        """Return the id of the process started here: the worker, or the ssh that leads to it."""
        return self._process.pid if self._process is not None else None

    def launch(self, opening: Open | None = None) -> None:
        """Start a worker and wait for nothing: what else there is to load is loaded meanwhile, then `start`.

        `opening` is asked for at once, and the `open` of the same afterwards waits for its answer.
        Unavailable when its command can't be run.
        """
        self.hello = self._opening = None
        self.log.begin(f"starting: {' '.join(self._command)}")
        try:
            self._process = WorkerProcess(self._command, child_environment(), self.log)
        except OSError as error:
            if thread_limits.is_met(error):
                raise Unavailable(thread_limits.sentence()) from error
            if self.remote is not None and isinstance(error, FileNotFoundError):
                raise Unavailable("ssh is not installed here: --remote needs OpenSSH's client.") from error
            raise Unavailable(f"Can't start the worker: {self._command[0]}: {error.strerror}.") from error
        self._launched = True
        if opening is not None:
            self._opening = msgspec.structs.replace(opening, id=self._new_id())
            # Of a worker that is gone already `start` tells.
            with contextlib.suppress(OSError):
                self._process.send(self._opening)

    def start(self) -> Hello:
        """Start a worker, or meet the one that was launched, and check that it speaks this protocol.

        WorkerLost when it dies or is silent; Unavailable when the host can't be reached, has no gputop,
        or has one that speaks another protocol.
        """
        if not self._launched:
            self.launch()
        self._launched = False
        assert self._process is not None
        event = self._next_event(self._process, self._handshake_s, "start")
        if not isinstance(event, Hello):
            self.kill()
            raise WorkerLost("The worker did not greet as a gputop worker does.")
        if event.protocol != PROTOCOL_VERSION:
            self.kill()
            raise Unavailable(
                f"The worker on {event.host} is gputop {event.version} and speaks protocol {event.protocol}, "
                f"this is {__version__} and speaks {PROTOCOL_VERSION}: install one version on both sides."
            )
        self.hello = event
        return event

    def call(
        self,
        request: Request,
        *,
        on_progress: OnProgress | None = None,
        on_planned: OnPlanned | None = None,
    ) -> Closing:
        """Stamp the request's id, send it and wait for its closing event.

        Raise WorkerLost if the worker died, lost its device or was silent beyond the deadline: then it is
        gone.
        """
        with self._turn:
            process = self._process
            if process is None or not process.alive:
                raise self._lost(process, "is not running")
            asked = self._asked_at_launch(request)
            stamped = asked or msgspec.structs.replace(request, id=self._new_id())
            opened_before = self._last_open
            if isinstance(stamped, Open):
                self._last_open = stamped
            try:
                if asked is None:
                    self._send(process, stamped)
                return self._answer(process, stamped, on_progress, on_planned)
            except (UsageError, Unavailable):
                # What could not be opened is not what `restart` opens again.
                self._last_open = opened_before
                raise

    def stop(self) -> None:
        if self._process is not None:
            # Where the worker is gone nothing is under way, and `call` says the rest.
            with contextlib.suppress(OSError, ValueError):
                self._process.send(Stop())

    def kill(self) -> None:
        self._launched = False
        if self._process is not None:
            self._process.kill()
            self._process.hang_up()
            self._process.end(FAREWELL_S)

    def restart(self, *, on_progress: OnProgress | None = None) -> Opened | None:
        self.kill()
        self.start()
        if self._last_open is None:
            return None
        return self._ask(self._last_open, Opened, on_progress)

    def close(self) -> None:
        self.end_worker()
        self.log.close()

    def end_worker(self) -> None:
        """Say goodbye and wait for the worker's end. Harmless without one; `start` begins another."""
        process, self._process = self._process, None
        self._launched = False
        if process is not None:
            # Where it is already gone, only its remains are to be collected.
            with contextlib.suppress(OSError, ValueError):
                process.send(Bye())
            process.hang_up()
            process.end(FAREWELL_S)

    def _new_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def _asked_at_launch(self, request: Request) -> Open | None:
        """The request that went out with the launch, where this one asks for the same."""
        opening, self._opening = self._opening, None
        if opening is None or not isinstance(request, Open):
            return None
        return opening if msgspec.structs.replace(request, id=opening.id) == opening else None

    def _send(self, process: WorkerProcess, request: Request) -> None:
        """Raise WorkerLost if it is gone, UsageError for a request that can't be sent."""
        try:
            process.send(request)
        except OSError:
            raise self._lost(process, "is gone") from None

    def _answer(
        self,
        process: WorkerProcess,
        request: Request,
        on_progress: OnProgress | None,
        on_planned: OnPlanned | None,
    ) -> Closing:
        """Events of this request until the one that closes it."""
        assert not isinstance(request, Stop | Bye)
        patience_s = self.silence_s
        if isinstance(request, Measure | MeasureLadder):
            patience_s += request.seconds or 0.0
        doing = str(request.__struct_config__.tag)
        while True:
            event = self._next_event(process, patience_s, doing)
            if isinstance(event, Hello) or event.id not in (UNREADABLE, request.id):
                continue
            if isinstance(event, Progress):
                if on_progress is not None:
                    on_progress(event.text)
            elif isinstance(event, Planned):
                if on_planned is not None:
                    on_planned(event)
            elif isinstance(event, Failed):
                if event.fatal:
                    self.kill()
                    raise WorkerLost(event.message)
                raise _error(event)
            elif isinstance(event, Measured):
                return self._numbered(event)
            else:
                return event

    def _numbered(self, event: Measured) -> Measured:
        """Its window under this conversation's own count: a worker's begins anew with each worker.

        A recorded window keeps its number, by which it is the same one whenever it is shown.
        """
        if event.window.device.recording:
            return event
        self._windows += 1
        number = self._windows
        lanes = tuple(
            replace(lane, rows=tuple(replace(row, window=number) for row in lane.rows))
            for lane in event.window.lanes
        )
        return msgspec.structs.replace(event, window=replace(event.window, number=number, lanes=lanes))

    def _next_event(self, process: WorkerProcess, patience_s: float, doing: str) -> Event:
        """The next event; WorkerLost when the worker ends, or is killed because patience ends."""
        try:
            event = _waited_for(process.events, patience_s)
        except queue.Empty:
            process.kill()
            process.end(FAREWELL_S)
            waited = self._handshake_s if doing == "start" else self.silence_s
            what = f"no word for {waited:g} s during {doing}, so it was killed"
            raise WorkerLost(f"The worker hung: {what}.{self._evidence()}") from None
        if event is None:
            raise self._lost(process, f"died during {doing}")
        return event

    def _lost(self, process: WorkerProcess | None, how: str) -> GputopError:
        """Return the exception for a worker that ended by itself."""
        if process is None:
            return WorkerLost(f"The worker {how}.")
        code = process.end(FAREWELL_S)
        if (told := _last_failure(process.events)) is not None:
            return _error(told)
        if self.remote is not None and self.hello is None and code == SHELL_NOT_FOUND:
            return Unavailable(
                f"{self.remote} has no gputop on the PATH of a non-interactive shell. "
                f"Install it there: pip install gputop-roofline."
            )
        if self.remote is not None and code == SSH_FAILED and self.hello is None:
            said = self.log.last_words(SSH_LINES)
            return Unavailable(f"{ssh_sentence(self.remote, said)}{self._evidence()}")
        if self.remote is not None and code == SSH_FAILED:
            return WorkerLost(
                f"The connection to {self.remote} broke: the worker there {how}.{self._evidence()}"
            )
        # Of a worker elsewhere only its ssh ended here.
        why = "" if self.remote is not None else process.why_killed(code)
        return WorkerLost(f"The worker {how}: {cause_of_death(code)}.{why}{self._evidence()}")

    def _evidence(self) -> str:
        """Its last readable words and where the whole log is."""
        words = self.log.last_words()
        said = f" Its last words: {words}." if words else ""
        return said + (f" Log: {self.log.path}." if self.log.path is not None else "")


def _error(event: Failed) -> GputopError:
    """Return the exception that the front end raises for a worker's failure."""
    if event.refused is not None:
        return PlanImpossible(event.message, event.refused)
    return _ERRORS.get(event.exit_code, WorkerLost)(event.message)


def _last_failure(events: queue.SimpleQueue[Event | None]) -> Failed | None:
    """Return why a worker ended, if it said so before the first request."""
    told = None
    with contextlib.suppress(queue.Empty):
        while True:
            event = events.get_nowait()
            told = event if isinstance(event, Failed) else told
    return told


def _waited_for(events: queue.SimpleQueue[Event | None], patience_s: float) -> Event | None:
    """Return the next event, or raise queue.Empty after `patience_s` of waiting.

    Time in which this process was stopped (^Z, SIGSTOP) is no waiting. What came meanwhile is still to be
    read by another thread, so there is one more look after the last.
    """
    left_s = patience_s
    while left_s > 0:
        begun = time.monotonic()
        look_s = min(left_s, LOOK_S)
        with contextlib.suppress(queue.Empty):
            return events.get(timeout=look_s)
        left_s -= min(look_s, time.monotonic() - begun)
    return events.get(timeout=LOOK_S)
