"""What kernels declare of the chip: whole where the code is ours, silent where a library chooses, by hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from functools import cache

import pytest

from gputop.model.workloads import parse_workload
from gputop.phases.gemm_cuda_traffic import Blocking, GemmLoop, sum_waits, traffic
from gputop.phases.sass_loops import L1_CYCLES, LOOP_BODIES, LoopBody
from gputop.plan.plan_string import parse_word
from gputop.plan.traffic import CriticalPath, Traffic
from gputop.plan.types import Plan, Step, Task
from gputop.planner.resolver import Resolver, plan_dims
from gputop.results.records import Ceiling, Ceilings, DeviceFacts
from gputop.session.cost_model import Machine, site_models
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


def task_of(site: str, rung: str = "graph") -> Task:
    return next(step.tasks[0] for step in steps(resolve(rung)) if step.site == site)


def declared(step: Step, plan: Plan) -> Traffic:
    assert step.kernel.traffic is not None, step.kernel.name
    return step.kernel.traffic(step.tasks, plan, plan_dims(GPT2, plan))


def plans() -> Iterator[Plan]:
    for rung in catalog().rungs_of("cuda"):
        try:
            plan = resolve(rung.id)
        except UsageError:
            continue
        if not plan.peer:
            yield plan


@pytest.mark.parametrize("plan", plans(), ids=lambda plan: plan.rung)
def test_kernels_of_ours_declare_all_that_a_term_needs(plan: Plan) -> None:
    for step in steps(plan):
        if step.kernel.library:
            continue
        told = declared(step, plan)
        where = f"{step.site} by {step.kernel.name}"
        for name in ("flops", "l2_bytes", "l1_wavefronts", "warp_instructions"):
            value = getattr(told, name)
            assert value is not None, f"{where}: {name}"
            assert value > 0, f"{where}: {name}"
        assert told.pipe, where
        assert told.bytes_in_flight_per_warp is None or told.bytes_in_flight_per_warp > 0, where
        for chain in (*told.chains, told.after):
            assert all(getattr(chain, field.name) >= 0 for field in fields(CriticalPath)), where
        assert any(chain.cycles > 0 and chain.l2_waits + chain.dram_waits > 0 for chain in told.chains), where


@pytest.mark.parametrize("plan", plans(), ids=lambda plan: plan.rung)
def test_nothing_is_said_of_a_librarys_kernel_but_what_any_needs(plan: Plan) -> None:
    for step in steps(plan):
        if step.kernel.library:
            assert replace(declared(step, plan), flops=None) == Traffic()


def test_a_librarys_product_is_priced_on_the_fastest_pipe_that_its_math_permits() -> None:
    items = (Ceiling("tf32_mma", 3e14, "FLOP/s", ""), Ceiling("tf32_wgmma", 5e14, "FLOP/s", ""))
    machine = Machine(DeviceFacts("cuda", "a device", None), Ceilings("a device", None, "t", items), 2e9)
    plan = resolve("oracle-tf32")
    models = site_models(catalog(), plan, GPT2.dims, steps(plan), machine, {})
    wo = next(model for model in models if model.name == "wo")
    assert wo.terms.compute_s == pytest.approx(wo.count * 2 * 128 * 768 * 768 / 5e14)


def test_a_fused_multiply_add_is_issued_once_for_32_lanes() -> None:
    """Of every GEMM that multiplies on the fp32 pipe: no fewer instructions than multiply-adds."""
    for plan in plans():
        for step in steps(plan):
            told = declared(step, plan)
            if step.tasks[0].site.inner and told.pipe == "fp32" and told.warp_instructions is not None:
                assert told.flops is not None
                assert told.warp_instructions >= told.flops / 64, step.kernel.name


# A loop by hand

TURN = LoopBody(instructions=100, cycles=300, waits=3)
BLOCKING = Blocking((64, 64, 16), warps=4, splits=1)


def test_a_loop_that_waits_for_its_own_operands() -> None:
    loop = GemmLoop(TURN, inner=16, wavefronts=50, l2_waits=1, dram_waits=1, around=40)
    assert loop.chains(10) == (CriticalPath(40 + 10 * (300 + L1_CYCLES), l2_waits=10, dram_waits=10),)


def test_a_loop_whose_copies_run_ahead_is_as_long_as_the_longer_of_two_chains() -> None:
    loop = GemmLoop(LoopBody(100, 300), inner=16, wavefronts=50, ahead=2)
    assert loop.chains(10) == (CriticalPath(3000, dram_waits=1), CriticalPath(dram_waits=5))
    prefetched = replace(loop, prefetched=True)
    assert prefetched.chains(10) == (CriticalPath(3000, dram_waits=1), CriticalPath(l2_waits=4, dram_waits=1))


def test_counts_of_a_gemm_by_hand() -> None:
    """wo: 128 x 768 by 768, in 2 x 12 tiles of 64 x 64, 48 turns each; bias and residual stored apart."""
    loop = GemmLoop(TURN, inner=16, wavefronts=50, dram_waits=3)
    got = traffic(loop, BLOCKING, "fp32", task_of("wo"), 1, fused=False)
    assert got.flops == 2 * 128 * 768 * 768
    assert got.l1_wavefronts == 24 * 4 * 48 * 50
    assert got.warp_instructions == 24 * 4 * 48 * 100 + 128 * 768 / 32 * 45
    assert got.chains == (CriticalPath(48 * 300, dram_waits=48 * 3),)
    assert got.after == CriticalPath(150, dram_waits=1)
    # Panels for every tile; the result there, and with the store apart there and back, residual and bias.
    assert got.l2_bytes == 24 * 4 * 768 * (64 + 64) + 4 * 128 * 768 * (1 + 2 + 2)
    # A third of a turn's operands, of a block's four warps.
    assert got.bytes_in_flight_per_warp == pytest.approx(4 * 16 * (64 + 64) / 3 / 4)


def test_no_more_is_in_flight_than_a_blocks_share_of_the_inner_axis() -> None:
    """A turn of the head's four warps a column is 3072 indices long, and the row has 768."""
    plan = resolve("graph", "head:gemm_one_row_k_major_4")
    head = next(step for step in steps(plan) if step.site == "head")
    assert declared(head, plan).bytes_in_flight_per_warp == 4 * (1 + 2) * 768 / 8
    loop = GemmLoop(LoopBody(100, 300), inner=32, wavefronts=50, ahead=3)
    of_96 = traffic(loop, BLOCKING, "fp32", task_of("wo"), 1, fused=True)
    assert of_96.bytes_in_flight_per_warp == 4 * (64 + 64) * 96 / 4
    of_70 = traffic(loop, replace(BLOCKING, splits=11), "fp32", task_of("wo"), 1, fused=True)
    assert of_70.bytes_in_flight_per_warp == 4 * (64 + 64) * 70 / 4


