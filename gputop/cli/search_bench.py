"""Where a search measures: the worker that the command opened, or the devices of a fleet."""

from __future__ import annotations

import contextlib
from argparse import Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from gputop.cli.terminal import Narrator
from gputop.cli.worker_measurer import WorkerMeasurer
from gputop.cli.worker_session import WorkerSession
from gputop.ipc.protocol import Opened
from gputop.plan.choices import PlanView
from gputop.plan.types import PlanRequest
from gputop.results.records import Window
from gputop.search.measurer import Measurer
from gputop.search.menu import Menu
from gputop.util.errors import UsageError

if TYPE_CHECKING:
    from gputop.results.search_space import SearchSpace


class SearchBench(Protocol):
    """What a search asks of its devices."""

    @property
    def opened(self) -> Opened:
        """The device that is searched for, and its rungs."""

    @property
    def narrator(self) -> Narrator: ...

    def space(self, request: PlanRequest) -> SearchSpace:
        """Return all that may be chosen at the sites of a plan. Raise UsageError for an impossible plan."""

    def resolve(self, request: PlanRequest) -> PlanView:
        """Return what a request comes to. Raise UsageError for an impossible plan."""

    def pair(self, current: PlanRequest, pinned: PlanRequest) -> Window:
        """Measure two plans in one window."""

    def measurer(self, menu: Menu) -> Measurer:
        """Return what measures the trials of a search."""


class WorkerBench:
    """One device."""

    def __init__(self, session: WorkerSession, seconds: float | None) -> None:
        self._session, self._seconds = session, seconds
        self.opened, self.narrator = session.opened, session.narrator

    def space(self, request: PlanRequest) -> SearchSpace:
        """As of `SearchBench`."""
        return self._session.client.search_space(request, on_progress=self.narrator.progress)

    def resolve(self, request: PlanRequest) -> PlanView:
        """As of `SearchBench`."""
        return self._session.client.resolve(request)

    def pair(self, current: PlanRequest, pinned: PlanRequest) -> Window:
        """As of `SearchBench`."""
        return self._session.measure(current, pinned)

    def measurer(self, menu: Menu) -> Measurer:
        """As of `SearchBench`."""
        return WorkerMeasurer(self._session, menu, self._seconds)


@contextlib.contextmanager
def search_bench(options: Namespace) -> Iterator[SearchBench]:
    """Open what the options name. Raise UsageError for options that do not go together."""
    if options.scheduler is None:
        with WorkerSession(options) as session:
            yield WorkerBench(session, options.seconds)
        return
    for name in ("device", "remote"):
        if getattr(options, name) is not None:
            raise UsageError(f"--scheduler names the devices: leave --{name} out.")
    # Only here: without --scheduler no Dask is looked for.
    from gputop.cli.fleet_bench import FleetBench

    with FleetBench.opened_by(options) as fleet_bench:
        yield fleet_bench
