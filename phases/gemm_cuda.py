"""The cuda backend's GEMMs: one record an entry, all given the same arguments (kernels/include/args.cuh).

Tiles that no rung names (wide, narrow, short) are the menu: routing measures them at other sizes and devices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import ceil

from gputop.model import activations
from gputop.phases.gemm_cuda_shapes import STORE, Asks, RowByColumns, Tiles, shapes
from gputop.phases.shape_limits import not_multiple_of, too_short
from gputop.plan.launch_shape import LaunchShape
from gputop.plan.types import (
    WORD_BYTES,
    Argument,
    Dims,
    Kernel,
    Launch,
    Layout,
    Math,
    Plan,
    Scratch,
    Task,
    View,
    WeightView,
)

COVERS = ("qkv", "wo", "w1", "w2", "head")
STORE_SOURCE = "pointwise/01_store.cu"
STORE_THREADS = 256
REDUCE_THREADS = 256


@dataclass(frozen=True, slots=True)
class Variant:
    """One GEMM entry at its tile; the kernel is named as it is."""

    entry: str
    source: str
    idea: str
    tile: tuple[int, int, int]
    """Output rows and columns a block, and the inner step."""
    block: tuple[int, int, int]
    asks: Asks
    layout: Layout = "transposed"
    maths: tuple[Math, ...] = ("fp32",)
    """Plans it may serve; fp32 arithmetic is allowed to serve a TF32 plan."""
    splits: tuple[int, ...] = ()
    """As of `Kernel`, like `blocks_per_sm`."""
    blocks_per_sm: int = 1
    reduce: str = ""
    """Entry that adds several parts, if the kernel does not itself."""
    most_tiles: int | None = None
    """Output tiles that a split kernel has arrival counters for (its MAX_TILES)."""
    exact: bool = False
    """Takes exact multiples of the tile only."""
    any_columns: bool = False
    """But for the columns, whose edge it checks itself."""
    smem_bytes: int = 0
    pdl: bool = False
    """Its kernel keeps to the rule of kernels/include/dependent_launch.cuh."""


def arguments(task: Task, fused: bool, splits: int) -> tuple[Argument, ...]:
    """`GemmArgs` in order; bias, activation and residual only where the kernel's own store writes them."""
    a, w, bias, residual = (task.operand(role) for role in ("a", "w", "bias", "residual"))
    assert isinstance(a, View)
    assert isinstance(w, WeightView)
    kept = residual if fused else None
    size = splits * task.output.rows * task.output.columns * WORD_BYTES
    return (
        a,
        w,
        bias if fused else None,
        kept,
        task.output,
        Scratch("partial", size) if splits > 1 else None,
        task.output.rows,
        task.output.columns,
        task.site.inner,
        a.ld,
        w.ld,
        kept.ld if kept else 0,
        task.output.ld,
        int(task.activation is not None and fused),
        splits,
    )


def cluster_arguments(task: Task, fused: bool, splits: int) -> tuple[Argument, ...]:
    """`GemmArgs` of a kernel whose parts are added inside a cluster: they need no memory of their own."""
    return (*arguments(task, fused, 1)[:-1], splits)


def store_launch(task: Task) -> tuple[Launch, ...]:
    """Bias, activation and residual as a launch of their own; none where the task has none of them."""
    bias, residual = task.operand("bias"), task.operand("residual")
    if bias is None and residual is None and task.activation is None:
        return ()
    out = task.output
    ldr = residual.ld if residual else 0
    args = (bias, residual, out, out.rows, out.columns, ldr, out.ld, int(task.activation is not None))
    grid = (ceil(out.columns / STORE_THREADS), out.rows, 1)
    return (Launch(STORE, grid, (STORE_THREADS, 1, 1), args, source=STORE_SOURCE, pdl=True),)


def parts(task: Task, plan: Plan, dims: Dims) -> tuple[Task, ...]:
    """The products of one task: one, or one each for q, k and v where they are not fused."""
    if task.site.phase != "qkv" or plan.fused_qkv:
        return (task,)
    return activations.split(task, dims.d_model, plan.layout)


