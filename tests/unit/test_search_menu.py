"""What may be proposed: constraints, resource knees, and the plan that a table asks for."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputop.plan.types import KernelChoice, PlanRequest
from gputop.planner.resolver import Resolver, plan_dims
from gputop.results import recording
from gputop.results.records import Health
from gputop.results.search_space import SearchSpace, SiteSpace
from gputop.search.menu import at_knees, joint_space, menu_of
from gputop.session.cost_model import Machine
from gputop.session.search_space import search_space
from gputop.session.search_start import startable
from gputop.util.errors import UsageError
from tests.unit.search_menus import SMS, spaces


@given(spaces())
def test_knees_keep_the_plans_own_and_invent_nothing(site: SiteSpace) -> None:
    kept = at_knees(site, SMS)
    assert [found for found in site.candidates if found in kept] == list(kept)
    assert site.own in [found.choice for found in kept]
    assert {found.choice.kernel for found in kept} == {found.choice.kernel for found in site.candidates}


@given(spaces())
def test_between_two_steps_of_the_busiest_sm_the_most_parts_stand_for_all(site: SiteSpace) -> None:
    kept = {found.choice for found in at_knees(site, SMS)}
    for found in site.candidates:
        if found.choice in kept or found.blocks is None:
            continue
        stands_for_it = [
            other
            for other in site.candidates
            if other.choice.kernel == found.choice.kernel
            and other.choice in kept
            and other.blocks is not None
            and ceil(other.blocks / SMS) == ceil(found.blocks / SMS)
            and (other.choice.splits or 0) > (found.choice.splits or 0)
        ]
        assert stands_for_it, found


@given(spaces())
def test_without_a_number_of_sms_nothing_is_left_out(site: SiteSpace) -> None:
    assert at_knees(site, None) == site.candidates


@given(st.lists(spaces(), min_size=1, max_size=5))
def test_the_joint_space_only_shrinks(sites: list[SiteSpace]) -> None:
    named = tuple(replace(site, site=f"site{i}", phase=f"site{i}") for i, site in enumerate(sites))
    space = joint_space(menu_of(SearchSpace("start", PlanRequest("start"), named), SMS))
    assert space.left <= space.able <= space.offered + 1e-9


class H200:
    """What a session on the recorded H200 says of plans, without the device."""

    def __init__(self) -> None:
        header = recording.read_header(recording.locate("h200"))
        self.catalog = Resolver.load().on("sm_90", 132)
        self._workload, self._machine = header.workload, Machine(header.device, header.ceilings, None)

    def resolve(self, request: PlanRequest):  # type: ignore[no-untyped-def]
        return self.catalog.resolve(request, self._workload.dims, "cuda")

    def dims(self, plan):  # type: ignore[no-untyped-def]
        return plan_dims(self._workload, plan)

    def machine(self, say: object, health: Health) -> Machine:
        return self._machine


@pytest.fixture(scope="module")
def dispatch() -> SearchSpace:
    return search_space(H200(), PlanRequest("dispatch"), lambda text: None)  # type: ignore[arg-type]


def test_of_a_table_on_an_h200_few_tables_are_left_and_each_kernel_that_a_rung_names_is_among_them(
    dispatch: SearchSpace,
) -> None:
    menu = menu_of(dispatch, 132)
    space = joint_space(menu)
    assert space.left < space.able - 0.5
    assert space.able < space.offered - 5
    assert space.most_of_a_site <= 50
    rungs = Resolver.load().on("sm_90", 132)
    dims = recording.read_header(recording.locate("h200")).workload.dims
    for rung in ("cublaslt", "hopper", "tma"):
        for site, choice in rungs.resolve(PlanRequest(rung), dims, "cuda").dispatch:
            assert choice in [found.choice for found in menu.at(site).candidates], (rung, site)


def test_every_cell_of_the_menu_makes_a_plan_that_can_be(dispatch: SearchSpace) -> None:
    menu, bench = menu_of(dispatch, 132), H200()
    for site, choice in menu.cells()[::23]:
        plan = bench.resolve(menu.asking({**menu.start, site: choice}))
        assert dict(plan.dispatch) == {**menu.start, site: choice}


def test_a_layout_that_the_rungs_kernels_cannot_read_is_searched_from_kernels_that_can() -> None:
    """From `algebra`, whose products read transposed weights, the cells of `dispatch` can be reached."""
    bench = H200()
    request = PlanRequest("algebra", sets=(("layout", "row"),))
    start = startable(bench, request, lambda text: None)  # type: ignore[arg-type]
    menu = menu_of(search_space(bench, start, lambda text: None), 132)  # type: ignore[arg-type]
    assert bench.resolve(start).layout == "row"
    for site, choice in bench.resolve(PlanRequest("dispatch")).dispatch:
        assert choice in [found.choice for found in menu.at(site).candidates], site


def test_a_plan_that_can_be_starts_as_it_was_asked_for_and_one_that_cannot_says_why() -> None:
    bench = H200()
    plain = PlanRequest("algebra")
    assert startable(bench, plain, lambda text: None) == plain  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="Did you mean 'layout'"):
        startable(bench, PlanRequest("algebra", sets=(("layuot", "row"),)), lambda text: None)  # type: ignore[arg-type]


def test_a_use_that_was_asked_for_does_not_hide_the_cell_that_is_tried(dispatch: SearchSpace) -> None:
    asked = replace(dispatch, request=PlanRequest("dispatch", uses=(("wo", KernelChoice("cublas")),)))
    menu = menu_of(asked, 132)
    tried = {**menu.start, "wo": KernelChoice("gemm_warpgroup_56", 8)}
    assert dict(H200().resolve(menu.asking(tried)).dispatch)["wo"] == tried["wo"]
