"""The plan that `gputop inspect` takes apart: measured here, or looked up in a recording."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from gputop.backends.cuda.counters.ncu import count, find_ncu
from gputop.cli.kernel_code import CodeReader
from gputop.cli.worker_session import WorkerSession
from gputop.plan.types import Dims, Plan, PlanRequest, Workload
from gputop.planner.resolver import Resolver, plan_dims
from gputop.results import phase_facts
from gputop.results.counters import CounterKey, CountRequest, keep_counted, kept_counted
from gputop.results.inspection import Inspection
from gputop.results.kernel_code import KernelCode, known_code
from gputop.results.records import Ceilings, DeviceFacts, PlanResult, Row, Window
from gputop.util import paths
from gputop.util.errors import GputopError, UsageError, unknown_name

ALL_SITES = "all"
COUNTS = "cuda"
"""The backend whose kernels have counters."""


@dataclass(frozen=True)
class InspectedPlan:
    """One plan in one window, and what is known around it."""

    plan: Plan
    window: Window
    workload: Workload
    ceilings: Ceilings | None
    rungs: tuple[str, ...]
    """Of its backend, in the ladder's order."""
    windows: tuple[Window, ...] = ()
    """Every window in which other plans can be found."""

    @property
    def lane(self) -> PlanResult:
        """The plan's share of the window."""
        return next(lane for lane in self.window.lanes if lane.role == "current")

    @property
    def device(self) -> DeviceFacts:
        return self.window.device

    def rows(self, site: str | None) -> tuple[Row, ...]:
        """Return the rows of a site, of `all`, or of the site with the largest excess.

        Raise UsageError for a site that this plan does not have.
        """
        every = phase_facts.phases_of(self.lane)
        if site == ALL_SITES:
            return every
        if site is not None and site not in {row.phase for row in every}:
            raise unknown_name("site", site, [row.phase for row in every])
        chosen = phase_facts.chosen_phase(self.lane, site) or next(iter(every), None)
        return (chosen,) if chosen else ()

    @property
    def dims(self) -> Dims:
        """The sizes that the plan runs at."""
        return plan_dims(self.workload, self.plan)

    def counter_key(self, row: Row) -> CounterKey:
        """Return what counted figures of a row are kept by."""
        return CounterKey(self.device, self.dims, row)

    def inspect(self, row: Row, resolver: Resolver, reader: CodeReader | None) -> Inspection:
        """Return all that is known of one row; `reader` looks at its machine code.

        What was counted is what is kept of it: only of the device that is measured, not of a recording's.
        """
        code, why_no_code = self._code(row, resolver, reader)
        name = (row.kernel or "").split("/")[0]
        kernel = resolver.kernels.get(name)
        return Inspection(
            row,
            self.device,
            self.lane.gate,
            self.ceilings,
            phase_facts.site_history(self.windows, row, self.rungs),
            f"kernels/{kernel.source}" if kernel and kernel.source else "",
            code,
            why_no_code,
            () if self.device.recording else kept_counted(self.counter_key(row)),
        )

    def _code(
        self, row: Row, resolver: Resolver, reader: CodeReader | None
    ) -> tuple[tuple[KernelCode, ...], str]:
        """Return a site's machine code, or why it can't be looked at; neither for the cpu and for peers.

        It is that which gputop ships of its own kernels, as on the screen; `reader` compiles all others,
        and all if a folder of the user's may have another of the same name.
        """
        if reader is None or self.plan.backend == "cpu" or self.plan.peer:
            return (), ""
        name = (row.kernel or "").split("/")[0]
        own = resolver.kernels_dir != paths.kernels_dir()
        shipped = () if own else known_code(reader.arch, name)
        try:
            return shipped or reader.of_site(resolver, self.plan, self.dims, row.phase), ""
        except GputopError as error:
            return (), str(error)


def count_plan(subject: InspectedPlan, kernels_dir: Path) -> None:
    """Count each kernel and shape of a plan's pass with ncu, and keep the figures by site.

    Raise Unavailable if there is no ncu or it is not allowed to count; UsageError for what has no counters.
    """
    if subject.device.recording or subject.plan.backend != COUNTS:
        what = "A recording" if subject.device.recording else f"The {subject.plan.backend} backend"
        raise UsageError(f"{what} has no counters: leave --counters out, or run it on a machine with a GPU.")
    request = CountRequest(subject.workload, subject.device.uuid, str(kernels_dir), (subject.plan,))
    found = count(find_ncu(), request)
    for row in phase_facts.phases_of(subject.lane):
        counted = tuple(item for item in found if item.launch.site == row.phase)
        if counted:
            keep_counted(subject.counter_key(row), counted, subject.window.time_utc)


def measured_plan(options: argparse.Namespace, request: PlanRequest) -> InspectedPlan:
    """Measure one window of a plan in a worker."""
    with WorkerSession(options) as session:
        window = session.measure(request, check_phases=True)
        plan = session.client.resolve(request).plan
        ceilings = session.client.calibrate(on_progress=session.narrator.progress)
        rungs = tuple(rung.id for rung in session.opened.rungs)
        return InspectedPlan(plan, window, session.opened.workload, ceilings, rungs, (window,))


def recorded_plan(word: str, request: PlanRequest) -> InspectedPlan:
    """Look a plan up in a recording, in the window that pairs it with the rung before."""
    from gputop.session.replay import Replay

    replay = Replay.open(word)
    return InspectedPlan(
        replay.view(request).plan,
        replay.first_window(request),
        replay.workload,
        replay.calibrate(),
        tuple(rung.id for rung in replay.rung_views()),
        replay.windows,
    )
