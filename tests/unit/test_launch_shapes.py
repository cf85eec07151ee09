"""What kernels declare of their launches: whole where the code is ours, by hand, and as any plan has them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from gputop.model.workloads import parse_workload
from gputop.plan.launch_shape import LaunchShape
from gputop.plan.plan_string import parse_word
from gputop.plan.types import Plan, Step
from gputop.planner.resolver import Resolver, plan_dims
from gputop.util.errors import UsageError

GPT2 = parse_workload("gpt2-small")


@cache
def catalog() -> Resolver:
    return Resolver.load()


def resolve(rung: str, *uses: str) -> Plan:
    return catalog().resolve(parse_word(",".join((rung, *uses))), GPT2.dims, "cuda")


def steps(plan: Plan) -> tuple[Step, ...]:
    """One of each site."""
    every = (part for step in catalog().steps(plan, plan_dims(GPT2, plan)) for part in step.apart())
    return tuple({step.site: step for step in every}.values())


def declared(step: Step, plan: Plan) -> tuple[LaunchShape, ...]:
    assert step.kernel.shapes is not None, step.kernel.name
    return step.kernel.shapes(step.tasks, plan, plan_dims(GPT2, plan))


def of_site(rung: str, site: str, *uses: str) -> tuple[LaunchShape, ...]:
    plan = resolve(rung, *uses)
    return declared(next(step for step in steps(plan) if step.site == site), plan)


def plans() -> Iterator[Plan]:
    for rung in catalog().rungs_of("cuda"):
        try:
            plan = resolve(rung.id)
        except UsageError:
            continue
        if not plan.peer:
            yield plan


@pytest.mark.parametrize("plan", plans(), ids=lambda plan: plan.rung)
def test_kernels_of_ours_declare_each_launch_as_it_is_launched(plan: Plan) -> None:
    dims = plan_dims(GPT2, plan)
    for step in steps(plan):
        if step.kernel.library:
            assert step.kernel.shapes is None
            continue
        where, shapes = f"{step.site} by {step.kernel.name}", declared(step, plan)
        for shape in shapes:
            assert shape.l2_bytes > 0, where
            assert shape.written_bytes > 0, where
            assert 0 < shape.warps <= max(1, shape.threads // 32), where
            assert shape.early_bytes + shape.prefetched_bytes <= shape.read_bytes * (1 + 1e-9), where
        if step.kernel.stamped:
            assert all(shape.inside for shape in shapes[1:]), where
            continue
        assert step.kernel.launches is not None
        launches = step.kernel.launches(step.tasks, plan, dims)
        for shape, launch in zip(shapes, launches, strict=True):
            x, y, z = launch.grid
            assert (shape.blocks, shape.pdl) == (x * y * z, launch.pdl), where
            assert (shape.cluster, shape.smem_bytes) == (launch.cluster, launch.smem_bytes), where


@pytest.mark.parametrize("plan", plans(), ids=lambda plan: plan.rung)
def test_no_product_multiplies_less_than_its_site_asks_for(plan: Plan) -> None:
    dims = plan_dims(GPT2, plan)
    for step in steps(plan):
        if step.kernel.library or not step.tasks[0].site.inner:
            continue
        asked = sum(
            2.0 * task.output.rows * task.site.columns * task.site.inner
            for task in step.tasks
            if task.site.inner
        )
        flops = sum(shape.flops for shape in declared(step, plan))
        assert flops >= asked * (1 - 1e-9), f"{step.site} by {step.kernel.name} at {dims.tokens} tokens"


def test_a_product_by_hand() -> None:
    """qkv by warpgroups in tiles of 128 x 80: 29 tiles, each in 4 parts of 192 inner indices."""
    (shape,) = of_site("hopper", "qkv", "qkv:gemm_warpgroup_80/4")
    assert (shape.blocks, shape.cluster, shape.tile) == (116, 4, (128, 80, 32))
    assert shape.flops == 2 * 128 * 29 * 80 * 768
    assert shape.read_bytes == 4 * (128 + 80) * 192
    assert shape.distinct_bytes == 4 * (128 + 2304) * 768
    assert shape.written_bytes == 4 * 128 * 2304
    assert (shape.steps, shape.exchange, shape.exchange_bytes) == (6, "cluster", 4 * 128 * 80)


def test_parts_that_a_launch_of_its_own_adds() -> None:
    """wo of split-k: the product writes its parts, and what adds them reads each once."""
    product, added, *_ = of_site("split-k", "wo")
    assert product.splits > 1
    assert product.written_bytes == product.splits * 4 * 128 * 768
    assert added.blocks * added.read_bytes >= product.written_bytes
    assert added.written_bytes == 4 * 128 * 768


def test_tiles_of_the_future_are_left_out_of_attention() -> None:
    """Of a causal square of 128 keys in tiles of 64 queries and 32 keys: 2 + 4 of 8 steps."""
    shape = next(shape for shape in of_site("hopper", "attention") if shape.tile)
    assert shape.tile is not None
    queries, d_head, keys = shape.tile
    rows = range(0, 128, queries)
    tiles = sum((min(128, first + queries) + keys - 1) // keys for first in rows)
    assert shape.flops == 12 * tiles * 4 * queries * keys * d_head


@pytest.mark.parametrize(
    ("site", "weight_bytes"),
    [("ln1", 4 * 768 * 4 * 768), ("ln2", 2 * 4 * 768 * 3072), ("lnf", 4 * 256 * 768)],
)
def test_a_layernorm_that_sends_for_weights_says_which(site: str, weight_bytes: int) -> None:
    (shape,) = of_site("graph", site, f"{site}:layernorm_weights_ahead")
    assert sum(weight.size_bytes for weight in shape.ahead) == weight_bytes
    (plain,) = of_site("graph", site, f"{site}:layernorm_row_in_registers")
    assert plain.ahead == ()


@pytest.mark.parametrize(
    ("site", "columns", "inner"), [("ln1+qkv", 2304, 768), ("wo", 768, 768), ("w2", 768, 3072)]
)
def test_in_bf16_operands_and_results_are_two_bytes_and_parts_of_sums_four(
    site: str, columns: int, inner: int
) -> None:
    (shape,) = of_site("bf16", site)
    assert shape.tile is not None
    assert shape.distinct_bytes == 2 * (128 + columns) * inner
    assert shape.written_bytes == 2 * 128 * columns
    assert shape.pipe == "bf16_wgmma"
    if shape.splits > 1:
        assert shape.exchange_bytes == 4 * shape.tile[0] * shape.tile[1]


def test_a_warp_with_no_row_of_its_own_costs_nothing() -> None:
    """The head's one row: of a block's 8 warps 7 leave."""
    (shape,) = of_site("naive", "head")
    assert shape.warps == 1
    assert shape.flops == 2 * 256 * 768
