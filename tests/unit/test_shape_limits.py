"""A GEMM of whole tiles says which size doesn't suit it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gputop.model.workloads import parse_workload
from gputop.phases.shape_limits import not_multiple_of, too_short
from gputop.plan.plan_string import parse_choice
from gputop.plan.types import Dims, PlanRequest, Site
from gputop.planner.registry import divided
from gputop.planner.resolver import Resolver

SITE = Site("wo", "wo", 100, 768, 768, (0, 1))


def test_the_first_size_that_is_no_multiple_is_named() -> None:
    sizes = ("columns", 768, 64), ("rows", 100, 64), ("inner", 768, 500)
    assert not_multiple_of(SITE, sizes) == "it needs rows a multiple of 64, and wo has 100"
    assert not_multiple_of(SITE, sizes[:1]) is None


def test_each_part_of_the_inner_axis_is_a_step_long() -> None:
    assert too_short(SITE, 25, 32) == "it divides the inner axis by 25, and wo has 768"
    assert too_short(SITE, 24, 32) is None


GPT2, MINI = (parse_workload(name).dims for name in ("gpt2-small", "mini"))


@pytest.mark.parametrize(
    ("kernel", "site", "dims", "why"),
    [
        ("gemm_fp32_cluster_8x8/2", "head", GPT2, "needs rows a multiple of 64, and head has 1"),
        ("gemm_fp32_cluster_8x6/2", "w1", MINI, "needs columns a multiple of 48, and w1 has 1024"),
        ("gemm_fp32_slices_52/4", "w2", GPT2, None),
        ("gemm_fp32_slices_52/4", "wo", MINI, "divides the inner axis by 32, and wo has 256"),
        (
            "gemm_fp32_slices_52/4",
            "w2",
            replace(MINI, d_model=48, heads=3),
            "needs 52 columns or more, and w2 has 48",
        ),
        ("gemm_warpgroup_112/16", "wo", MINI, "divides the inner axis by 16, and wo has 256"),
        ("gemm_warpgroup_112/16", "wo", replace(MINI, seq=256), "takes up to 128 rows, and wo has 256"),
        ("gemm_warpgroup_112/16", "wo", GPT2, None),
        ("megakernel", "qkv", replace(MINI, seq=16), "needs rows a multiple of 64, and qkv has 16"),
        ("megakernel", "qkv", MINI, None),
    ],
)
def test_kernels_refuse_a_site_in_those_words(kernel: str, site: str, dims: Dims, why: str | None) -> None:
    catalog = Resolver.load()
    plan = catalog.resolve(PlanRequest("graph"), dims, "cuda")
    task = next(task for step in catalog.steps(plan, dims) for task in step.tasks if task.site.name == site)
    choice = parse_choice(kernel)
    limits = catalog.kernels[choice.kernel].limits
    assert limits is not None
    assert limits(divided(task, choice), plan, dims) == (why and f"it {why}")
