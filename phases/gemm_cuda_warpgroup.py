"""GEMMs on Hopper's warpgroup products, parts added inside a cluster (kernels/gemm/11_warpgroup.cu).

The widths that no rung names are the menu: which one leaves no SM idle depends on the columns of a product.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from gputop.phases.gemm_cuda import COVERS, cluster_arguments, parts, store_launch
from gputop.phases.gemm_cuda_traffic import (
    CLUSTER_CYCLES,
    Blocking,
    copy_wavefronts,
    instructions_after,
    l2_bytes_after,
    launches_after,
)
from gputop.phases.sass_loops import LOOP_BODIES
from gputop.phases.shape_limits import not_multiple_of, too_short
from gputop.plan.traffic import CriticalPath, Traffic
from gputop.plan.types import WORD_BYTES, Dims, Kernel, Launch, Plan, Task

ROWS, DEPTH = 128, 32
THREADS = 256
WARPS = THREADS // 32
AROUND = 1000
"""Cycles of a warp before its first product and after its last, by the machine code."""


@dataclass(frozen=True, slots=True)
class WarpgroupTile:
    """One entry of the source: 128 rows and so many columns."""

    columns: int
    stages: int
    """Steps of the inner axis that shared memory holds."""
    splits: tuple[int, ...]
    """Blocks of a cluster that it is offered with."""

    @property
    def entry(self) -> str:
        return f"gemm_warpgroup_{self.columns}"

    def smem_bytes(self, steps: int) -> int:
        """Of a block that is given `steps` of the inner axis: the stages, over which its sums lie later."""
        part_ld = self.columns if self.columns % 16 == 8 else self.columns + 8
        stage_bytes = (ROWS + self.columns) * DEPTH * WORD_BYTES
        return max(min(steps, self.stages) * stage_bytes, ROWS * part_ld * WORD_BYTES)


TILES = (
    WarpgroupTile(56, 9, (2, 4, 8)),
    WarpgroupTile(80, 8, (2, 4, 8)),
    WarpgroupTile(96, 8, (2, 4, 8)),
    WarpgroupTile(104, 7, (2, 4, 8)),
    WarpgroupTile(112, 7, (2, 4, 8, 16)),
)


def _launches(tile: WarpgroupTile, task: Task, plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    fused, splits = plan.fused_stores, task.splits
    launches = []
    for part in parts(task, plan, dims):
        grid = (ceil(part.output.columns / tile.columns) * splits, 1, 1)
        args = cluster_arguments(part, fused, splits)
        smem_bytes = tile.smem_bytes(ceil(task.site.inner / DEPTH / splits))
        launches.append(
            Launch(tile.entry, grid, (THREADS, 1, 1), args, smem_bytes=smem_bytes, cluster=splits, pdl=True)
        )
    return (*launches, *(() if fused else store_launch(task)))


def _limits(task: Task, plan: Plan, dims: Dims) -> str | None:
    site, output = task.site, parts(task, plan, dims)[0].output
    if output.rows > ROWS:
        return f"it takes up to {ROWS} rows, and {site.name} has {output.rows}"
    sizes = ("inner", site.inner, DEPTH), ("columns", output.columns, 4)
    return not_multiple_of(site, sizes) or too_short(site, task.splits, DEPTH)


def _traffic(tile: WarpgroupTile, task: Task, products: int, fused: bool) -> Traffic:
    """Panels once for each tile that reads them, what they have; parts travel between SMs, not through L2.

    A block's copies all set out at once, so far as shared memory holds them. Its sums are ready when the
    last of its products is, each of which takes a warpgroup half a cycle a column; then come two barriers of
    the cluster and parts read from other SMs, eight at a time.
    """
    site, splits = task.site, task.splits
    blocking = Blocking((ROWS, tile.columns, DEPTH), WARPS, splits, in_cluster=True)
    across = blocking.across(task, products)
    padded = ROWS * across * tile.columns
    panel_bytes = blocking.panel_bytes(task, products)
    steps = ceil(site.inner / DEPTH / splits)
    kept = min(steps, tile.stages)
    finishes = ceil(ROWS / splits * tile.columns / 4 / THREADS)
    end = CriticalPath(
        AROUND + CLUSTER_CYCLES * (2 + finishes * ceil(splits / 8)), l2_waits=finishes if fused else 0
    )
    products_end = CriticalPath(steps * DEPTH / 8 * tile.columns / 2, dram_waits=1) + end
    copies_end = CriticalPath(dram_waits=ceil(steps / tile.stages)) + end
    warp_steps = across * splits * WARPS * steps
    reads = (64 + tile.columns) / 4  # of both operands by a warpgroup, a warp's share, in wavefronts
    return Traffic(
        flops=2.0 * padded * site.inner,
        l2_bytes=panel_bytes * site.inner + l2_bytes_after(blocking, task, fused),
        l1_wavefronts=warp_steps * (reads + copy_wavefronts(ROWS, tile.columns, DEPTH, WARPS)),
        warp_instructions=warp_steps * LOOP_BODIES[tile.entry].instructions
        + instructions_after(blocking, task, fused),
        chains=(products_end.times(products), copies_end.times(products)),
        after=launches_after(blocking, task, products, fused),
        bytes_in_flight_per_warp=panel_bytes / across * DEPTH * kept / WARPS,
        pipe="tf32_wgmma",
        tile=blocking.tile,
    )


def _kernel(tile: WarpgroupTile) -> Kernel:
    return Kernel(
        name=tile.entry,
        backend="cuda",
        idea="Hopper's wgmma on a share sent for at once; parts added inside a cluster.",
        covers=COVERS,
        entries=(tile.entry,),
        source="gemm/11_warpgroup.cu",
        maths=("tf32",),
        layouts=("row",),
        fused_stores=True,
        only_arch="sm_90",
        splits=tile.splits,
        limits=_limits,
        launches=lambda tasks, plan, dims: _launches(tile, tasks[0], plan, dims),
        traffic=lambda tasks, plan, dims: _traffic(
            tile, tasks[0], len(parts(tasks[0], plan, dims)), plan.fused_stores
        ),
    )


KERNELS = tuple(map(_kernel, TILES))
