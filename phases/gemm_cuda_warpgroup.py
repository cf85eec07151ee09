"""GEMMs on Hopper's warpgroup products, parts added inside a cluster (kernels/gemm/11_warpgroup.cu).

The widths that no rung names are the menu: which one leaves no SM idle depends on the columns of a product.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import ceil

from gputop.phases.gemm_cuda import COVERS, cluster_launches, parts, product_shapes
from gputop.phases.gemm_cuda_shapes import Tiles
from gputop.phases.shape_limits import not_multiple_of, too_short
from gputop.plan.types import WORD_BYTES, Argument, Dims, Kernel, Launch, Plan, Task

ROWS, DEPTH = 128, 32
THREADS = 256
WARPGROUPS = 2


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
    smem_bytes = tile.smem_bytes(ceil(task.site.inner / DEPTH / task.splits))

    def product(part: Task, args: tuple[Argument, ...]) -> Launch:
        grid = (ceil(part.output.columns / tile.columns) * task.splits, 1, 1)
        block = (THREADS, 1, 1)
        return Launch(tile.entry, grid, block, args, smem_bytes=smem_bytes, cluster=task.splits, pdl=True)

    return cluster_launches(product, task, plan, dims)


def _limits(task: Task, plan: Plan, dims: Dims) -> str | None:
    site, output = task.site, parts(task, plan, dims)[0].output
    if output.rows > ROWS:
        return f"it takes up to {ROWS} rows, and {site.name} has {output.rows}"
    sizes = ("inner", site.inner, DEPTH), ("columns", output.columns, 4)
    return not_multiple_of(site, sizes) or too_short(site, task.splits, DEPTH)


def _asks(tile: WarpgroupTile) -> Tiles:
    """Two warpgroups share the columns; copies set out as far as shared memory holds them."""
    return Tiles(
        (ROWS, tile.columns, DEPTH),
        tile.stages,
        pipe="tf32_wgmma",
        warp_tile=(ROWS // WARPGROUPS, tile.columns),
        readers=WARPGROUPS,
        early=True,
        exchange="cluster",
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
        shapes=product_shapes(tile.entry, _asks(tile), partial(_launches, tile)),
    )


KERNELS = tuple(map(_kernel, TILES))
