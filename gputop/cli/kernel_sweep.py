"""Measures every kernel that can serve a site of a plan, each paired with the plan's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from time import perf_counter

from gputop.cli.exit_code import exit_code_of
from gputop.cli.worker_session import WorkerSession
from gputop.model.workloads import label
from gputop.plan.choices import PlanView, SiteChoices
from gputop.plan.types import KernelChoice, PlanRequest
from gputop.results.kernel_selection import Route, Routing, judged
from gputop.results.records import Window
from gputop.util.errors import GputopError, UsageError, WorkerLost

BUDGET_S = 240.0
"""After so long nothing more is begun: there may be dozens of plans, each to be prepared, gated and timed."""
OUT_OF_TIME = f"not measured: {BUDGET_S:.0f} s were over; a shorter --seconds leaves time for more"

Choice = Mapping[str, KernelChoice]
"""Site -> the candidate that stands in for the plan's own kernel there."""
Clock = Callable[[], float]
"""Seconds from some moment on."""


class Router:
    """One plan measures one candidate at each site: the i-th of every site at once.

    Where such a plan can't be, or fails its gate, each half of its candidates is measured by itself, and so
    on down to the one at fault: it costs the others nothing. The first plans serve all sites; what the budget
    leaves out is of the sites with the longest lists, and says so.
    """

    def __init__(self, session: WorkerSession, request: PlanRequest, clock: Clock = perf_counter) -> None:
        """UsageError where nothing can be exchanged: in a framework's pass, in one fused kernel."""
        self._session, self._request, self._clock = session, request, clock
        self._ends_s = math.inf
        self._view = session.client.resolve(request)
        every = [session.client.choices(request, site.site) for site in self._view.sites]
        self._sites = [site for site in every if not site.own.fuses]
        if not any(map(_others, self._sites)):
            raise UsageError(
                f"No site of {self._view.word} can take another kernel: there is nothing to route."
            )
        self._routes: dict[tuple[str, KernelChoice], Route] = {}

    @property
    def view(self) -> PlanView:
        """The plan that is routed."""
        return self._view

    def measure(self) -> Routing:
        """Measure all candidates and report progress."""
        time_utc = datetime.now(UTC).isoformat(timespec="seconds")
        choices = list(_choices(self._sites))
        self._ends_s = self._clock() + BUDGET_S
        for number, choice in enumerate(choices, 1):
            self._session.narrator.note(f"routing {self._view.word}: plan {number} of {len(choices)}")
            self._pair(choice)
        opened = self._session.opened
        routes = [route for site in self._sites if _others(site) for route in judged(self._of(site))]
        return Routing(time_utc, opened.device, label(opened.workload), self._view.word, tuple(routes))

    def _pair(self, choice: Choice) -> None:
        if self._clock() >= self._ends_s:
            for site, kernel in choice.items():
                self._keep(site, kernel, status=OUT_OF_TIME)
            return
        try:
            window = self._session.measure(self._asking(choice), self._request)
            exit_code_of(lane.gate for lane in window.lanes)
        except GputopError as error:
            if isinstance(error, WorkerLost):
                self._session.client.restart(on_progress=self._session.narrator.progress)
            self._halve(choice, error)
            return
        self._read(window, choice)

    def _halve(self, choice: Choice, error: GputopError) -> None:
        """Measure each half by itself, until a single candidate remains whose reason is known."""
        entries = list(choice.items())
        if len(entries) > 1:
            middle = len(entries) // 2
            self._pair(dict(entries[:middle]))
            self._pair(dict(entries[middle:]))
            return
        for site, kernel in entries:
            self._keep(site, kernel, status=str(error))

    def _read(self, window: Window, choice: Choice) -> None:
        for site, kernel in choice.items():
            delta = window.comparison.at(site) if window.comparison else None
            if delta is None:
                self._keep(site, kernel, status="its time in the pass is not known")
                continue
            self._keep(site, kernel)
            self._routes[site, kernel] = self._routes[site, kernel].measured(delta)

    def _keep(self, site: str, kernel: KernelChoice, *, status: str = "") -> None:
        candidates = next(view.candidates for view in self._sites if view.site == site)
        library = next(candidate.library for candidate in candidates if candidate.choice == kernel)
        self._routes[site, kernel] = Route(site, str(kernel), library, incumbent=False, status=status)

    def _asking(self, choice: Choice) -> PlanRequest:
        """Every site is named, in pass order: a phase's entry would serve its other sites too."""
        uses = ((site.site, choice.get(site.site, site.kernel)) for site in self._sites)
        return replace(self._request, uses=(*self._request.uses, *uses))

    def _of(self, site: SiteChoices) -> list[Route]:
        """The site's own kernel, then its candidates."""
        others = [self._routes[site.site, kernel] for kernel in _others(site)]
        time_s = next((route.incumbent_s for route in others if route.incumbent_s is not None), None)
        own = Route(
            site.site, str(site.kernel), site.own.library, incumbent=True, time_s=time_s,
            incumbent_s=time_s, ratio=None if time_s is None else 1.0,
        )  # fmt: skip
        return [own, *others]


def _others(site: SiteChoices) -> tuple[KernelChoice, ...]:
    """Kernels that can stand there in place of the plan's own, and nowhere else with it."""
    return tuple(
        candidate.choice
        for candidate in site.candidates
        if candidate.choice != site.kernel and not candidate.fuses
    )


def _choices(sites: list[SiteChoices]) -> Iterator[Choice]:
    """Return as many plans as the longest list of candidates."""
    for index in range(max(len(_others(site)) for site in sites)):
        yield {site.site: _others(site)[index] for site in sites if index < len(_others(site))}
