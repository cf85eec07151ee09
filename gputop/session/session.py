"""A backend opened on a workload: what can run, whether it is right, and how fast it is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gputop import backends
from gputop.backends.base import Say
from gputop.model.workloads import check_sizes
from gputop.plan.choices import PlanView, RungView, SiteChoices
from gputop.plan.types import PlanRequest, Workload
from gputop.planner.plan_views import site_choices, site_views, toggle_views
from gputop.planner.resolver import Resolver
from gputop.planner.saved_rungs import saved_for
from gputop.results.flip_forecast import FlipForecasts
from gputop.results.kernel_report import KernelReport
from gputop.results.ladder import Ladder
from gputop.results.records import Ceilings, DeviceFacts, Gate, Window
from gputop.results.search_space import SearchSpace
from gputop.results.whatif import WhatIf, WhatIfAsked
from gputop.session.context import SessionContext
from gputop.session.kernel_trial import rebuild
from gputop.session.ladder_window import measure_ladder
from gputop.session.sampling import Stop
from gputop.session.search_space import search_space
from gputop.session.search_start import startable
from gputop.session.window import WindowRequest, measure_window
from gputop.util.errors import Unavailable, UsageError

OPENING_RUNGS: Mapping[str, tuple[str, ...]] = {
    "cpu": ("cpu-blas",),
    "cuda": ("graph", "dispatch", "algebra", "attention", "naive"),
}
"""Where a backend opens: the first that can run here. On cuda without cuBLASLt the second calls cuBLAS, and
from the third on all code is ours, from the fourth on for any sizes."""


def _silent(text: str) -> None:
    """Narrates to nobody."""


def _never() -> bool:
    """Measures to the end."""
    return False


def opening_rung(backend: str, views: Sequence[RungView]) -> str:
    """Id of the rung to open on; where none of the preferred can run, the first of the ladder that can.

    UsageError where no rung of the ladder can.
    """
    able = [view.id for view in views if view.kind == "ladder" and not view.refused]
    if not able:
        raise UsageError(f"No rung of {backend} can run here: `gputop list rungs` says why.")
    return next((rung for rung in OPENING_RUNGS.get(backend, ()) if rung in able), able[0])


class Session:
    """One at a time, on one thread. Every method raises UsageError for a plan that can't be, with why."""

    def __init__(self, bench: SessionContext, note: str = "") -> None:
        self._bench = bench
        self.note = note
        """What was passed over, each with why: a device of this machine, kernels, saved rungs."""
        self._rung_views: tuple[RungView, ...] | None = None

    @classmethod
    def open(
        cls,
        backend_name: str,
        workload: Workload,
        device: str | None = None,
        kernels_dir: str | None = None,
        say: Say = _silent,
    ) -> Session:
        """`auto` is cuda where it is usable, else cpu.

        Unavailable when the device or a library is missing; UsageError for a workload that is no model, and
        for CUDA sources where none are compiled.
        """
        check_sizes(workload.dims, f"workload {workload.name}")
        name, note = backends.choose(backend_name)
        if note and device is not None:
            raise Unavailable(note)
        backends.check_sources(name, kernels_dir)
        say(f"opening {name}")
        catalog = Resolver.load(Path(kernels_dir) if kernels_dir else None)
        backend = backends.load(name).open_backend(workload, device, say, catalog)
        saved = saved_for(catalog, name, backend.facts().name)
        unread = (f"{file} is left out: {why}." for file, why in {**catalog.unread, **saved.unread}.items())
        catalog = replace(catalog, rungs=(*catalog.rungs, *saved.rungs))
        return cls(SessionContext(backend, catalog), " ".join(filter(None, (note, *unread))))

    @property
    def facts(self) -> DeviceFacts:
        """Return what this session measures on."""
        return self._bench.facts

    @property
    def workload(self) -> Workload:
        return self._bench.workload

    @property
    def default_rung(self) -> str:
        """Id of the rung to open on."""
        return opening_rung(self._bench.backend.name, self.rung_views())

    def rung_views(self) -> tuple[RungView, ...]:
        """The backend's rungs, each with why it can't run here where it can't."""
        if self._rung_views is None:
            self._rung_views = tuple(
                RungView(
                    rung.id,
                    rung.number,
                    rung.kind,
                    rung.idea,
                    self.refusal(PlanRequest(rung.id)),
                    rung.before,
                    rung.on_request,
                )
                for rung in self._bench.catalog.rungs_of(self._bench.backend.name)
            )
        return self._rung_views

    def view(self, request: PlanRequest) -> PlanView:
        """The plan resolved, with every toggle and dispatch entry as it stands on it."""
        bench = self._bench
        plan = bench.resolve(request)
        dims = bench.dims(plan)
        return PlanView(
            plan,
            toggle_views(bench.catalog, plan, dims),
            site_views(bench.catalog, plan, dims),
            bench.backend.need_bytes(plan),
        )

    def choices(self, request: PlanRequest, site: str) -> SiteChoices:
        """Return which kernels can serve one site of a plan, and why the others can't."""
        plan = self._bench.resolve(request)
        return site_choices(self._bench.catalog, plan, self._bench.dims(plan), site)

    def search_space(self, request: PlanRequest, say: Say = _silent) -> SearchSpace:
        """All that a search may choose from at the sites of a plan, priced by the term model."""
        return search_space(self._bench, startable(self._bench, request, say), say)

    def measure(
        self,
        current: PlanRequest,
        pinned: PlanRequest | None = None,
        *,
        seconds: float | None = None,
        aa: bool = False,
        check_phases: bool = False,
        first_look: bool = False,
        whole: bool = False,
        stop: Stop = _never,
        say: Say = _silent,
    ) -> Window:
        """One window on a plan, or on two alternately, whose comparison leads from pinned to current.

        `aa` pairs the current plan with an independently prepared copy of itself. `seconds` is the
        longest time to sample; by default a comparison goes on until its interval can be known.
        A `first_look` waits for no advice and no ceilings: where none are known its rows have no floors.
        `whole` times whole passes alone, in short samples: for many windows of a pair one after the other.
        `stop` is asked between samples. A plan that fails its gate has no times.
        """
        plan = self._bench.resolve(current)
        other = plan if aa else pinned and self._bench.resolve(pinned)
        order = WindowRequest(plan, other or None, seconds, check_phases, first_look, whole)
        return measure_window(self._bench, order, stop, say)

    def measure_ladder(
        self,
        requests: Sequence[PlanRequest],
        seconds: float | None = None,
        stop: Stop = _never,
        say: Say = _silent,
        *,
        check_phases: bool = False,
    ) -> Ladder:
        """Several plans alternately in one window, each against the one before it.

        None given: every rung that can run here and is ready within seconds.
        """
        ready = (view.id for view in self.rung_views() if not view.refused and not view.on_request)
        wanted = requests or [PlanRequest(rung) for rung in ready]
        plans = [self._bench.resolve(request) for request in wanted]
        return measure_ladder(self._bench, plans, seconds, stop, say, check_phases=check_phases)

    def check(self, request: PlanRequest, say: Say = _silent) -> Gate:
        """Both gates of a plan, remembered while it stays prepared."""
        lanes = self._bench.lanes
        return lanes.check_phases(lanes.get(self._bench.resolve(request), say), say)

    def forecast_flips(self, request: PlanRequest) -> FlipForecasts:
        """Raise UsageError: what can be measured is not forecast."""
        raise UsageError("Flips are forecast in a recording only; here they can be measured.")

    def what_if(self, asked: WhatIfAsked) -> WhatIf:
        """Raise UsageError: what can be measured is not forecast."""
        raise UsageError("Changes are forecast in a recording only; here they can be measured.")

    def calibrate(self, force: bool = False, say: Say = _silent) -> Ceilings:
        """The device's ceilings, from the cache unless `force`."""
        return self._bench.ceilings(say, force=force)

    def rebuild(
        self,
        request: PlanRequest,
        site: str | None = None,
        changed: Collection[str] = (),
        say: Say = _silent,
    ) -> tuple[KernelReport, ...]:
        """Read the user's own kernels again and compile those that a changed file is part of, all if none is.

        `request` is the plan that each is to be paired with, `site` where it is tried if it can be.
        """
        return rebuild(self._bench, request, site, changed, say)

    def close(self) -> None:
        """Give all memory back; calling twice is harmless."""
        self._bench.close()

    def refusal(self, request: PlanRequest) -> str:
        """Return why the plan can't run here, before anything is prepared; empty if it can."""
        try:
            return self._bench.backend.refuses(self._bench.resolve(request)) or ""
        except UsageError as error:
            return str(error)
