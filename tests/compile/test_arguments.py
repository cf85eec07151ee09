"""What the host packs is what the compiled kernel takes: struct size, entry, block, shared memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest

from gputop.backends.cuda.bind import plan_launches
from gputop.backends.cuda.runtime.params import pack
from gputop.model.workloads import WORKLOADS
from gputop.perf.gpu_specs import limits
from gputop.plan.types import Launch, Plan, PlanRequest, Workload
from gputop.planner.grid_limits import LARGEST_GRID
from gputop.planner.resolver import Resolver, plan_dims
from gputop.util.errors import UsageError
from tests.compile import sources

ARCH = "90"
TENSOR_MAP_BYTES = 128
MEASURE_STRUCTS = {
    ("measure/fill.cu", "fill_weights"): 48,
    ("measure/fill.cu", "fold_weights"): 48,
    ("measure/fill.cu", "fold_bias"): 48,
    ("measure/fill.cu", "round_to_bf16"): 24,
    ("measure/fill.cu", "fill_words"): 24,
    ("measure/fill.cu", "fill_noise"): 24,
    ("measure/row_determinism.cu", "fill_repeating"): 32,
    ("measure/row_determinism.cu", "find_mismatch"): 32,
    ("measure/blocker.cu", "blocker"): 24,
    ("measure/blocker.cu", "spin"): 16,
    ("measure/blocker.cu", "empty"): 8,
    ("measure/blocker.cu", "clock_stamp"): 8,
    ("measure/bandwidth.cu", "dram_read"): 48,
    ("measure/bandwidth.cu", "dram_copy"): 48,
    ("measure/bandwidth.cu", "dram_copy_tiles"): 48,
    ("measure/bandwidth.cu", "dram_copy_cached"): 48,
    ("measure/bandwidth.cu", "l2_read"): 48,
    ("measure/async_read.cu", "async_read"): 32,
    ("measure/bulk_read.cu", "bulk_read"): 32,
    ("measure/cluster.cu", "clustered"): 32,
    ("measure/cluster.cu", "cluster_barriers"): 32,
    ("measure/cluster.cu", "dsmem_read"): 32,
    **{("measure/code.cu", f"straight_code_{index}"): 16 for index in range(6)},
    ("measure/wmma.cu", "wmma_tf32_loop"): 24,
    **{
        ("measure/wgmma_widths.cu", f"wgmma_n{columns}{where}"): 24
        for columns in (24, 48, 56, 80, 96, 128)
        for where in ("", "_registers")
    },
    ("measure/ffma.cu", "ffma_loop"): 24,
    ("measure/mma.cu", "mma_tf32_loop"): 24,
    ("measure/mma.cu", "mma_bf16_loop"): 24,
    ("measure/wgmma.cu", "wgmma_tf32_loop"): 24,
    ("measure/wgmma.cu", "wgmma_bf16_loop"): 24,
    ("measure/latency.cu", "link_nodes"): 32,
    ("measure/latency.cu", "chase"): 24,
    **{
        ("measure/dependent.cu", f"{entry}{mode}"): 24
        for entry in ("chained", "loading", "dependent")
        for mode in ("", "_pdl")
    },
    ("measure/grid_barrier.cu", "grid_barriers"): 4,
}
"""As the cuda backend packs them."""


@cache
def catalog() -> Resolver:
    return Resolver.load()


def plans(workload: Workload) -> Iterator[Plan]:
    """Every rung's plan that can be, alone, for a batch, and with the stores fused or not."""
    for rung in catalog().rungs_of("cuda"):
        try:
            plan = catalog().resolve(PlanRequest(rung.id), workload.dims, "cuda")
        except UsageError:
            continue
        yield plan
        yield replace(plan, batch=3)
        yield replace(plan, fused_stores=not plan.fused_stores)


def launches(workload: Workload) -> dict[tuple[str, Launch], str]:
    """(source, launch) -> the rung that makes it, without library calls."""
    found: dict[tuple[str, Launch], str] = {}
    for plan in plans(workload):
        dims = plan_dims(workload, plan)
        for step in catalog().steps(plan, dims):
            for _, launch in plan_launches((step,), plan, dims):
                if not launch.library:
                    found.setdefault((launch.source or step.kernel.source, launch), plan.rung)
    return found


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_every_rungs_launches_fit_their_kernels(workload: Workload) -> None:
    # Two layers have every site that more layers have.
    every = launches(replace(workload, dims=replace(workload.dims, layers=2)))
    assert every
    sm = limits(ARCH)
    for (source, launch), rung in every.items():
        cubin = sources.cubin(source, ARCH)
        assert cubin is not None, f"{source} does not run on sm_{ARCH}"
        where = f"{launch.entry} of {source} in {rung} on {workload.name}"
        assert launch.entry in cubin.functions, where
        facts = cubin.functions[launch.entry]
        packed = pack(launch.args, lambda operand: 0, lambda tensor_map, address: bytes(TENSOR_MAP_BYTES))
        assert len(packed) == facts.parameter_bytes, where
        threads = launch.block[0] * launch.block[1] * launch.block[2]
        assert 0 < threads <= (facts.max_threads or sm.threads_per_block), where
        assert facts.smem_bytes + launch.smem_bytes <= sm.smem_per_block_optin_bytes, where
        if launch.cooperative and not any(launch.grid):
            continue  # One wave of whatever device it meets.
        assert all(0 < size <= most for size, most in zip(launch.grid, LARGEST_GRID, strict=True)), where


@pytest.mark.parametrize(("source", "entry"), MEASURE_STRUCTS, ids=lambda value: value)
def test_measuring_kernels_take_what_the_backend_packs(source: str, entry: str) -> None:
    cubin = sources.cubin(source, ARCH)
    assert cubin is not None
    assert cubin.functions[entry].parameter_bytes == MEASURE_STRUCTS[source, entry]


def test_every_measuring_kernel_is_listed() -> None:
    entries = {
        (name, entry)
        for name in sources.NAMES
        if name.startswith("measure/") and (cubin := sources.cubin(name, ARCH)) is not None
        for entry in cubin.functions
    }
    assert entries == set(MEASURE_STRUCTS)
