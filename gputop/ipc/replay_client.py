"""A conversation with a recording that is read in this process: no worker, nothing on a wire."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

from gputop.ipc.answers import answer, opened
from gputop.ipc.conversation import Conversation, OnPlanned, OnProgress
from gputop.ipc.log import WorkerLog
from gputop.ipc.protocol import Closing, Open, Opened, Request
from gputop.util.errors import GputopError, UsageError, WorkerLost

if TYPE_CHECKING:
    from gputop.session.replay import Replay


class ReplayClient(Conversation):
    """Answers at once. Raises WorkerLost for a fault of its own, as for one of a worker."""

    def __init__(self, log: WorkerLog, read_ahead: Replay | None = None) -> None:
        """`read_ahead`: a recording that was read before, for the first Open that names it."""
        self.log = log
        self._read_ahead = read_ahead
        self._replay: Replay | None = None
        self._last_open: Open | None = None

    def start(self) -> None:
        """Do nothing: there is no process."""

    def call(
        self,
        request: Request,
        *,
        on_progress: OnProgress | None = None,
        on_planned: OnPlanned | None = None,
    ) -> Closing:
        try:
            if isinstance(request, Open):
                return self._open(request)
            if self._replay is None:
                raise UsageError("Nothing is open: the first request must be open.")
            return answer(
                self._replay, request, lambda: False, on_progress or _to_nobody, on_planned or _to_nobody
            )
        except GputopError:
            raise
        except MemoryError:
            raise UsageError("There is not enough memory for this recording.") from None
        except Exception as error:
            for line in traceback.format_exc().splitlines():
                self.log.add(line)
            what = f"{type(error).__name__}: {error}".splitlines()[0]
            doing = type(request).__name__.lower()
            raise WorkerLost(f"The recording failed at {doing} ({what}). Log: {self.log.path}.") from error

    def _open(self, request: Open) -> Opened:
        from gputop.session.replay import Replay

        ahead, self._read_ahead = self._read_ahead, None
        if ahead is not None and ahead.word == request.device and request.kernels_dir is None:
            replay = ahead
        else:
            replay = Replay.open(request.device, request.kernels_dir)
        answered = opened(request, replay, replay.note)
        self._replay, self._last_open = replay, request
        self.recording = replay.recording
        return answered

    def stop(self) -> None:
        """Do nothing: no window is under way for long."""

    def kill(self) -> None:
        """Do nothing: there is no process."""

    def restart(self, *, on_progress: OnProgress | None = None) -> Opened | None:
        return None if self._last_open is None else self._ask(self._last_open, Opened, on_progress)

    def close(self) -> None:
        self.log.close()


def _to_nobody(_: object) -> None:
    """Take what was not asked for."""
