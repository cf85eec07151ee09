"""The cuda backend's GEMMs: one record an entry, all given the same arguments (kernels/include/args.cuh).

Tiles that no rung names (wide, narrow, short) are the menu: routing measures them at other sizes and devices.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from gputop.model import activations
from gputop.phases.gemm_cuda_traffic import Blocking, GemmLoop, copy_wavefronts, stores_apart, traffic
from gputop.phases.sass_loops import LOOP_BODIES, UNCOALESCED_CYCLES
from gputop.phases.shape_limits import not_multiple_of, too_short
from gputop.plan.traffic import Traffic
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
    loop: GemmLoop
    layout: Layout = "transposed"
    maths: tuple[Math, ...] = ("fp32",)
    """Plans it may serve; fp32 arithmetic is allowed to serve a TF32 plan."""
    pipe: str = "fp32"
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
    part_waits: float | None = None
    """As in `Blocking`, like the two below."""
    stores: int | None = None
    beyond: int = 0


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
    if not stores_apart(task):
        return ()
    bias, residual = task.operand("bias"), task.operand("residual")
    out = task.output
    ldr = residual.ld if residual else 0
    args = (bias, residual, out, out.rows, out.columns, ldr, out.ld, int(task.activation is not None))
    grid = (ceil(out.columns / STORE_THREADS), out.rows, 1)
    return (Launch("pointwise_store", grid, (STORE_THREADS, 1, 1), args, source=STORE_SOURCE, pdl=True),)


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


def _traffic(variant: Variant, task: Task, plan: Plan, dims: Dims) -> Traffic:
    x, y, z = variant.block
    blocking = Blocking(
        variant.tile,
        x * y * z // 32,
        task.splits,
        reduces=bool(variant.reduce) and task.splits > 1,
        part_waits=variant.part_waits,
        stores=variant.stores,
        beyond=variant.beyond,
    )
    products = len(parts(task, plan, dims))
    return traffic(variant.loop, blocking, variant.pipe, task, products, plan.fused_stores)


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
        traffic=lambda tasks, plan, dims: _traffic(variant, tasks[0], plan, dims),
    )


REGISTER_WAVEFRONTS = 132
"""In a turn of 16 inner indices: w in 16 loads of 4 steps each, a from its transposed tile in 28 of 1 or 2,
then 12 words brought in, of which those of a meet their banks twice."""


SPLIT_K = Variant(
    entry="gemm_split_k",
    source="gemm/06_split_k.cu",
    idea="Register tiles with the inner axis divided among several blocks, parts added in order.",
    tile=(32, 64, 16),
    block=(128, 1, 1),
    loop=GemmLoop(
        LOOP_BODIES["gemm_split_k"],
        16,
        wavefronts=REGISTER_WAVEFRONTS,
        l2_waits=1,
        dram_waits=2,
        around=867,
    ),
    splits=(2, 4, 8),
    blocks_per_sm=3,
    reduce="gemm_split_k_reduce",
)


def _sass(
    shape: str,
    tile: tuple[int, int, int],
    micro_columns: int,
    splits: tuple[int, ...],
    blocks_per_sm: int,
) -> Variant:
    rows, columns, depth = tile
    warps = rows * columns // (8 * micro_columns) // 32
    # A 16-byte load takes 2 steps where neighbours share an address, as for a; else 4, as for w.
    reads = 2 * 8 * depth / 4 + 4 * micro_columns / 4 * depth
    stage_bytes = WORD_BYTES * (rows * (depth + 4) + depth * columns)
    return Variant(
        entry=f"gemm_sass_fp32_{shape}",
        source="gemm/08_sass_fp32.cu",
        idea=f"No predicates, staging by cp.async in two buffers, 8x{micro_columns} sums a thread.",
        tile=tile,
        block=(32 * warps, 1, 1),
        loop=GemmLoop(
            LOOP_BODIES[f"gemm_sass_fp32_{shape}"],
            depth,
            reads + copy_wavefronts(rows, columns, depth, warps),
            ahead=1,
            around=700,
        ),
        splits=splits,
        blocks_per_sm=blocks_per_sm,
        reduce="gemm_sass_fp32_reduce",
        exact=True,
        smem_bytes=2 * stage_bytes,
    )


WMMA_AROUND = 600 + 274 + 32 * 40
"""Cycles before the loop, then of a warp's tile through shared memory, 32 rows in turn."""
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
        loop=GemmLoop(
            LOOP_BODIES[f"gemm_wmma_{height}"],
            16,
            32 + copy_wavefronts(rows, 64, 16, rows // 16),
            ahead=1,
            around=WMMA_AROUND,
        ),
        maths=("tf32",),
        pipe="tf32_mma",
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
        loop=GemmLoop(
            LOOP_BODIES[f"gemm_w2_assault_{height}"],
            32,
            64 + copy_wavefronts(rows, 64, 32, rows // 16),
            ahead=2,
            around=WMMA_AROUND,
        ),
        maths=("tf32",),
        pipe="tf32_mma",
        splits=splits,
        reduce="gemm_w2_assault_reduce",
        exact=True,
        smem_bytes=_wmma_smem_bytes(rows, 32, 3),
    )


ONE_ROW_BEYOND = 8
"""Columns in the sector that lanes of kernels/include/one_row.cuh load beyond the last."""

VARIANTS: tuple[Variant, ...] = (
    Variant(
        entry="gemm_naive",
        source="gemm/01_naive.cu",
        idea="One thread an output element, each walking its own row of the weight.",
        tile=(8, 32, 1),
        block=(32, 8, 1),
        # Every load of w touches 32 lines. Their sectors of 8 words come two at a time from DRAM.
        loop=GemmLoop(
            LOOP_BODIES["gemm_naive"],
            16,
            wavefronts=16 * (1 + UNCOALESCED_CYCLES),
            l2_waits=1,
            dram_waits=1,
            around=198,
            replays=16 * UNCOALESCED_CYCLES,
            row_a_warp=True,
        ),
        layout="row",
    ),
    Variant(
        entry="gemm_coalesced",
        source="gemm/02_coalesced.cu",
        idea="The naive kernel on transposed weights: a warp reads consecutive words.",
        tile=(8, 32, 1),
        block=(32, 8, 1),
        loop=GemmLoop(
            LOOP_BODIES["gemm_coalesced"], 16, wavefronts=16 * 2, dram_waits=3, around=196, row_a_warp=True
        ),
    ),
    Variant(
        entry="gemm_tiled",
        source="gemm/03_tiled.cu",
        idea="16x16 tiles staged in shared memory: each fetched word serves 16 multiply-adds.",
        tile=(16, 16, 16),
        block=(16, 16, 1),
        # A row of w an inner index, four of a at a time, and two words brought in.
        loop=GemmLoop(LOOP_BODIES["gemm_tiled"], 16, wavefronts=16 + 4 * 2 + 4, dram_waits=1, around=347),
    ),
    Variant(
        entry="gemm_register_tiled",
        source="gemm/04_register_tiled.cu",
        idea="A 4x4 block of sums in each thread's registers: 8 shared loads feed 16 multiply-adds.",
        tile=(32, 64, 16),
        block=(128, 1, 1),
        loop=GemmLoop(
            LOOP_BODIES["gemm_register_tiled"],
            16,
            wavefronts=REGISTER_WAVEFRONTS,
            l2_waits=1,
            dram_waits=2,
            around=867,
        ),
    ),
    Variant(
        entry="gemm_small_tiles",
        source="gemm/05_small_tiles.cu",
        idea="Smaller tiles: more blocks with fewer warps in each, to test whether blocks were short.",
        tile=(32, 32, 16),
        block=(64, 1, 1),
        # With half the warps each brings in four words more.
        loop=GemmLoop(
            LOOP_BODIES["gemm_small_tiles"], 16, wavefronts=REGISTER_WAVEFRONTS + 12, l2_waits=2, dram_waits=2
        ),
    ),
    SPLIT_K,
    _sass("wide", (128, 128, 16), 8, (1, 2, 4, 5, 7, 11, 22), blocks_per_sm=1),
    _sass("narrow", (128, 64, 16), 8, (1, 2, 3, 4, 6, 11), blocks_per_sm=3),
    _sass("square", (64, 64, 32), 4, (1, 2, 3, 4, 5, 8, 11, 16), blocks_per_sm=3),
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
        loop=GemmLoop(LOOP_BODIES["gemm_one_row"], 8 * 32, wavefronts=16, dram_waits=2, around=717),
        maths=("fp32", "tf32"),
        beyond=ONE_ROW_BEYOND,
    ),
)


KERNELS: tuple[Kernel, ...] = tuple(kernel(variant) for variant in VARIANTS)
