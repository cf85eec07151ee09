"""TF32 products of many rows in tiles of 128 x 192 by blocks that stay (kernels/gemm/37_tma_wide.cu)."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from gputop.phases.gemm_cuda import COVERS, parts, store_launch
from gputop.phases.gemm_cuda_shapes import Tiles, shapes
from gputop.phases.shape_limits import not_multiple_of
from gputop.plan.launch_shape import LaunchShape
from gputop.plan.types import Argument, Dims, Kernel, Launch, Plan, Task, TensorMap, View, WeightView

ROWS, COLUMNS, CHUNK = 128, 192, 32
CONSUMERS = 2
THREADS = 128 * (CONSUMERS + 1)
CLUSTER = 2
"""Blocks whose tiles lie one below the other: each copies half of the weights for both."""
STAGES = 5
SMEM_BYTES = STAGES * ((ROWS + COLUMNS) * CHUNK * 4 + 2 * 8)
"""Of the ring and its barriers."""
MOST_CLUSTERS = 66
"""One block on each SM of an H100 or H200; more tiles than these go round."""
SOURCE = "gemm/37_tma_wide.cu"


def _arguments(task: Task, plan: Plan) -> tuple[Argument, ...]:
    """`TmaGemmArgs` in order; nothing is prefetched and no row is normalised."""
    a, w, bias, residual = (task.operand(role) for role in ("a", "w", "bias", "residual"))
    assert isinstance(a, View)
    assert isinstance(w, WeightView)
    site, fused = task.site, plan.fused_stores
    kept = residual if fused else None
    chunks = site.inner // CHUNK
    return (
        TensorMap(a, (CHUNK, task.output.rows, chunks), (a.ld, CHUNK), (CHUNK, ROWS, 1)),
        TensorMap(w, (CHUNK, task.output.columns, chunks), (w.ld, CHUNK), (CHUNK, COLUMNS // CLUSTER, 1)),
        bias if fused else None,
        kept,
        task.output,
        None,
        task.output.rows,
        task.output.columns,
        site.inner,
        kept.ld if kept else 0,
        task.output.ld,
        int(task.activation is not None and fused),
        0,
        0.0,
    )


def _tile_pairs(task: Task) -> int:
    """Tiles of a cluster that the whole output has."""
    return ceil(task.output.rows / (CLUSTER * ROWS)) * ceil(task.output.columns / COLUMNS)


def _launches(entry: str, task: Task, plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    launches = []
    for part in parts(task, plan, dims):
        clusters = min(_tile_pairs(part), MOST_CLUSTERS)
        launches.append(
            Launch(
                entry,
                (CLUSTER * clusters, 1, 1),
                (THREADS, 1, 1),
                _arguments(part, plan),
                smem_bytes=SMEM_BYTES,
                cluster=CLUSTER,
                pdl=True,
            )
        )
    return (*launches, *(() if plan.fused_stores else store_launch(task)))


def _limits(task: Task, plan: Plan, dims: Dims) -> str | None:
    output = parts(task, plan, dims)[0].output
    return not_multiple_of(task.site, (("inner", task.site.inner, CHUNK), ("columns", output.columns, 4)))


def _asks(pingpong: bool) -> Tiles:
    """A warpgroup multiplies 64 rows at a time: two halves of its own tile, or one of the tile of both."""
    return Tiles(
        (ROWS, COLUMNS, CHUNK),
        STAGES,
        pipe="tf32_wgmma",
        warp_tile=(64, COLUMNS),
        readers=2,
        working_warps=4 if pingpong else 4 * CONSUMERS,
        w_shared_by=CLUSTER,
        early=True,
    )


def _shapes(entry: str, asks: Tiles, task: Task, plan: Plan, dims: Dims) -> tuple[LaunchShape, ...]:
    """As of one tile, as often as the busiest cluster takes one."""
    part = parts(task, plan, dims)[0]
    launches = _launches(entry, task, plan, dims)
    found = shapes(launches, part, entry, asks, fused=plan.fused_stores)
    pairs = _tile_pairs(part)
    turns = ceil(pairs / min(pairs, MOST_CLUSTERS))
    return tuple(
        replace(
            shape,
            steps=shape.steps * turns,
            read_bytes=shape.read_bytes * turns,
            shared_bytes=shape.shared_bytes * turns,
        )
        if launch.entry == entry
        else shape
        for launch, shape in zip(launches, found, strict=True)
    )


def _kernel(name: str, idea: str, pingpong: bool) -> Kernel:
    asks = _asks(pingpong)
    return Kernel(
        name=name,
        backend="cuda",
        idea=idea,
        covers=COVERS,
        entries=(name,),
        source=SOURCE,
        maths=("tf32",),
        layouts=("row",),
        fused_stores=True,
        only_arch="sm_90",
        limits=_limits,
        launches=lambda tasks, plan, dims: _launches(name, tasks[0], plan, dims),
        shapes=lambda tasks, plan, dims: _shapes(name, asks, tasks[0], plan, dims),
    )


KERNELS = (
    _kernel(
        "gemm_tma_wide_pingpong",
        "128x192 tiles by bulk copies, pairs of blocks share weights; one warpgroup multiplies while the "
        "other stores.",
        pingpong=True,
    ),
    _kernel(
        "gemm_tma_wide_together",
        "128x192 tiles by bulk copies, pairs of blocks share weights; both warpgroups multiply one tile.",
        pingpong=False,
    ),
)
