"""fp32 GEMMs of Hopper whose warps divide K among them (kernels/gemm/26_fp32_slices.cu).

The widths that no rung names are the menu: routing measures them at other sizes and devices.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from gputop.phases.gemm_cuda import COVERS, cluster_arguments, parts, store_launch
from gputop.phases.gemm_cuda_traffic import WAVEFRONTS_PER_LOAD, Blocking, GemmLoop, copy_wavefronts, traffic
from gputop.phases.sass_loops import LOOP_BODIES
from gputop.phases.shape_limits import not_multiple_of, too_short
from gputop.plan.traffic import Traffic
from gputop.plan.types import WORD_BYTES, Dims, Kernel, Launch, Plan, Task

ROWS, DEPTH = 64, 16
WARPS = 8
THREADS = 32 * WARPS
ACROSS = 4
"""Lanes of a warp that share a row."""
MICRO_ROWS = 8
PAIR = 8
"""Inner indices that a warp gets through in one turn of its loop."""
AROUND = 400
"""Cycles of a warp before its first product and after its last, its partial tile's way aside."""


@dataclass(frozen=True, slots=True)
class SliceTile:
    """One entry of the source: 64 rows and so many columns."""

    columns: int
    stages: int
    """Of each warp's ring."""
    splits: tuple[int, ...]
    """Blocks of a cluster that it is offered with."""

    @property
    def entry(self) -> str:
        return f"gemm_fp32_slices_{self.columns}"

    @property
    def smem_bytes(self) -> int:
        return WARPS * self.stages * (ROWS + self.columns) * DEPTH * WORD_BYTES


TILES = (
    SliceTile(24, 5, (1, 2)),
    SliceTile(36, 4, (1,)),
    SliceTile(40, 4, (3,)),
    SliceTile(48, 3, (1, 2)),
    SliceTile(52, 3, (4,)),
)


def _launches(tile: SliceTile, task: Task, plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    fused, splits = plan.fused_stores, task.splits
    launches = []
    for part in parts(task, plan, dims):
        grid = (ceil(part.output.columns / tile.columns) * splits, part.output.rows // ROWS, 1)
        args = cluster_arguments(part, fused, splits)
        launches.append(
            Launch(
                tile.entry,
                grid,
                (THREADS, 1, 1),
                args,
                smem_bytes=tile.smem_bytes,
                cluster=splits,
                pdl=True,
            )
        )
    return (*launches, *(() if fused else store_launch(task)))


def _limits(tile: SliceTile, task: Task, plan: Plan, dims: Dims) -> str | None:
    site, output = task.site, parts(task, plan, dims)[0].output
    if output.columns < tile.columns:
        return f"it needs {tile.columns} columns or more, and {site.name} has {output.columns}"
    sizes = ("rows", output.rows, ROWS), ("columns", output.columns, 4), ("inner", site.inner, DEPTH)
    return not_multiple_of(site, sizes) or too_short(site, task.splits * WARPS, DEPTH)


def _traffic(tile: SliceTile, task: Task, plan: Plan, dims: Dims) -> Traffic:
    """Every warp has its own slice of K; then eight partial tiles go through shared memory, in and out."""
    micro_columns = tile.columns // ACROSS
    reads = PAIR / 4 * (MICRO_ROWS + micro_columns) * WAVEFRONTS_PER_LOAD
    partial_wavefronts = WARPS * ROWS * tile.columns * WORD_BYTES / 128
    loop = GemmLoop(
        LOOP_BODIES[tile.entry],
        PAIR * WARPS,
        # A warp copies all of the tile's rows and columns, for itself alone.
        wavefronts=reads + copy_wavefronts(ROWS, tile.columns, PAIR, warps=1),
        ahead=DEPTH // PAIR * (tile.stages - 1),
        around=AROUND + round(2 * partial_wavefronts),
    )
    blocking = Blocking((ROWS, tile.columns, DEPTH), WARPS, task.splits, in_cluster=task.splits > 1, stores=0)
    return traffic(loop, blocking, "fp32", task, len(parts(task, plan, dims)), plan.fused_stores)


def _kernel(tile: SliceTile) -> Kernel:
    return Kernel(
        name=tile.entry,
        backend="cuda",
        idea="fp32 with a slice of K for each of a block's eight warps, no barrier between them; parts in a "
        "cluster.",
        covers=COVERS,
        entries=(tile.entry,),
        source="gemm/26_fp32_slices.cu",
        maths=("fp32",),
        layouts=("row",),
        fused_stores=True,
        min_arch=90,
        splits=tile.splits,
        limits=lambda task, plan, dims: _limits(tile, task, plan, dims),
        launches=lambda tasks, plan, dims: _launches(tile, tasks[0], plan, dims),
        traffic=lambda tasks, plan, dims: _traffic(tile, tasks[0], plan, dims),
    )


KERNELS = tuple(map(_kernel, TILES))
