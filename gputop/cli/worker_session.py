"""A worker opened for a command: its progress told, and a lost window measured once more."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Self

from gputop.cli.options import DEFAULT_WORKLOAD, kernels_dir_of, workload_of
from gputop.cli.terminal import Narrator
from gputop.ipc.connection import Connection
from gputop.ipc.opened_worker import OpenedWorker, Result
from gputop.ipc.protocol import Opened
from gputop.plan.types import PlanRequest
from gputop.results.records import Window
from gputop.util.errors import UsageError
from gputop.util.startup_trace import mark


class WorkerSession:
    """The worker, the opened backend and workload, for the length of a command.

    ^C and faults kill the worker; otherwise it is told goodbye.
    """

    opened: Opened
    worker: OpenedWorker

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._workload = workload_of(options)
        self._kernels_dir = kernels_dir_of(options)
        self.narrator = Narrator()
        self.client = Connection(remote=options.remote)
        self._shown: set[int] = set()
        """Numbers of the recorded windows that were shown."""

    def __enter__(self) -> Self:
        try:
            self.client.__enter__()
            mark("gputop: opening")
            self.opened = self.client.open(
                self._options.backend,
                self._workload,
                device=self._options.device,
                kernels_dir=self._kernels_dir,
                on_progress=self.narrator.progress,
            )
            self.worker = OpenedWorker(
                self.client, self.opened, self.narrator.note, self.narrator.progress, self._options.seconds
            )
            if self.opened.note:
                self.narrator.note(self.opened.note)
            if self.opened.device.recording:
                self._meet_recording()
        except BaseException:
            self.narrator.clear()
            self.client.kill()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        mark("gputop: saying goodbye")
        self.narrator.clear()
        self.client.__exit__(kind, error, trace)

    def _meet_recording(self) -> None:
        """Say what it is. UsageError where another workload than its own was asked for."""
        own = self.opened.workload
        options = self._options
        asked = options.workload != DEFAULT_WORKLOAD or options.seq is not None or options.weights is not None
        if asked and self._workload != own:
            raise UsageError(f"This is a recording of {own.name}: leave --workload, --seq and --weights out.")
        self.narrator.note(f"{self.opened.device.recording}: nothing is measured here.")

    def measure(
        self,
        current: PlanRequest,
        pinned: PlanRequest | None = None,
        *,
        aa: bool = False,
        check_phases: bool = False,
    ) -> Window:
        """One window, as long as the options say.

        UsageError where a recording has no other one: the same one twice is no more evidence.
        """
        window = self.worker.measure(current, pinned, aa=aa, check_phases=check_phases)
        self.narrator.clear()
        if window.device.recording:
            if window.number in self._shown:
                raise UsageError(f"The recording has no more than {len(self._shown)} of these windows.")
            self._shown.add(window.number)
        return window

    def retry_once(self, work: Callable[[], Result]) -> Result:
        """`work`, and where the worker is lost in it, once more with a new one; then WorkerLost."""
        result = self.worker.retry_once(work)
        self.narrator.clear()
        return result