def test_a_fused_store_waits_for_each_residual_in_turn_and_three_products_for_each_other() -> None:
    loop = GemmLoop(TURN, inner=16, wavefronts=50, dram_waits=3)
    wo = traffic(loop, BLOCKING, "fp32", task_of("wo"), 1, fused=True)
    assert wo.chains == (CriticalPath(48 * 300, l2_waits=32, dram_waits=48 * 3 + 1),)
    assert wo.after == CriticalPath()
    early = traffic(loop, replace(BLOCKING, stores=0), "fp32", task_of("wo"), 1, fused=True)
    assert early.chains == (CriticalPath(48 * 300, dram_waits=48 * 3),)
    thrice = traffic(loop, BLOCKING, "fp32", task_of("wo"), 3, fused=True)
    assert thrice.chains == (wo.chains[0].times(3),)


WORDS = 4 * 128 * 768
"""Bytes of wo's output."""


def l2_bytes_after(blocking: Blocking, *, fused: bool) -> float:
    """Of wo, what is asked of L2 beside the panels."""
    loop = GemmLoop(TURN, inner=16, wavefronts=50, dram_waits=3)
    got = traffic(loop, blocking, "fp32", task_of("wo"), 1, fused)
    assert got.l2_bytes is not None
    return got.l2_bytes - 24 * 4 * 768 * (64 + 64)


def test_a_fused_store_reads_the_residual_and_once_a_tile_the_bias() -> None:
    assert l2_bytes_after(BLOCKING, fused=True) == WORDS * (1 + 1) + 4 * 2 * 768
    split = replace(BLOCKING, splits=4, part_waits=0.5)
    assert l2_bytes_after(split, fused=True) == WORDS * (1 + 2 * 4 + 1) + 4 * 2 * 768
    in_cluster = replace(BLOCKING, splits=4, in_cluster=True)
    assert l2_bytes_after(in_cluster, fused=True) == WORDS * (1 + 1) + 4 * 2 * 4 * 768
    summed = replace(BLOCKING, splits=4, reduces=True)
    assert l2_bytes_after(summed, fused=True) == WORDS * (1 + 2 * 4 + 2)


def test_a_store_apart_takes_the_result_there_and_back_and_reads_the_bias_a_row() -> None:
    for blocking in (BLOCKING, replace(BLOCKING, splits=4, in_cluster=True)):
        assert l2_bytes_after(blocking, fused=False) == WORDS * (1 + 2 + 2)


