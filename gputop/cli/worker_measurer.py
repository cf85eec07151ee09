"""A search's pairs, measured by the worker that the command opened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gputop.cli.worker_session import WorkerSession
from gputop.results.records import Window
from gputop.search.measurer import Fault, Paired, Trial
from gputop.search.menu import Menu
from gputop.util.errors import GateFailed, GputopError, WorkerLost


class WorkerMeasurer:
    """One device: one window at a time. A worker that dies or hangs is not asked the same thing again."""

    width = 1

    def __init__(self, session: WorkerSession, menu: Menu, seconds: float | None) -> None:
        """`seconds`: the longest that one window may take."""
        self._session, self._menu, self._seconds = session, menu, seconds

    def run(self, trials: Sequence[Trial]) -> Iterator[Paired | Fault]:
        """Yield what came of each trial. GateFailed if the incumbent itself is wrong."""
        for trial in trials:
            try:
                window = self._session.client.measure(
                    self._menu.asking(trial.table),
                    self._menu.asking(trial.incumbent),
                    seconds=self._seconds,
                    check_phases=True,
                    on_progress=self._session.narrator.progress,
                )
            except GputopError as error:
                if isinstance(error, WorkerLost):
                    self._session.client.restart(on_progress=self._session.narrator.progress)
                yield Fault(trial, str(error))
                continue
            yield outcome(trial, window)


def outcome(trial: Trial, window: Window) -> Paired | Fault:
    """Read a window of a trial. GateFailed if the incumbent's gate failed."""
    current, pinned = window.lane("current"), window.lane("pinned")
    if pinned is not None and not pinned.gate.ok:
        raise GateFailed(f"The incumbent {pinned.plan} fails its gate: {pinned.gate.where}")
    if current is None or not current.gate.ok:
        why = current.gate.where if current is not None else window.verdict
        return Fault(trial, f"gate FAIL: {why}")
    if window.comparison is None:
        return Fault(trial, window.verdict or "no time was measured")
    return Paired(
        trial=trial,
        time_utc=window.time_utc,
        window=window.number,
        sites={delta.phase: delta for delta in window.comparison.sites},
        whole=window.comparison.get("device"),
        device=window.device.name,
        gate=current.gate.status,
    )
