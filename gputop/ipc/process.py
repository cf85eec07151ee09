"""Starting, reading and ending one worker process; what it means is the client's business."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import IO

from gputop.ipc.log import WorkerLog
from gputop.ipc.protocol import Event, Request, decode_event, encode
from gputop.util import cgroups, signals
from gputop.util.errors import UsageError
from gputop.util.units import size_bytes

LONGEST_EVENT_BYTES = 64 << 20
LONGEST_LOG_LINE_BYTES = 64 << 10
CONNECT_S = 20
"""How long ssh waits for a host: less than the client does for a greeting, so that ssh says why."""


class WorkerProcess:
    """One worker process with the two threads that read it."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], log: WorkerLog) -> None:
        self._log = log
        self.events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        """Decoded events; None once its end of the conversation is closed."""
        # A session of its own: the terminal's ^C belongs to the front end, and killing the group
        # takes along what the worker itself started (a peer's compilers).
        self._popen = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            start_new_session=True,
        )
        signals.last_acts.append(self.kill)
        self.pid = self._popen.pid
        self._memory_kills = cgroups.memory_kills()
        """How many processes the kernel had ended for want of memory when this one began."""
        self._write_lock = threading.Lock()
        self._threads = [
            threading.Thread(target=read, args=(pipe,), name=name, daemon=True)
            for read, pipe, name in (
                (self._read_events, self._popen.stdout, "worker-events"),
                (self._read_log, self._popen.stderr, "worker-log"),
            )
        ]
        try:
            for thread in self._threads:
                thread.start()
        except RuntimeError:
            # No thread to read it: it must not stay.
            self.kill()
            self._popen.wait()
            raise

    @property
    def alive(self) -> bool:
        return self._popen.poll() is None

    def send(self, request: Request) -> None:
        """OSError when the worker is gone."""
        assert self._popen.stdin is not None
        with self._write_lock:
            self._popen.stdin.write(encode(request))
            self._popen.stdin.flush()

    def end(self, patience_s: float) -> int:
        """Wait for its exit, kill it when patience ends; returns the exit code, negative for a signal."""
        try:
            code = self._popen.wait(patience_s)
        except subprocess.TimeoutExpired:
            self.kill()
            code = self._popen.wait()
        with contextlib.suppress(ValueError):
            signals.last_acts.remove(self.kill)
        for thread in self._threads:
            thread.join(timeout=1.0)
        return code

    def why_killed(self, code: int) -> str:
        """Return what is known of a SIGKILL that this process did not send; nothing for another end."""
        if code != -signal.SIGKILL:
            return ""
        kills, before = cgroups.memory_kills(), self._memory_kills
        if kills is None or before is None:
            return " Memory is the likely cause: take a smaller batch or workload."
        if kills == before:
            return " Not by the kernel for want of memory: a user, a scheduler or a memory daemon did."
        limit = cgroups.memory_limit()
        bound = f", and its control group may use {size_bytes(limit.limit_bytes)}" if limit else ""
        return (
            f" Memory is the likely cause: the kernel ended a process for want of it meanwhile{bound}. "
            "Take a smaller batch or workload."
        )

    def kill(self) -> None:
        """SIGKILL to the worker and what it started. Harmless when it is gone."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    def hang_up(self) -> None:
        """Close its stdin, on which a worker exits."""
        assert self._popen.stdin is not None
        # OSError: a line that a dead worker did not take is still to be flushed.
        with self._write_lock, contextlib.suppress(OSError):
            self._popen.stdin.close()

    def _read_events(self, pipe: IO[bytes]) -> None:
        try:
            for line in _lines(pipe, LONGEST_EVENT_BYTES):
                try:
                    self.events.put(decode_event(line))
                except UsageError:
                    # A login shell's banner over ssh, or a newer worker's event: worth a look, not an end.
                    self._log.add(f"not an event: {line[:200].decode('utf-8', 'replace').rstrip()}")
        finally:
            # Whatever ended it: a call that waits must not wait on.
            self.events.put(None)

    def _read_log(self, pipe: IO[bytes]) -> None:
        for line in _lines(pipe, LONGEST_LOG_LINE_BYTES):
            self._log.add(line.decode("utf-8", "replace").rstrip("\r\n"))


def _lines(pipe: IO[bytes], most_bytes: int) -> Iterator[bytes]:
    """The lines of a pipe; one that is longer comes in pieces, so that it can't fill the memory."""
    with pipe:
        while line := pipe.readline(most_bytes):
            yield line


def cause_of_death(code: int) -> str:
    """An exit code in words."""
    if code >= 0:
        return f"it exited with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"it was killed by {name}"


def worker_command(remote: str | None) -> tuple[str, ...]:
    if remote is not None:
        # BatchMode: a password prompt would wait on a terminal that the front end owns.
        settings = ("-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_S}")
        return ("ssh", *settings, "--", remote, "gputop", "worker")
    # -P: a file called profile.py or queue.py where the user stands must not become the worker's.
    # Past the command line, of which it would load all commands.
    return (sys.executable, "-P", "-m", "gputop.ipc.worker")
