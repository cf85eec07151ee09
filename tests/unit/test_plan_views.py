"""What a plan is, how many parts a kernel gets, and what a front end is told can be changed."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import msgspec
import pytest

from gputop.model.workloads import WORKLOADS
from gputop.plan.choices import PlanView, SiteChoices
from gputop.plan.plan_string import parse_word
from gputop.plan.types import Dims, Plan, PlanRequest, Step
from gputop.planner.kernel_calls import launches_of
from gputop.planner.plan_views import site_choices, site_views, toggle_views
from gputop.planner.resolver import Resolver

CATALOG = Resolver.load().on("sm_90", 132)
DIMS = WORKLOADS[0].dims
MOST_VIEW_BYTES = 40_000
"""Of what a screen is sent with each flip."""


def resolve(word: str, catalog: Resolver = CATALOG) -> Plan:
    request = parse_word(word)
    return catalog.resolve(request, DIMS, catalog.rung(request.rung).backend)


def choices(word: str, site: str) -> SiteChoices:
    plan = resolve(word)
    return site_choices(CATALOG, plan, replace(DIMS, batch=plan.batch), site)


# --- what a plan is -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "same"),
    [
        ("graph,pdl=on", "dependent"),
        ("dependent,pdl=off", "graph"),
        ("graph,graph=off", "flash"),
        ("graph,batch=32", "batch"),
        ("oracle-tf32,math=fp32", "oracle-fp32"),
        ("flash,attention:attention_parallel", "cublaslt"),
        ("cpu-blas,threads=all", "cpu-threads"),
    ],
)
def test_plans_that_are_the_same_pass_are_equal_however_asked_for(asked: str, same: str) -> None:
    plan, other = resolve(asked), resolve(same)
    assert plan == other
    assert {plan: 1}[other] == 1
    assert (plan.word, plan.rung) == (asked, asked.split(",")[0]), "but each goes by its own name"


def test_each_rung_is_a_pass_of_its_own() -> None:
    plans = [resolve(rung.id) for rung in CATALOG.rungs]
    assert len(set(plans)) == len(plans)


# --- into how many parts ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "site", "kernel"),
    [
        ("graph,wo:gemm_warpgroup_56,wo@1:gemm_one_row_k_major_2", "wo", "gemm_warpgroup_56/8"),
        ("graph,w1:gemm_warpgroup_56,w1@1:gemm_one_row_k_major", "w1", "gemm_warpgroup_56/2"),
        ("sass-fp32,w2:gemm_sass_fp32_square", "w2", "gemm_sass_fp32_square/16"),
        ("split-k,head:gemm_split_k", "head", "gemm_split_k/8"),
        ("wmma,w2:gemm_wmma_tall", "w2", "gemm_wmma_tall/11"),
    ],
)
def test_a_kernel_that_is_asked_for_without_parts_gets_as_many_as_run_side_by_side(
    word: str, site: str, kernel: str
) -> None:
    """In these cases that is what a rung measured to be best there."""
    assert str(dict(resolve(word).dispatch)[site]) == kernel


@pytest.mark.parametrize("sm_count", [1, 24, 80, 132, 200])
def test_the_parts_of_a_product_fill_the_device_and_no_more(sm_count: int) -> None:
    catalog = CATALOG.on("sm_90", sm_count)
    for kernel in catalog.kernels.values():
        plan = resolve("graph" if "row" in kernel.layouts else "algebra").change(math=kernel.maths[0])
        for site, task in catalog.site_tasks(plan, DIMS).items():
            if not kernel.splits or task.site.phase not in kernel.covers:
                continue
            able = [n for n in catalog.able_splits(kernel, task, plan, DIMS) if n is not None]
            chosen = catalog.default_splits(kernel, task, plan, DIMS)
            room = sm_count * kernel.blocks_per_sm
            blocks = {
                n: prod(first_grid(kernel_step(catalog, kernel.name, site, n, plan), plan)) for n in able
            }
            assert chosen == max((n for n in able if blocks[n] <= room), default=min(able or kernel.splits))


def kernel_step(catalog: Resolver, kernel: str, site: str, splits: int, plan: Plan) -> Step:
    task = catalog.site_tasks(plan, DIMS)[site]
    return Step(catalog.kernel(kernel), (replace(task, splits=splits),))


def first_grid(step: Step, plan: Plan, dims: Dims = DIMS) -> tuple[int, int, int]:
    return launches_of(step, plan, dims)[0].grid


def test_a_plans_word_names_the_parts_so_that_it_means_the_same_on_any_device() -> None:
    for sm_count in (24, 132):
        word = resolve("sass-fp32,w2:gemm_sass_fp32_square", CATALOG.on("sm_90", sm_count)).word
        assert resolve(word).word == word


def test_a_task_is_divided_as_its_kernel_was_chosen() -> None:
    plan = resolve("hopper")
    steps = {step.site: step for step in CATALOG.steps(plan, DIMS)}
    assert (steps["w1"].tasks[0].splits, str(steps["w1"].choice)) == (2, "gemm_warpgroup_56/2")
    assert (steps["ln1"].tasks[0].splits, str(steps["ln1"].choice)) == (1, "layernorm_row_in_registers")


# --- what can be changed ------------------------------------------------------------------------------


@pytest.mark.parametrize("rung", [rung.id for rung in CATALOG.rungs])
def test_a_plans_view_is_small(rung: str) -> None:
    plan = resolve(rung)
    dims = replace(DIMS, batch=plan.batch)
    view = PlanView(plan, toggle_views(CATALOG, plan, dims), site_views(CATALOG, plan, dims))
    assert len(msgspec.json.encode(view)) < MOST_VIEW_BYTES
    assert msgspec.json.decode(msgspec.json.encode(view), type=PlanView) == view


def test_a_kernel_chosen_at_a_site_leaves_sites_with_other_kernels_alone() -> None:
    w2 = choices("graph", "w2")
    assert {"gemm_k_major_tall/3", "cublaslt", "gemm_warpgroup_80/8"} <= {
        str(c.choice) for c in w2.candidates
    }
    for candidate in w2.candidates:
        dispatch = dict(CATALOG.resolve(candidate.request, DIMS, "cuda").dispatch)
        assert dispatch["w2"] == candidate.choice
        assert str(dispatch["w2@1"]) == "gemm_one_row_k_major_4"
    assert w2.own.request == PlanRequest("graph")


def test_a_kernel_chosen_at_a_site_serves_the_phases_sites_that_had_the_same() -> None:
    parallel = next(
        c for c in choices("flash", "attention").candidates if c.choice.kernel == "attention_parallel"
    )
    assert CATALOG.resolve(parallel.request, DIMS, "cuda") == resolve("cublaslt")


def test_every_kernel_of_a_phase_can_serve_a_site_or_says_why_not() -> None:
    for word, site in (("graph", "w2"), ("graph", "head"), ("cpu-pruned", "w1@1"), ("megakernel", "qkv")):
        plan, found = resolve(word), choices(word, site)
        phase = CATALOG.site_tasks(plan, DIMS)[site].site.phase
        able = {candidate.choice.kernel for candidate in found.candidates}
        assert able.isdisjoint(dict(found.refused))
        assert able | set(dict(found.refused)) == {k.name for k in CATALOG.kernels_for(phase, plan.backend)}
        assert all("can't" in why or "in one launch" in why for _, why in found.refused)