def test_three_products_are_stored_in_one_launch() -> None:
    loop = GemmLoop(TURN, inner=16, wavefronts=50, dram_waits=3)
    summed = replace(BLOCKING, splits=4, reduces=True)
    apart = traffic(loop, summed, "fp32", task_of("qkv"), 3, fused=False)
    assert apart.after == CriticalPath(3 * 200 + 150, l2_waits=3 * sum_waits(4), dram_waits=1)


def test_a_warpgroup_product_differs_by_its_store_as_any_other() -> None:
    """wo in tiles of 128 x 56, of which the last has 40 columns to load, two blocks of a cluster each: the
    store apart is a launch more.
    """
    plan = resolve("hopper", "wo:gemm_warpgroup_56_2")
    wo = next(step for step in steps(plan) if step.site == "wo")
    fused, apart = declared(wo, plan), declared(wo, replace(plan, fused_stores=False))
    assert fused.l2_bytes is not None
    assert fused.warp_instructions is not None
    assert fused.l2_bytes == 4 * 768 * (14 * 128 + 768) + WORDS * (1 + 1) + 4 * 2 * 768
    assert apart.l2_bytes == fused.l2_bytes - 4 * 2 * 768 + WORDS * (2 + 1)
    assert apart.warp_instructions == fused.warp_instructions + 128 * 768 / 32 * 45
    assert apart.after == CriticalPath(150, dram_waits=1)


def test_parts_shorten_the_loop_and_are_added_afterwards() -> None:
    loop = GemmLoop(TURN, inner=16, wavefronts=50, dram_waits=3)
    split = traffic(loop, replace(BLOCKING, splits=4, reduces=True), "fp32", task_of("wo"), 1, fused=True)
    assert split.chains == (CriticalPath(12 * 300, dram_waits=12 * 3),)
    assert split.after == CriticalPath(200, l2_waits=sum_waits(4) + 1, dram_waits=1)
    own = traffic(loop, replace(BLOCKING, splits=4, part_waits=0.5), "fp32", task_of("wo"), 1, fused=True)
    assert own.chains == (CriticalPath(12 * 300, l2_waits=2 + 2 + 32, dram_waits=12 * 3 + 1),)


@pytest.mark.parametrize(
    ("parts", "waits"), [(1, 1), (2, 2), (4, 1), (5, 2), (8, 1), (11, 4), (16, 2), (22, 5)]
)
def test_parts_are_waited_for_as_the_loop_is_unrolled(parts: int, waits: int) -> None:
    assert sum_waits(parts) == waits


@pytest.mark.parametrize(
    ("site", "weight_bytes", "turns"),
    [("ln1", 4 * 768 * 4 * 768, 14 + 5), ("ln2", 2 * 4 * 768 * 3072, 18 + 18), ("lnf", 4 * 256 * 768, 2)],
)
def test_a_layernorm_that_sends_for_weights_asks_for_every_line_of_them(
    site: str, weight_bytes: int, turns: int
) -> None:
    """From DRAM to L2, as many lines as its arguments say; what a block asks for it doesn't wait for.

    In a turn 128 blocks of a warp send for 4096 lines.
    """
    plan = resolve("graph", f"{site}:layernorm_weights_ahead")
    step = next(step for step in steps(plan) if step.site == site)
    ahead, rows = declared(step, plan), step.tasks[0].output.rows
    plain = resolve("graph", f"{site}:layernorm_row_in_registers")
    alone = declared(next(step for step in steps(plain) if step.site == site), plain)
    assert step.kernel.launches is not None
    (launch,) = step.kernel.launches(step.tasks, plan, plan_dims(GPT2, plan))
    assert 128 * sum(lines for lines in launch.args[10:12] if isinstance(lines, int)) == weight_bytes
    assert ahead.dram_bytes == weight_bytes
    assert alone.dram_bytes is None
    assert alone.l2_bytes == 2 * 4 * rows * 768
    assert ahead.l2_bytes == alone.l2_bytes + weight_bytes
    assert alone.l1_wavefronts is not None
    assert alone.warp_instructions is not None
    assert ahead.l1_wavefronts == alone.l1_wavefronts + weight_bytes / 128
    assert ahead.warp_instructions == alone.warp_instructions + weight_bytes / 128 / 32 * 5
    assert ahead.bytes_in_flight_per_warp == (weight_bytes + 4 * rows * 768) / 128
    assert ahead.chains == (*alone.chains, CriticalPath(alone.chains[0].cycles + 32 * turns))


def test_a_warp_with_no_row_of_its_own_costs_nothing() -> None:
    """The head's one row: of a block's 8 warps 7 leave."""
    naive = next(step for step in steps(resolve("naive")) if step.site == "head")
    told = declared(naive, resolve("naive"))
    assert told.flops == pytest.approx(2 * 256 * 768)
    assert told.warp_instructions == 8 * 48 * LOOP_BODIES["gemm_naive"].instructions
