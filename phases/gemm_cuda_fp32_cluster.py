"""fp32 GEMMs of Hopper, parts added inside a cluster (kernels/gemm/11_fp32_cluster.cu).

The widths that no rung names are the menu: routing measures them at other sizes and devices.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from gputop.phases.gemm_cuda import COVERS, cluster_launches, parts, product_shapes
from gputop.phases.gemm_cuda_shapes import Tiles
from gputop.phases.shape_limits import not_multiple_of, too_short
from gputop.plan.types import WORD_BYTES, Argument, Dims, Kernel, Launch, Plan, Task

ROWS, DEPTH = 64, 32
THREADS = 128
STAGES = 4


@dataclass(frozen=True, slots=True)
class ClusterTile:
    """One entry of the source: 64 rows, 8 of them a thread's, and eight times a thread's columns."""

    micro_columns: int
    splits: tuple[int, ...]
    """Blocks of a cluster that it is offered with."""

    @property
    def entry(self) -> str:
        return f"gemm_fp32_cluster_8x{self.micro_columns}"

    @property
    def columns(self) -> int:
        return 8 * self.micro_columns


TILES = (
    ClusterTile(8, (2, 4, 5)),
    ClusterTile(6, (2, 3, 4, 6, 8)),
    ClusterTile(4, (2, 4, 8)),
)


def _launches(tile: ClusterTile, task: Task, plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    smem_bytes = STAGES * (ROWS + tile.columns) * DEPTH * WORD_BYTES

    def product(part: Task, args: tuple[Argument, ...]) -> Launch:
        grid = (part.output.columns // tile.columns * task.splits, part.output.rows // ROWS, 1)
        block = (THREADS, 1, 1)
        return Launch(tile.entry, grid, block, args, smem_bytes=smem_bytes, cluster=task.splits, pdl=True)

    return cluster_launches(product, task, plan, dims)


def _limits(tile: ClusterTile, task: Task, plan: Plan, dims: Dims) -> str | None:
    site, output = task.site, parts(task, plan, dims)[0].output
    sizes = (
        ("rows", output.rows, ROWS),
        ("columns", output.columns, tile.columns),
        ("inner", site.inner, DEPTH),
    )
    return not_multiple_of(site, sizes) or too_short(site, task.splits, DEPTH)


def _asks(tile: ClusterTile) -> Tiles:
    """Two groups of two warps take every second chunk of the inner axis."""
    return Tiles(
        (ROWS, tile.columns, DEPTH),
        STAGES,
        warp_tile=(ROWS // 2, tile.columns),
        readers=2,
        prefetches=True,
        exchange="cluster",
    )


def _kernel(tile: ClusterTile) -> Kernel:
    return Kernel(
        name=tile.entry,
        backend="cuda",
        idea="fp32 along the inner axis, operands read two quadrants ahead; parts added inside a cluster.",
        covers=COVERS,
        entries=(tile.entry,),
        source="gemm/11_fp32_cluster.cu",
        maths=("fp32",),
        layouts=("row",),
        fused_stores=True,
        min_arch=90,
        splits=tile.splits,
        blocks_per_sm=3,
        limits=lambda task, plan, dims: _limits(tile, task, plan, dims),
        launches=lambda tasks, plan, dims: _launches(tile, tasks[0], plan, dims),
        shapes=product_shapes(tile.entry, _asks(tile), partial(_launches, tile)),
    )


KERNELS = tuple(map(_kernel, TILES))
