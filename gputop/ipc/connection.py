"""What the screen and the commands talk to: a worker process for a device, this process for a recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gputop.ipc.conversation import Conversation, OnPlanned, OnProgress
from gputop.ipc.protocol import REPLAY, Closing, Open, Opened, Request
from gputop.ipc.replay_client import ReplayClient
from gputop.ipc.worker_client import WorkerClient

if TYPE_CHECKING:
    from pathlib import Path

    from gputop.session.replay import Replay


class Connection(Conversation):
    """Leads each request to what was opened last. A worker runs while a device is open, and only then.

    A recording on another host (`remote`) is read there, by the worker.
    """

    def __init__(
        self,
        *,
        remote: str | None = None,
        log_path: Path | None = None,
        read_ahead: Replay | None = None,
    ) -> None:
        """`remote` is an ssh destination; `read_ahead` a recording that was read before."""
        self._worker = WorkerClient(remote=remote, log_path=log_path)
        self.log = self._worker.log
        self._reader = ReplayClient(self.log, read_ahead)
        self._serving: Conversation = self._worker

    def launch(self, opening: Open) -> None:
        """Start the worker that `opening` needs, if it needs one, and wait for nothing."""
        if not self._is_read_here(opening):
            self._worker.launch(opening)

    def start(self) -> None:
        """Do nothing: a worker is started for the first device that is opened."""

    def call(
        self,
        request: Request,
        *,
        on_progress: OnProgress | None = None,
        on_planned: OnPlanned | None = None,
    ) -> Closing:
        if not isinstance(request, Open):
            return self._serving.call(request, on_progress=on_progress, on_planned=on_planned)
        if self._is_read_here(request):
            closing = self._reader.call(request, on_progress=on_progress)
            self._serving, self.recording = self._reader, self._reader.recording
            # What it holds of the device is for others to use meanwhile.
            self._worker.end_worker()
            return closing
        if not self._worker.ready:
            if on_progress is not None:
                on_progress("starting the worker")
            self._worker.start()
        closing = self._worker.call(request, on_progress=on_progress)
        self._serving, self.recording = self._worker, None
        return closing

    def stop(self) -> None:
        self._worker.stop()

    def kill(self) -> None:
        self._worker.kill()

    def restart(self, *, on_progress: OnProgress | None = None) -> Opened | None:
        return self._serving.restart(on_progress=on_progress)

    def close(self) -> None:
        self._worker.close()

    def _is_read_here(self, request: Open) -> bool:
        return request.backend == REPLAY and self._worker.remote is None
