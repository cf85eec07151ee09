"""fp32 GEMMs of Hopper whose warps divide K among them (kernels/gemm/26_fp32_slices.cu).

The widths that no rung names are the menu: routing measures them at other sizes and devices.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import ceil

from gputop.phases.gemm_cuda import COVERS, cluster_launches, parts, product_shapes
from gputop.phases.gemm_cuda_shapes import Tiles
from gputop.phases.shape_limits import not_multiple_of, too_short
from gputop.plan.types import WORD_BYTES, Argument, Dims, Kernel, Launch, Plan, Task

ROWS, DEPTH = 64, 16
WARPS = 8
THREADS = 32 * WARPS


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
    def product(part: Task, args: tuple[Argument, ...]) -> Launch:
        grid = (ceil(part.output.columns / tile.columns) * task.splits, part.output.rows // ROWS, 1)
        block = (THREADS, 1, 1)
        return Launch(
            tile.entry, grid, block, args, smem_bytes=tile.smem_bytes, cluster=task.splits, pdl=True
        )

    return cluster_launches(product, task, plan, dims)


def _limits(tile: SliceTile, task: Task, plan: Plan, dims: Dims) -> str | None:
    site, output = task.site, parts(task, plan, dims)[0].output
    if output.columns < tile.columns:
        return f"it needs {tile.columns} columns or more, and {site.name} has {output.columns}"
    sizes = ("rows", output.rows, ROWS), ("columns", output.columns, 4), ("inner", site.inner, DEPTH)
    return not_multiple_of(site, sizes) or too_short(site, task.splits * WARPS, DEPTH)


def _asks(tile: SliceTile) -> Tiles:
    """Each warp multiplies the whole tile over its own slice of K; then eight tiles go through shared
    memory.
    """
    return Tiles(
        (ROWS, tile.columns, DEPTH * WARPS),
        tile.stages,
        warp_tile=(ROWS, tile.columns),
        readers=1,
        early=True,
        exchange="cluster",
        extra_shared_bytes=2.0 * WARPS * ROWS * tile.columns * WORD_BYTES,
    )


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
        shapes=product_shapes(tile.entry, _asks(tile), partial(_launches, tile)),
    )


KERNELS = tuple(map(_kernel, TILES))
