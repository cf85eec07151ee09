"""Which plans of a recording lie one flip apart: found by what each plan is, not by how it was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from gputop.plan.choices import Candidate, SiteChoices, SiteView, ToggleView
from gputop.plan.rungs import Toggle
from gputop.plan.toggles import toggle_text, toggle_value
from gputop.plan.types import Dims, KernelChoice, Plan, PlanRequest
from gputop.planner.dispatch import phase_of_names, served
from gputop.planner.resolver import Resolver
from gputop.util.errors import UsageError, unknown_name

NOT_RECORDED = "not in this recording"


@dataclass(frozen=True)
class RecordedFlips:
    """The measured plans of one recording, and what leads from one to another."""

    plans: tuple[Plan, ...]
    """Each once."""
    refused: Mapping[str, Mapping[tuple[str, str], str]]
    """By the plan's word: toggle and value -> why it could not hold."""
    dims: Dims
    resolver: Resolver
    """For the device that was recorded."""

    def find(self, request: PlanRequest) -> Plan | None:
        """Return the recorded plan that a request means; None if there is none.

        That is one of the request's rung with all that is asked for and the fewest changes besides; else one
        that a recorded plan of that rung becomes by what is asked for. Raise UsageError for a toggle or a
        value that there is not.
        """
        of_rung = [plan for plan in self.plans if plan.rung == request.rung]
        of_rung.sort(key=lambda plan: len(plan.word))
        changed = [self._changed(plan, request) for plan in of_rung]
        own = (plan for plan, (form, wanted) in zip(of_rung, changed, strict=True) if _is(plan, form, wanted))
        flipped = (plan for form, wanted in changed for plan in self.plans if _is(plan, form, wanted))
        return next(own, None) or next(flipped, None) or self._resolved(request)

    def toggle_views(self, plan: Plan) -> tuple[ToggleView, ...]:
        """Return every toggle as it stands on a plan; refused are values that lead to no recorded plan."""
        return tuple(self._toggle_view(toggle, plan) for toggle in self.resolver.toggles)

    def site_views(self, plan: Plan) -> tuple[SiteView, ...]:
        """Return every dispatch entry of a plan, and which other kernels there lead to a recorded plan."""
        return tuple(
            SiteView(site, choice, self._others(plan, site, choice.kernel)) for site, choice in plan.dispatch
        )

    def site_choices(self, plan: Plan, site: str) -> SiteChoices:
        """Return the kernels of one site that lead to a recorded plan, and those of its phase that do not.

        Raise UsageError for a site that the plan does not have.
        """
        dispatch = dict(plan.dispatch)
        if site not in dispatch:
            raise unknown_name("site", site, dispatch)
        found = {dispatch[site]: plan} | dict(self._at(plan, site))
        able = {choice.kernel for choice in found}
        phase = self._phase(site)
        seen = dict.fromkeys(
            choice.kernel
            for other in self.plans
            for name, choice in other.dispatch
            if self._phase(name) == phase
        )
        return SiteChoices(
            site,
            dispatch[site],
            tuple(self._candidate(choice, other) for choice, other in found.items()),
            tuple((name, NOT_RECORDED) for name in seen if name not in able),
        )

    def _others(self, plan: Plan, site: str, own: str) -> tuple[str, ...]:
        names = dict.fromkeys(choice.kernel for choice, _ in self._at(plan, site))
        return tuple(name for name in names if name != own)

    def _toggle_view(self, toggle: Toggle, plan: Plan) -> ToggleView:
        value = toggle_text(getattr(plan, toggle.field))
        values = toggle.values
        if not values:
            numbers = sorted({getattr(other, toggle.field) for other in self.plans})
            values = tuple(text for text in map(toggle_text, numbers) if self._leads(plan, toggle, text))
        reasons = self.refused.get(plan.word, {})
        refused = tuple(
            (other, reasons.get((toggle.name, other), NOT_RECORDED))
            for other in values
            if not self._leads(plan, toggle, other)
        )
        if not toggle.values and values == (value,):
            values, refused = (), (("another number", NOT_RECORDED),)
        return ToggleView(toggle.name, value, values, refused, toggle.doc)

    def _leads(self, plan: Plan, toggle: Toggle, text: str) -> bool:
        """Return whether a toggle's value leads from a plan to a recorded one; its current value leads to
        itself.
        """
        if text == toggle_text(getattr(plan, toggle.field)):
            return True
        return self.find(plan.request.with_set(toggle.name, text)) is not None

    def _at(self, plan: Plan, site: str) -> Iterator[tuple[KernelChoice, Plan]]:
        """Other kernels of a site -> the recorded plan that has this one there and else is the same.

        As with a plan that is resolved, a phase's own site may take along others that have the same kernel.
        """
        dispatch = dict(plan.dispatch)
        phase, own = self._phase(site), dispatch[site]
        along = {name for name, choice in dispatch.items() if choice == own and self._phase(name) == phase}
        taken = ({site}, along) if site == phase else ({site},)
        for other in self.plans:
            if other.change(dispatch=()) != plan.change(dispatch=()):
                continue
            changes = set(other.dispatch) - set(plan.dispatch)
            sites, choices = {name for name, _ in changes}, {choice for _, choice in changes}
            if len(choices) == 1 and sites in taken:
                yield choices.pop(), other

    def _candidate(self, choice: KernelChoice, plan: Plan) -> Candidate:
        """A kernel that this version does not have counts as one of its own site alone."""
        kernel = self.resolver.kernels.get(choice.kernel)
        return Candidate(choice, plan.request, bool(kernel and kernel.fuses), bool(kernel and kernel.library))

    def _changed(self, plan: Plan, request: PlanRequest) -> tuple[Plan, dict[str, KernelChoice]]:
        """A plan with what is asked for set on it, and its dispatch, by what was recorded alone."""
        asked = ((self.resolver.toggle(name), text) for name, text in request.sets)
        fields: dict[str, Any] = {toggle.field: toggle_value(toggle, text) for toggle, text in asked}
        dispatch = dict(plan.dispatch)
        if request.uses:
            sites = self.resolver.sites(replace(self.dims, batch=plan.batch), plan.prune, plan.fold)
            names = phase_of_names(sites)
            for name, choice in request.uses:
                kernel = self.resolver.kernels.get(choice.kernel)
                # A site that the plan lacks stays in the table, so that no plan without it is taken for it.
                taken = served(name, kernel, sites) if kernel and name in names else [name]
                dispatch.update(dict.fromkeys(taken, choice))
        return plan.change(**fields), dispatch

    def _resolved(self, request: PlanRequest) -> Plan | None:
        """The recorded plan that a request resolves to today, if its rung still means what was recorded.

        So a batch or a math is found for which a rung takes other kernels.
        """
        bare = PlanRequest(request.rung)
        recorded = next((plan for plan in self.plans if plan.request == bare), None)
        if recorded is None or request == bare:
            return None
        if bare not in self._today:
            self._today[bare] = self._resolve(bare, recorded.backend)
        asked = self._resolve(request, recorded.backend) if self._today[bare] == recorded else None
        return next((plan for plan in self.plans if plan == asked), None)

    def _resolve(self, request: PlanRequest, backend: str) -> Plan | None:
        """The plan that a request means to this version; None if there is none."""
        try:
            return self.resolver.resolve(request, self.dims, backend)
        except UsageError:
            return None

    @cached_property
    def _today(self) -> dict[PlanRequest, Plan | None]:
        """Return the plans of bare rungs. Memoized, since each flip asks again."""
        return {}

    def _phase(self, site: str) -> str:
        """A site's phase; the site itself if this version has no such site."""
        return self._phases.get(site, site)

    @cached_property
    def _phases(self) -> dict[str, str]:
        """Site -> phase, of passes with and without a pruned last layer."""
        sites = (self.resolver.sites(self.dims, pruned) for pruned in (False, True))
        return {site.name: site.phase for both in sites for site in both}


def _is(plan: Plan, form: Plan, wanted: Mapping[str, KernelChoice]) -> bool:
    """Return whether a plan has this form, dispatch apart, and the kernels that are wanted."""
    have = dict(plan.dispatch)
    return (
        have.keys() == wanted.keys()
        and plan.change(dispatch=()) == form.change(dispatch=())
        and all(_meets(have[site], wanted[site]) for site in have)
    )


def _meets(have: KernelChoice, wanted: KernelChoice) -> bool:
    """Return whether a kernel is the one asked for. A request without a number of parts accepts any."""
    return have == wanted or (wanted.splits is None and have.kernel == wanted.kernel)
