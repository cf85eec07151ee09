"""The measuring process: one session, driven by protocol lines on stdin, answering on its own descriptor.

Ends when it is told goodbye or its stdin closes. Never imports a user interface.
"""

from __future__ import annotations

import faulthandler
import os
import queue
import signal
import socket
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, BinaryIO

from gputop import __version__
from gputop.backends import warm_up
from gputop.ipc.answers import Answering, PlanImpossible, answer, opened
from gputop.ipc.protocol import (
    PROTOCOL_VERSION,
    REPLAY,
    Bye,
    Event,
    Failed,
    Hello,
    Measured,
    Open,
    Opened,
    Progress,
    Request,
    Stop,
    decode_request,
    encode,
)
from gputop.util import heartbeat, host_cpu, thread_limits
from gputop.util.errors import DeviceLost, GputopError, Unavailable, UsageError, WorkerLost
from gputop.util.paths import why_no_cache
from gputop.util.printable import printable
from gputop.util.startup_trace import mark

if TYPE_CHECKING:
    from gputop.results.records import Window

PROGRESS_PER_S = 5.0
PROGRESS_BURST = 5.0
"""Short steps in a row are all told; a flood is thinned to the rate above."""
SWITCH_S = 2e-4
"""How long a thread busy in Python keeps others waiting. Those that draw the weights call NumPy thousands of
times, and beside one that loads modules each call would wait for Python's own 5 ms."""
SPARE_THREADS = 2
"""Threads of a worker besides those of its BLAS: the one that reads requests, the one that draws weights."""
LAST_STEP_S = 5.0
"""How long the step under way may take after the client is gone."""


