"""A search's devices behind a scheduler: each pair is measured on whichever is free."""

from __future__ import annotations

import contextlib
from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gputop.cli.options import kernels_dir_of, workload_of
from gputop.cli.terminal import Narrator
from gputop.cli.worker_measurer import outcome
from gputop.fleet.fleet import Fleet
from gputop.fleet.jobs import Opening, Pair, ResolveJob, SpaceJob
from gputop.fleet.pairs import PairMeasurer
from gputop.ipc.protocol import Opened
from gputop.plan.choices import PlanView
from gputop.plan.types import PlanRequest
from gputop.results.records import Window
from gputop.search.measurer import Fault, Measurer, Paired, Trial
from gputop.search.menu import Menu

if TYPE_CHECKING:
    from gputop.results.search_space import SearchSpace


class FleetBench:
    """As of `SearchBench`: devices of one model, named by the first that answered."""

    def __init__(self, fleet: Fleet, narrator: Narrator, seconds: float | None) -> None:
        self.narrator = narrator
        self.opened: Opened = fleet.devices[0].met.opened
        self._fleet = fleet
        self._pairs = PairMeasurer(fleet, seconds, check_phases=True)

    @classmethod
    @contextlib.contextmanager
    def opened_by(cls, options: Namespace) -> Iterator[FleetBench]:
        """Connect to `--scheduler`; raise as `Fleet.connect` does."""
        narrator = Narrator()
        with Fleet(
            options.scheduler,
            opening_of(options),
            note=narrator.note,
            progress=narrator.progress,
            one_model=True,
        ) as fleet:
            try:
                yield cls(fleet, narrator, options.seconds)
            finally:
                narrator.clear()

    def space(self, request: PlanRequest) -> SearchSpace:
        """As of `SearchBench`."""
        return self._fleet.ask(SpaceJob(request))

    def resolve(self, request: PlanRequest) -> PlanView:
        """As of `SearchBench`."""
        return self._fleet.ask(ResolveJob(request))

    def pair(self, current: PlanRequest, pinned: PlanRequest) -> Window:
        """As of `SearchBench`."""
        (ended,) = self._pairs.measure([Pair(pinned, current)])
        if ended.window is None:
            assert ended.error is not None
            raise ended.error
        return ended.window

    def measurer(self, menu: Menu) -> Measurer:
        """As of `SearchBench`."""
        return FleetMeasurer(self._pairs, menu)


class FleetMeasurer:
    """Each trial within one device. A device that leaves costs the window that it measured."""

    def __init__(self, pairs: PairMeasurer, menu: Menu) -> None:
        self._pairs, self._menu = pairs, menu

    @property
    def width(self) -> int:
        """Trials that can run at once: devices of the fleet at this moment."""
        return max(1, self._pairs.places)

    def run(self, trials: Sequence[Trial]) -> Iterator[Paired | Fault]:
        """Yield what came of each trial, as they end.

        Raise GateFailed if the incumbent itself is wrong, WorkerLost if no device is left.
        """
        asked = {
            Pair(self._menu.asking(trial.incumbent), self._menu.asking(trial.table), trial.number): trial
            for trial in trials
        }
        for ended in self._pairs.measure(asked):
            trial = asked[ended.pair]
            yield Fault(trial, str(ended.error)) if ended.window is None else outcome(trial, ended.window)


def opening_of(options: Namespace) -> Opening:
    """What each device of a fleet opens. UsageError as of a single device."""
    # A folder on other hosts can't be looked into from here.
    given = Namespace(**{**vars(options), "remote": options.scheduler})
    return Opening(options.backend, workload_of(options), kernels_dir_of(given))
