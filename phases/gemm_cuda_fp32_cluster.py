"""fp32 GEMMs of Hopper, parts added inside a cluster (kernels/gemm/11_fp32_cluster.cu).

The widths that no rung names are the menu: routing measures them at other sizes and devices.
"""

from __future__ import annotations

from dataclasses import dataclass

from gputop.phases.gemm_cuda import COVERS, cluster_arguments, parts, store_launch
from gputop.phases.gemm_cuda_traffic import WAVEFRONTS_PER_LOAD, Blocking, GemmLoop, copy_wavefronts, traffic
from gputop.phases.sass_loops import LOOP_BODIES
from gputop.phases.shape_limits import not_multiple_of, too_short
from gputop.plan.traffic import Traffic
from gputop.plan.types import WORD_BYTES, Dims, Kernel, Launch, Plan, Task

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
    fused, splits = plan.fused_stores, task.splits
    launches = []
    for part in parts(task, plan, dims):
        grid = (part.output.columns // tile.columns * splits, part.output.rows // ROWS, 1)
        args = cluster_arguments(part, fused, splits)
        smem_bytes = STAGES * (ROWS + tile.columns) * DEPTH * WORD_BYTES
        launches.append(
            Launch(tile.entry, grid, (THREADS, 1, 1), args, smem_bytes=smem_bytes, cluster=splits, pdl=True)
        )
    return (*launches, *(() if fused else store_launch(task)))


def _limits(tile: ClusterTile, task: Task, plan: Plan, dims: Dims) -> str | None:
    site, output = task.site, parts(task, plan, dims)[0].output
    sizes = (
        ("rows", output.rows, ROWS),
        ("columns", output.columns, tile.columns),
        ("inner", site.inner, DEPTH),
    )
    return not_multiple_of(site, sizes) or too_short(site, task.splits, DEPTH)


def _traffic(tile: ClusterTile, task: Task, plan: Plan, dims: Dims) -> Traffic:
    """A turn is a pair of each group's four chunks of a stage: 16 inner indices for the two groups."""
    warps = THREADS // 32
    reads = 2 * (8 + tile.micro_columns) * WAVEFRONTS_PER_LOAD
    loop = GemmLoop(
        LOOP_BODIES[tile.entry],
        16,
        wavefronts=reads + copy_wavefronts(ROWS, tile.columns, 16, warps),
        ahead=2 * (STAGES - 1),
        prefetched=True,
        around=850,
    )
    blocking = Blocking((ROWS, tile.columns, DEPTH), warps, task.splits, in_cluster=True, stores=1)
    return traffic(loop, blocking, "fp32", task, len(parts(task, plan, dims)), plan.fused_stores)


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
        traffic=lambda tasks, plan, dims: _traffic(tile, tasks[0], plan, dims),
    )


KERNELS = tuple(map(_kernel, TILES))