def main() -> int:
    """Serve until told goodbye; returns the exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.enable()
    sys.setswitchinterval(SWITCH_S)
    mark("worker: started")
    requests, events = _take_descriptors()
    try:
        _Worker(requests, events).serve()
    except BrokenPipeError:
        # The client is gone: there is nobody to tell.
        return 0
    return 0


def _take_descriptors() -> tuple[BinaryIO, int]:
    """The protocol's own copies of fd 0 (a stream) and 1; those then lead nowhere and to stderr.

    So neither a library's print nor a child process's read can break into the conversation.
    """
    requests = os.fdopen(os.dup(0), "rb")
    events = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    os.dup2(2, 1)
    return requests, events


@dataclass(slots=True)
class _Job:
    request: Request
    stop: threading.Event = field(default_factory=threading.Event)


class _Budget:
    """A token bucket: bursts up to `PROGRESS_BURST`, on average `PROGRESS_PER_S`."""

    def __init__(self) -> None:
        self._tokens = PROGRESS_BURST
        self._at = time.monotonic()

    def take(self) -> bool:
        now = time.monotonic()
        self._tokens = min(PROGRESS_BURST, self._tokens + (now - self._at) * PROGRESS_PER_S)
        self._at = now
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True


class _Worker:
    """Requests are read on one thread, so that Stop is seen during a window, and served on the main one."""

    def __init__(self, requests: BinaryIO, events: int) -> None:
        self._requests = requests
        self._events = events
        self._emit_lock = threading.Lock()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._newest: _Job | None = None
        self._budget = _Budget()
        self._session: Answering | None = None
        self._unit = uuid.uuid4().hex
        """Of windows that are pooled: this process and what it prepares."""
        self._served = threading.Event()

    def serve(self) -> None:
        """Greet, then answer requests in order until Bye or the end of stdin."""
        self._emit(
            Hello(
                protocol=PROTOCOL_VERSION,
                version=__version__,
                pid=os.getpid(),
                host=printable(socket.gethostname()),
            )
        )
        try:
            # Before a BLAS starts its own: one that can't hangs.
            thread_limits.require(host_cpu.affinity_cores() + SPARE_THREADS)
        except Unavailable as error:
            self._emit(Failed(id=0, exit_code=error.exit_code, message=str(error)))
            return
        threading.Thread(target=self._read, name="requests", daemon=True).start()
        # Loaded while the client gets ready: both are waited for.
        import gputop.session.opening  # noqa: F401

        try:
            while (job := self._jobs.get()) is not None:
                mark(f"worker: {type(job.request).__name__}")
                self._emit(self._answer(job))
                mark("worker: answered")
        finally:
            if self._session is not None:
                self._session.close()
            self._served.set()

    def _read(self) -> None:
        """Queue requests until the client leaves; Stop acts at once."""
        try:
            self._take_requests()
        finally:
            self._jobs.put(None)
        if self._newest is not None:
            self._newest.stop.set()
        if not self._served.wait(LAST_STEP_S):
            os._exit(0)

    def _take_requests(self) -> None:
        for line in self._requests:
            try:
                request = decode_request(line)
            except UsageError as error:
                self._emit(Failed(id=0, exit_code=error.exit_code, message=str(error)))
                continue
            if isinstance(request, Bye):
                return
            if isinstance(request, Stop):
                # The client asks one thing at a time: the newest job is the one under way, begun or not.
                if self._newest is not None:
                    self._newest.stop.set()
                continue
            if isinstance(request, Open) and self._session is None:
                warm_up(request.backend, request.workload, request.device)
            self._newest = _Job(request)
            self._jobs.put(self._newest)

    def _answer(self, job: _Job) -> Event:
        """The closing event of a request, whatever happens to it."""
        request = job.request
        assert not isinstance(request, Stop | Bye)
        try:
            with heartbeat.on_heartbeat(self._teller(request.id)) as say:
                return self._do(request, job.stop, say)
        except GputopError as error:
            fatal = isinstance(error, DeviceLost)
            refused = error.request if isinstance(error, PlanImpossible) else None
            return Failed(
                id=request.id, exit_code=error.exit_code, message=str(error), fatal=fatal, refused=refused
            )
        except BrokenPipeError:
            raise
        except MemoryError:
            traceback.print_exc()
            message = "There is not enough memory for this plan on this workload: take a smaller batch."
            return Failed(id=request.id, exit_code=UsageError.exit_code, message=message)
        except Exception as error:
            traceback.print_exc()
            if thread_limits.is_met(error):
                message = thread_limits.sentence()
                return Failed(id=request.id, exit_code=Unavailable.exit_code, message=message)
            what = f"{type(error).__name__}: {error}".splitlines()[0]
            doing = type(request).__name__.lower()
            message = f"The worker failed at {doing} ({what}); its log has the details."
            return Failed(id=request.id, exit_code=WorkerLost.exit_code, message=message)

    def _do(self, request: Request, stop: threading.Event, say: Callable[[str], None]) -> Event:
        if isinstance(request, Open):
            return self._open(request, say)
        closing = answer(self._opened(), request, stop.is_set, say, self._emit)
        if isinstance(closing, Measured):
            return Measured(id=closing.id, window=self._pooled(closing.window))
        return closing

    def _open(self, request: Open, say: Callable[[str], None]) -> Opened:
        from gputop.session.opening import open_session

        # A recording takes no memory: where it can't be read, the session before goes on.
        if self._session is not None and request.backend != REPLAY:
            self._session.close()
            self._session = None
        session = open_session(
            request.backend,
            request.workload,
            device=request.device,
            kernels_dir=request.kernels_dir,
            say=say,
        )
        if self._session is not None:
            self._session.close()
        self._session = session
        no_cache = "" if request.backend == REPLAY else why_no_cache()
        return opened(request, session, " ".join(filter(None, (session.note, no_cache))))

    def _pooled(self, window: Window) -> Window:
        """The window beside earlier ones of its pair. A file that can't be used costs a note."""
        if window.comparison is None or window.device.recording:
            return window
        from gputop.session import window_pool

        path = window_pool.pool_file()
        if path is None:
            return window
        try:
            pooled = window_pool.pooled(path, window, self._opened().workload, self._unit)
        except window_pool.PoolUnusable as error:
            return replace(window, notes=(*window.notes, printable(str(error))))
        return replace(window, pooled=pooled)

    def _opened(self) -> Answering:
        if self._session is None:
            raise UsageError("Nothing is open: the first request must be open.")
        return self._session

    def _teller(self, request_id: int) -> Callable[[str], None]:
        def say(text: str) -> None:
            mark(f"worker: {text}")
            if self._budget.take():
                self._emit(Progress(id=request_id, text=text))

        return say

    def _emit(self, event: Event) -> None:
        try:
            line = memoryview(encode(event))
        except UsageError as error:
            assert not isinstance(event, Hello)
            line = memoryview(encode(Failed(id=event.id, exit_code=error.exit_code, message=str(error))))
        with self._emit_lock:
            while line:
                line = line[os.write(self._events, line) :]


if __name__ == "__main__":
    raise SystemExit(main())
