"""What the worker says on stderr: a bounded tail in memory, for messages and the log pane, and a file."""

from __future__ import annotations

import threading
from collections import deque
from pathlib import Path
from typing import BinaryIO

from gputop.util.paths import log_dir
from gputop.util.printable import printable

TAIL_LINES = 500
FILE_LIMIT_BYTES = 4_000_000
"""A longer log file is begun anew by the next client."""


def default_log_path() -> Path | None:
    """Return `worker.log` in the user's log folder of this platform; None without a home folder."""
    folder = log_dir()
    return folder and folder / "worker.log"


class WorkerLog:
    """Fed line by line from the thread that reads the worker's stderr; read from any thread."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or default_log_path()
        self._lock = threading.Lock()
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._said: deque[str] = deque(maxlen=TAIL_LINES)
        self._file: BinaryIO | None = None
        if self.path is None:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            full = self.path.exists() and self.path.stat().st_size > FILE_LIMIT_BYTES
            self._file = open(self.path, "wb" if full else "ab", buffering=0)  # noqa: SIM115 (closed by close)
        except OSError:
            # A read-only home must not stop a measurement: the tail still has the lines.
            self.path = None

    def begin(self, title: str) -> None:
        """A new worker starts: `title` heads its lines, and `last_words` forgets the one before."""
        self.add(title)
        with self._lock:
            self._said.clear()

    def add(self, line: str) -> None:
        """Keep one line, given without its newline, as it may be shown on a terminal."""
        line = printable(line)
        with self._lock:
            self._tail.append(line)
            self._said.append(line)
            if self._file is not None:
                try:
                    self._file.write(line.encode("utf-8", "replace") + b"\n")
                except OSError:
                    self._file.close()
                    self._file = self.path = None

    def lines(self) -> tuple[str, ...]:
        """The last lines, oldest first."""
        with self._lock:
            return tuple(self._tail)

    def last_words(self, count: int = 3) -> str:
        """The last lines of this worker that a person can read: none blank, none inside a traceback."""
        with self._lock:
            said = [line for line in self._said if line.strip() and not line.startswith((" ", "Traceback "))]
        return " | ".join(said[-count:])

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None