def _launches(variant: Variant, task: Task, plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    fused = plan.fused_stores
    launches: list[Launch] = []
    for part in parts(task, plan, dims):
        rows, columns = part.output.rows, part.output.columns
        grid = (ceil(columns / variant.tile[1]), ceil(rows / variant.tile[0]), task.splits)
        args = arguments(part, fused, task.splits)
        launches.append(
            Launch(variant.entry, grid, variant.block, args, smem_bytes=variant.smem_bytes, pdl=variant.pdl)
        )
        if variant.reduce and task.splits > 1:
            reduce_grid = (ceil(columns / REDUCE_THREADS), rows, 1)
            launches.append(Launch(variant.reduce, reduce_grid, (REDUCE_THREADS, 1, 1), args))
    return (*launches, *(() if fused else store_launch(task)))


def _limits(variant: Variant, task: Task, plan: Plan, dims: Dims) -> str | None:
    if not variant.exact:
        return None
    part = parts(task, plan, dims)[0]
    rows, columns, depth = variant.tile
    sizes = (
        ("rows", part.output.rows, rows),
        ("columns", part.output.columns, 1 if variant.any_columns else columns),
        ("inner", task.site.inner, depth),
    )
    why = not_multiple_of(task.site, sizes) or too_short(task.site, task.splits, depth)
    if why:
        return why
    tiles = ceil(part.output.rows / variant.tile[0]) * ceil(part.output.columns / variant.tile[1])
    if task.splits > 1 and variant.most_tiles is not None and tiles > variant.most_tiles:
        return f"it has arrival counters for {variant.most_tiles} tiles, and {task.site.name} has {tiles}"
    return None


def cluster_launches(
    product: Callable[[Task, tuple[Argument, ...]], Launch], task: Task, plan: Plan, dims: Dims
) -> tuple[Launch, ...]:
    """A `product` for each product of the task, its parts added inside a cluster; then the store."""
    fused = plan.fused_stores
    products = [
        product(part, cluster_arguments(part, fused, task.splits)) for part in parts(task, plan, dims)
    ]
    return (*products, *(() if fused else store_launch(task)))


def product_shapes(
    entry: str, asks: Asks, launches: Callable[[Task, Plan, Dims], tuple[Launch, ...]]
) -> Callable[[tuple[Task, ...], Plan, Dims], tuple[LaunchShape, ...]]:
    """Return the `shapes` of a record whose product is `entry`, which `asks`."""
    return lambda tasks, plan, dims: shapes(
        launches(tasks[0], plan, dims),
        parts(tasks[0], plan, dims)[0],
        entry,
        asks,
        fused=plan.fused_stores,
    )


def kernel(variant: Variant) -> Kernel:
    """The variant's record."""
    entries = (variant.entry, variant.reduce) if variant.reduce else (variant.entry,)
    return Kernel(
        name=variant.entry,
        backend="cuda",
        idea=variant.idea,
        covers=COVERS,
        entries=entries,
        source=variant.source,
        maths=variant.maths,
        layouts=(variant.layout,),
        splits=variant.splits,
        blocks_per_sm=variant.blocks_per_sm,
        fused_stores=True,
        limits=lambda task, plan, dims: _limits(variant, task, plan, dims),
        launches=lambda tasks, plan, dims: _launches(variant, tasks[0], plan, dims),
        shapes=product_shapes(variant.entry, variant.asks, partial(_launches, variant)),
    )


SPLIT_K = Variant(
    entry="gemm_split_k",
    source="gemm/06_split_k.cu",
    idea="Register tiles with the inner axis divided among several blocks, parts added in order.",
    tile=(32, 64, 16),
    block=(128, 1, 1),
    asks=Tiles((32, 64, 16), stages=1, warp_tile=(8, 64)),
    splits=(2, 4, 8),
    blocks_per_sm=3,
    reduce="gemm_split_k_reduce",
)


def _sass(
    shape: str,
    tile: tuple[int, int, int],
    micro_columns: int,
    warp_tile: tuple[int, int],
    splits: tuple[int, ...],
    blocks_per_sm: int,
) -> Variant:
    rows, columns, depth = tile
    warps = rows * columns // (8 * micro_columns) // 32
    stage_bytes = WORD_BYTES * (rows * (depth + 4) + depth * columns)
    return Variant(
        entry=f"gemm_sass_fp32_{shape}",
        source="gemm/08_sass_fp32.cu",
        idea=f"No predicates, staging by cp.async in two buffers, 8x{micro_columns} sums a thread.",
        tile=tile,
        block=(32 * warps, 1, 1),
        asks=Tiles(tile, stages=2, warp_tile=warp_tile),
        splits=splits,
        blocks_per_sm=blocks_per_sm,
        reduce="gemm_sass_fp32_reduce",
        exact=True,
        smem_bytes=2 * stage_bytes,
    )


WARP_TILE_BYTES = WORD_BYTES * 32 * 36
"""A warp's tile on its way out through shared memory (kernels/include/wmma_tile.cuh)."""


def _wmma_smem_bytes(rows: int, depth: int, stages: int) -> int:
    """The stages of a and w with their paddings, or what the way out needs if that is more."""
    stage_bytes = WORD_BYTES * (rows * (depth + 4) + depth * 72)
    return max(stages * stage_bytes, rows // 16 * WARP_TILE_BYTES)


def _wmma(height: str, rows: int, splits: tuple[int, ...]) -> Variant:
    return Variant(
        entry=f"gemm_wmma_{height}",
        source="gemm/09_wmma.cu",
        idea="WMMA fragments in TF32 over staging by cp.async in two buffers.",
        tile=(rows, 64, 16),
        block=(2 * rows, 1, 1),
        asks=Tiles((rows, 64, 16), stages=2, pipe="tf32_wmma", warp_tile=(32, 32)),
        maths=("tf32",),
        splits=splits,
        reduce="gemm_wmma_reduce",
        exact=True,
        smem_bytes=_wmma_smem_bytes(rows, 16, 2),
    )


def _assault(height: str, rows: int, splits: tuple[int, ...]) -> Variant:
    return Variant(
        entry=f"gemm_w2_assault_{height}",
        source="gemm/12_w2_assault.cu",
        idea="WMMA with advancing pointers, stages twice as deep and three of them.",
        tile=(rows, 64, 32),
        block=(2 * rows, 1, 1),
        asks=Tiles((rows, 64, 32), stages=3, pipe="tf32_wmma", warp_tile=(32, 32)),
        maths=("tf32",),
        splits=splits,
        reduce="gemm_w2_assault_reduce",
        exact=True,
        smem_bytes=_wmma_smem_bytes(rows, 32, 3),
    )


VARIANTS: tuple[Variant, ...] = (
    Variant(
        entry="gemm_naive",
        source="gemm/01_naive.cu",
        idea="One thread an output element, each walking its own row of the weight.",
        tile=(8, 32, 1),
        block=(32, 8, 1),
        # A load of w touches a line a lane, one of a is the same for all lanes.
        asks=Tiles((8, 32, 1), stages=0, row_a_warp=True, lines_per_load=(32 + 1) / 2),
        layout="row",
    ),
    Variant(
        entry="gemm_coalesced",
        source="gemm/02_coalesced.cu",
        idea="The naive kernel on transposed weights: a warp reads consecutive words.",
        tile=(8, 32, 1),
        block=(32, 8, 1),
        asks=Tiles((8, 32, 1), stages=0, row_a_warp=True),
    ),
    Variant(
        entry="gemm_tiled",
        source="gemm/03_tiled.cu",
        idea="16x16 tiles staged in shared memory: each fetched word serves 16 multiply-adds.",
        tile=(16, 16, 16),
        block=(16, 16, 1),
        # Shared memory moves 128 bytes at a time, however few a warp asks for: once for 16 of w, and once
        # for two of a every second inner index.
        asks=Tiles((16, 16, 16), stages=1, warp_tile=(16, 32)),
    ),
    Variant(
        entry="gemm_register_tiled",
        source="gemm/04_register_tiled.cu",
        idea="A 4x4 block of sums in each thread's registers: 8 shared loads feed 16 multiply-adds.",
        tile=(32, 64, 16),
        block=(128, 1, 1),
        asks=Tiles((32, 64, 16), stages=1, warp_tile=(8, 64)),
    ),
    Variant(
        entry="gemm_small_tiles",
        source="gemm/05_small_tiles.cu",
        idea="Smaller tiles: more blocks with fewer warps in each, to test whether blocks were short.",
        tile=(32, 32, 16),
        block=(64, 1, 1),
        asks=Tiles((32, 32, 16), stages=1, warp_tile=(16, 32)),
    ),
    SPLIT_K,
    _sass("wide", (128, 128, 16), 8, (64, 32), (1, 2, 4, 5, 7, 11, 22), blocks_per_sm=1),
    _sass("narrow", (128, 64, 16), 8, (64, 32), (1, 2, 3, 4, 6, 11), blocks_per_sm=3),
    _sass("square", (64, 64, 32), 4, (32, 32), (1, 2, 3, 4, 5, 8, 11, 16), blocks_per_sm=3),
    _wmma("tall", 128, (1, 2, 3, 4, 6, 11)),
    _wmma("short", 64, (1, 2, 3, 5, 8, 11)),
    _assault("tall", 128, (1, 2, 3, 4, 6, 11)),
    _assault("short", 64, (1, 2, 3, 5, 8, 11)),
    Variant(
        entry="gemm_one_row",
        source="gemm/09_one_row.cu",
        idea="A block of 32 warps divides the inner axis of 32 columns: for one row, all loads in flight.",
        tile=(1, 32, 1),
        block=(1024, 1, 1),
        asks=RowByColumns(),
        maths=("fp32", "tf32"),
    ),
)


KERNELS: tuple[Kernel, ...] = tuple(kernel(variant) for variant in VARIANTS)
