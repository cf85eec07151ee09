"""What every measurement of a session works with: one backend, one catalog, and what was learnt so far."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from gputop import __version__
from gputop.backends.base import Backend, Say
from gputop.plan.launch_shape import LaunchFacts, LaunchInfo
from gputop.plan.types import Dims, Plan, PlanRequest, Step
from gputop.planner.resolver import Resolver, plan_dims
from gputop.results.records import Ceilings, Health, Row
from gputop.session import advice
from gputop.session.aa_noise import NoiseFloors
from gputop.session.cost_model import Machine, SiteModel, plan_floors, question_floors, site_models
from gputop.session.prepared_plans import PreparedLanes
from gputop.session.rows import PlanModel
from gputop.session.sampling import LaneSamples
from gputop.util import cgroups


class SessionContext:
    """Resolves plans, and reads what was sampled against ceilings and model."""

    def __init__(self, backend: Backend, catalog: Resolver) -> None:
        self.backend = backend
        self.workload = backend.workload
        self.facts = replace(backend.facts(), cpu_quota_cores=cgroups.cpu_quota())
        self.catalog = catalog.on(self.facts.arch, self.facts.sm_count, backend.fixed_toggles())
        self.versions = f"gputop {__version__}, {self.facts.versions}"
        self.lanes = PreparedLanes(backend, self.catalog)
        self.noise = NoiseFloors(backend.aa_minimum)
        self.windows = 0
        """Windows begun so far."""
        self._ceilings: Ceilings | None = None
        self._entries: dict[str, LaunchFacts] = {}
        """Of every kernel that a measured plan has loaded, by entry: what another launch of it is
        forecast by.
        """
        self._neighbours: dict[tuple[Plan, str], tuple[advice.Neighbour, ...]] = {}
        """By plan and the site that is to spend less."""

    def resolve(self, request: PlanRequest) -> Plan:
        """UsageError for what can't run here, with why."""
        return self.catalog.resolve(request, self.workload.dims, self.backend.name)

    def take_catalog(self, catalog: Resolver, changed: Collection[str]) -> None:
        """Go on with records that were read again; `changed`: the files that are, empty for all of them.

        Plans that may have been prepared with another form of a changed kernel are given up.
        """
        own = {name for name, kernel in self.catalog.kernels.items() if kernel.record}
        records = {kernel.record for kernel in self.catalog.kernels.values() if kernel.record}
        sources = {kernel.source for kernel in self.catalog.kernels.values() if kernel.record}
        # Any other file replaces one of ours, or is a header of any.
        any_plan = not changed or not set(changed) <= records | sources
        self.lanes.drop(lambda plan: any_plan or any(choice.kernel in own for _, choice in plan.dispatch))
        self.catalog = self.lanes.catalog = catalog
        self.backend.take_registry(self.catalog)
        self._neighbours.clear()

    def dims(self, plan: Plan) -> Dims:
        return plan_dims(self.workload, plan)

    def ceilings(self, say: Say, *, force: bool = False) -> Ceilings:
        """Measured at first use."""
        if self._ceilings is None or force:
            self._ceilings = self.backend.ceilings(force, say)
            self._neighbours.clear()
        return self._ceilings

    def machine(self, say: Say, health: Health, *, measure: bool = True) -> Machine:
        """Return the machine's peaks. Without `measure`, leaves out ceilings that nobody has measured yet."""
        if measure or self.backend.kept_ceilings() is not None:
            return Machine(self.facts, self.ceilings(say), health.sm_clock_hz)
        return Machine(self.facts, self._no_ceilings(), health.sm_clock_hz)

    def notes(self, plans: Iterable[Plan]) -> tuple[str, ...]:
        """Return notes on these plans that their strings do not say."""
        return tuple(dict.fromkeys(note for plan in plans if (note := self.backend.note(plan))))

    def physics(self, plan: Plan, lane: LaneSamples, machine: Machine) -> PlanModel:
        """Floors and terms of a prepared plan, at the clock that its own passes ran at where that is
        known.
        """
        dims = self.dims(plan)
        machine = replace(machine, clock_hz=lane.clock_hz or machine.clock_hz)
        facts = {fact.site: fact for fact in lane.prepared.facts()}
        for launch in (one for fact in facts.values() for one in fact.each):
            self._entries[launch.name] = launch
        return PlanModel(
            sites=self._models(plan, lane.prepared.steps, machine, facts),
            plan_floors=plan_floors(self.catalog, plan, dims, machine),
            question_floors=question_floors(self.catalog, plan, dims, machine),
            has_ceilings=bool(machine.ceilings.items),
        )

    def advice(self, plan: Plan, rows: tuple[Row, ...], physics: PlanModel, machine: Machine) -> str:
        """The line of advice for a measured plan; empty for a framework's pass, which offers no choice."""
        worst = advice.worst_site(rows)
        if plan.peer or worst is None:
            return ""
        key = (plan, worst)
        if key not in self._neighbours:
            self._neighbours[key] = advice.neighbours(
                self.catalog,
                plan,
                self.dims(plan),
                worst,
                lambda other: self._models(other, self.catalog.steps(other, self.dims(other)), machine, {}),
            )
        return advice.advise(rows, physics.sites, self._neighbours[key])

    def _no_ceilings(self) -> Ceilings:
        return Ceilings(self.facts.name, self.facts.driver, "", (), self.facts.versions)

    def close(self) -> None:
        self.lanes.close()
        self.backend.close()

    def _models(
        self, plan: Plan, steps: tuple[Step, ...], machine: Machine, facts: Mapping[str, LaunchInfo]
    ) -> tuple[SiteModel, ...]:
        return site_models(self.catalog, plan, self.dims(plan), steps, machine, facts, self._entries)
