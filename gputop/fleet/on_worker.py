"""What runs inside of a Dask worker: it keeps one gputop worker open and measures one job at a time in it.

A gputop worker ends when the process that holds its stdin does, so killing a Dask worker leaves nothing.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from gputop import __version__
from gputop.fleet.dask_library import distributed
from gputop.fleet.jobs import Job, Met, Opening
from gputop.ipc.opened_worker import OpenedWorker
from gputop.ipc.worker_client import WorkerClient

IDLE_S = 60.0
"""A gputop worker that is asked nothing for so long is ended: whoever asked may be gone."""
LOOK_S = 0.5
"""How often a job looks whether it is still wanted."""
_GONE = ("cancelled", "released", "forgotten")
"""States of a Dask task that nobody waits for any more."""

_turn = threading.Lock()
"""One measurement at a time in this process, however many threads Dask gave it."""
_kept: _Kept | None = None


@dataclass(slots=True)
class _Kept:
    """The gputop worker that stays open from job to job."""

    opening: Opening
    client: WorkerClient
    worker: OpenedWorker | None = None
    """None while it is being opened."""
    idle: threading.Timer | None = None


def meet(opening: Opening) -> Met:
    """Open the device that this Dask worker shows. Raise Unavailable or UsageError if it can't."""
    with _worker(opening, _Sender(topic=None)) as worker:
        return Met(__version__, socket.gethostname(), _cores(), worker.opened)


def measure(opening: Opening, job: Job[Any], topic: str) -> Any:
    """Run one job; what it says goes to the event topic. Raise what the job raises."""
    sender = _Sender(topic)
    with _worker(opening, sender) as worker:
        worker.note, worker.progress, worker.seconds = sender.note, sender.progress, job.seconds
        return job.run(worker, sender.line)


def part() -> None:
    """End the gputop worker: the fleet that it served is done."""
    with _turn:
        _end_kept()


class _Sender:
    """Sends what a job says to whoever subscribed to the topic."""

    def __init__(self, topic: str | None) -> None:
        self._topic = topic
        self._worker = distributed().get_worker()

    def note(self, text: str) -> None:
        self._send("note", text)

    def progress(self, text: str) -> None:
        self._send("progress", text)

    def line(self, line: bytes) -> None:
        self._send("line", line.decode())

    def _send(self, kind: str, text: str) -> None:
        if self._topic is not None:
            message = {"kind": kind, "address": self._worker.address, "text": text}
            self._worker.log_event(self._topic, message)


def kill() -> None:
    """End the gputop worker at once, from any thread: this process is about to end."""
    if (kept := _kept) is not None:
        kept.client.kill()


@contextlib.contextmanager
def _worker(opening: Opening, sender: _Sender) -> Iterator[OpenedWorker]:
    """The gputop worker of this process, opened as asked; killed as soon as the task is not wanted."""
    global _kept
    with _turn:
        if _kept is None or _kept.opening != opening or not _kept.client.alive:
            _end_kept()
            _kept = _Kept(opening, WorkerClient())
        kept = _kept
        if kept.idle is not None:
            kept.idle.cancel()
        try:
            with _killed_if_unwanted(kept.client):
                if kept.worker is None:
                    kept.worker = _opened(kept.client, opening, sender)
                yield kept.worker
        finally:
            kept.idle = threading.Timer(IDLE_S, _end_if_idle, (kept,))
            kept.idle.daemon = True
            kept.idle.start()


def _opened(client: WorkerClient, opening: Opening, sender: _Sender) -> OpenedWorker:
    try:
        client.start()
        opened = client.open(
            opening.backend,
            opening.workload,
            kernels_dir=opening.kernels_dir,
            on_progress=sender.progress,
        )
    except BaseException:
        client.kill()
        raise
    return OpenedWorker(client, opened, sender.note, sender.progress)


def _end_kept() -> None:
    """Call it with the turn held."""
    global _kept
    kept, _kept = _kept, None
    if kept is not None:
        if kept.idle is not None:
            kept.idle.cancel()
        kept.client.close()


def _end_if_idle(kept: _Kept) -> None:
    if _turn.acquire(blocking=False):
        try:
            if _kept is kept:
                _end_kept()
        finally:
            _turn.release()


@contextlib.contextmanager
def _killed_if_unwanted(client: WorkerClient) -> Iterator[None]:
    """Kill the gputop worker once the Dask task that runs in this thread is cancelled, or its worker closes.

    Dask can't stop a task that runs. The call under way then raises WorkerLost, in the task alone.
    """
    wanted, done = _wanted(), threading.Event()

    def watch() -> None:
        # Again and again: whoever lost a worker starts a new one.
        while not done.wait(LOOK_S):
            if not wanted():
                client.kill()

    thread = threading.Thread(target=watch, name="still-wanted", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _wanted() -> Callable[[], bool]:
    """Return a function, for any thread, that tells whether this thread's task is still waited for."""
    worker = distributed().get_worker()
    key = worker.get_current_task()

    def wanted() -> bool:
        task = worker.state.tasks.get(key)
        return worker.status.name in ("running", "paused") and task is not None and task.state not in _GONE

    return wanted


def _cores() -> tuple[int, ...]:
    return tuple(sorted(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else ()
