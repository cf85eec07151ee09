"""The cuda backend's GEMMs: one record a variant, all given the same arguments (kernels/include/args.cuh)."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from gputop import buffers
from gputop.spec import (
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
    Traffic,
    View,
    WeightView,
)

COVERS = ("qkv", "wo", "w1", "w2", "head")
STORE_SOURCE = "pointwise/01_store.cu"
STORE_THREADS = 256
REDUCE_THREADS = 256
L2_LATENCY_CYCLES = 270
"""From a load's issue to its use when L2 has the line: Hopper's, as microbenchmarks publish it."""
FMA_LATENCY_CYCLES = 4


@dataclass(frozen=True, slots=True)
class Variant:
    """One GEMM kernel at fixed tile and split."""

    name: str
    source: str
    entry: str
    idea: str
    tile: tuple[int, int, int]
    """Output rows and columns a block, and the inner step."""
    block: tuple[int, int, int]
    layout: Layout = "transposed"
    maths: tuple[Math, ...] = ("fp32",)
    """Plans it may serve; fp32 arithmetic is allowed to serve a TF32 plan."""
    pipe: str = "fp32"
    splits: int = 1
    reduce: str = ""
    """Entry that adds the parts, where the kernel does not itself."""
    most_tiles: int | None = None
    """Output tiles that a split kernel has tickets for (its MOST_TILES)."""
    exact: bool = False
    """Takes exact multiples of the tile only."""
    any_columns: bool = False
    """But for the columns, whose edge it checks itself."""
    smem_bytes: int = 0
    loads_per_step: float = 1.0
    """L1 or shared-memory wavefronts for 32 outputs and one inner index."""
    instructions_per_step: float | None = None
    """Warp instructions for the same, by the loop's SASS."""
    unrolled: int | None = None
    """Inner indices whose loads are issued together, then waited for: the loop's chain is one L2 latency and
    that many dependent multiply-adds for each."""
    pdl: bool = False
    """Its kernel keeps to the rule of kernels/include/dependent.cuh."""


def arguments(task: Task, fused: bool, splits: int) -> tuple[Argument, ...]:
    """`GemmArgs` in order; bias, ReLU and residual only where the kernel's own store writes them."""
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
        int(task.relu and fused),
        splits,
    )


def store_launch(task: Task) -> tuple[Launch, ...]:
    """Bias, ReLU and residual as a launch of their own; none where the task has none of them."""
    bias, residual = task.operand("bias"), task.operand("residual")
    if bias is None and residual is None and not task.relu:
        return ()
    out = task.output
    ldr = residual.ld if residual else 0
    args = (bias, residual, out, out.rows, out.columns, ldr, out.ld, int(task.relu))
    grid = (ceil(out.columns / STORE_THREADS), out.rows, 1)
    return (Launch("pointwise_store", grid, (STORE_THREADS, 1, 1), args, source=STORE_SOURCE, pdl=True),)


def parts(task: Task, plan: Plan, dims: Dims) -> tuple[Task, ...]:
    """The products of one task: one, or one each for q, k and v where they are not fused."""
    if task.site.phase != "qkv" or plan.fused_qkv:
        return (task,)
    return buffers.split(task, dims.d_model, plan.layout)


def _launches(variant: Variant, task: Task, plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    fused = plan.fused_stores
    launches: list[Launch] = []
    for part in parts(task, plan, dims):
        rows, columns = part.output.rows, part.output.columns
        grid = (ceil(columns / variant.tile[1]), ceil(rows / variant.tile[0]), variant.splits)
        args = arguments(part, fused, variant.splits)
        launches.append(
            Launch(variant.entry, grid, variant.block, args, smem_bytes=variant.smem_bytes, pdl=variant.pdl)
        )
        if variant.reduce:
            reduce_grid = (ceil(columns / REDUCE_THREADS), rows, 1)
            launches.append(Launch(variant.reduce, reduce_grid, (REDUCE_THREADS, 1, 1), args))
    return (*launches, *(() if fused else store_launch(task)))


def _limits(variant: Variant, task: Task, plan: Plan, dims: Dims) -> str | None:
    if not variant.exact:
        return None
    part = parts(task, plan, dims)[0]
    sizes = ("rows", part.output.rows), ("columns", part.output.columns), ("inner", task.site.inner)
    for (what, size), multiple in zip(sizes, variant.tile, strict=True):
        if size % multiple and not (what == "columns" and variant.any_columns):
            return f"{variant.name} needs {what} a multiple of {multiple}, and {task.site.name} has {size}"
    if (inner := task.site.inner) < variant.splits * variant.tile[2]:
        return f"{variant.name} divides the inner axis by {variant.splits}, and {task.site.name} has {inner}"
    tiles = ceil(part.output.rows / variant.tile[0]) * ceil(part.output.columns / variant.tile[1])
    if variant.splits > 1 and variant.most_tiles is not None and tiles > variant.most_tiles:
        return f"{variant.name} has tickets for {variant.most_tiles} tiles, and {task.site.name} has {tiles}"
    return None


def _traffic(variant: Variant, task: Task, plan: Plan, dims: Dims) -> Traffic:
    """Counts of the variant's own loops; L2 bytes assume L1 serves a block's repeated words."""
    site = task.site
    rows, columns, _ = variant.tile
    block_rows, block_columns = ceil(site.rows / rows), ceil(site.columns / columns)
    padded = block_rows * rows * block_columns * columns
    parts_kept = variant.splits if variant.splits > 1 else 0
    partial_bytes = 2.0 * WORD_BYTES * parts_kept * site.rows * site.columns
    panel_bytes = WORD_BYTES * site.inner * block_rows * block_columns * (rows + columns)
    warp_steps = padded / 32 * site.inner
    return Traffic(
        flops=2.0 * padded * site.inner,
        l2_bytes=panel_bytes + partial_bytes + WORD_BYTES * site.rows * site.columns,
        l1_wavefronts=warp_steps * variant.loads_per_step if variant.pipe == "fp32" else None,
        warp_instructions=(
            None if variant.instructions_per_step is None else warp_steps * variant.instructions_per_step
        ),
        chain_cycles=_chain_cycles(variant, task, plan, dims),
        pipe=variant.pipe,
        tile=variant.tile,
    )


def _chain_cycles(variant: Variant, task: Task, plan: Plan, dims: Dims) -> float | None:
    """Of one block; several products of a task wait for each other."""
    if variant.unrolled is None:
        return None
    steps = ceil(task.site.inner / variant.unrolled) * len(parts(task, plan, dims))
    return float(steps * (L2_LATENCY_CYCLES + variant.unrolled * FMA_LATENCY_CYCLES))


def kernel(variant: Variant) -> Kernel:
    """The variant's record."""
    entries = (variant.entry, variant.reduce) if variant.reduce else (variant.entry,)
    return Kernel(
        name=variant.name,
        backend="cuda",
        idea=variant.idea,
        covers=COVERS,
        entries=entries,
        source=variant.source,
        maths=variant.maths,
        layouts=(variant.layout,),
        fused_stores=True,
        limits=lambda task, plan, dims: _limits(variant, task, plan, dims),
        launches=lambda tasks, plan, dims: _launches(variant, tasks[0], plan, dims),
        traffic=lambda tasks, plan, dims: _traffic(variant, tasks[0], plan, dims),
    )


def _split_k(splits: int) -> Variant:
    return Variant(
        name=f"gemm_split_k_{splits}",
        source="gemm/06_split_k.cu",
        entry="gemm_split_k",
        idea=f"Register tiles with the inner axis divided among {splits} blocks, parts added in order.",
        tile=(32, 64, 16),
        block=(128, 1, 1),
        splits=splits,
        reduce="gemm_split_k_reduce",
        loads_per_step=0.5,
    )


def _sass(shape: str, tile: tuple[int, int, int], micro_columns: int, splits: int) -> Variant:
    rows, columns, depth = tile
    stage_bytes = WORD_BYTES * (rows * (depth + 4) + depth * columns)
    return Variant(
        name=f"gemm_sass_fp32_{shape}_{splits}",
        source="gemm/08_sass_fp32.cu",
        entry=f"gemm_sass_fp32_{shape}",
        idea=f"No predicates, staging by cp.async in two buffers, 8x{micro_columns} sums; {splits} parts.",
        tile=tile,
        block=(rows * columns // (8 * micro_columns), 1, 1),
        splits=splits,
        reduce="gemm_sass_fp32_reduce" if splits > 1 else "",
        exact=True,
        smem_bytes=2 * stage_bytes,
        loads_per_step=0.25,
    )


WARP_TILE_BYTES = WORD_BYTES * 32 * 36
"""A warp's tile on its way out through shared memory (kernels/include/wmma_tile.cuh)."""


def _wmma_smem_bytes(rows: int, depth: int, stages: int) -> int:
    """The stages of a and w with their paddings, or what the way out needs if that is more."""
    stage_bytes = WORD_BYTES * (rows * (depth + 4) + depth * 72)
    return max(stages * stage_bytes, rows // 16 * WARP_TILE_BYTES)


def _wmma(height: str, rows: int, splits: int) -> Variant:
    return Variant(
        name=f"gemm_wmma_{height}_{splits}",
        source="gemm/09_wmma.cu",
        entry=f"gemm_wmma_{height}",
        idea=f"WMMA fragments in TF32 over staging by cp.async in two buffers; {splits} parts.",
        tile=(rows, 64, 16),
        block=(2 * rows, 1, 1),
        maths=("tf32",),
        pipe="tf32_mma",
        splits=splits,
        reduce="gemm_wmma_reduce" if splits > 1 else "",
        exact=True,
        smem_bytes=_wmma_smem_bytes(rows, 16, 2),
    )


def _assault(height: str, rows: int, splits: int) -> Variant:
    return Variant(
        name=f"gemm_w2_assault_{height}_{splits}",
        source="gemm/12_w2_assault.cu",
        entry=f"gemm_w2_assault_{height}",
        idea=f"WMMA with advancing pointers, stages twice as deep and three of them; {splits} parts.",
        tile=(rows, 64, 32),
        block=(2 * rows, 1, 1),
        maths=("tf32",),
        pipe="tf32_mma",
        splits=splits,
        reduce="gemm_w2_assault_reduce" if splits > 1 else "",
        exact=True,
        smem_bytes=_wmma_smem_bytes(rows, 32, 3),
    )


VARIANTS: tuple[Variant, ...] = (
    Variant(
        name="gemm_naive",
        source="gemm/01_naive.cu",
        entry="gemm_naive",
        idea="One thread an output element, each walking its own row of the weight.",
        tile=(8, 32, 1),
        block=(32, 8, 1),
        layout="row",
        loads_per_step=33.0,
        instructions_per_step=3.75,
        unrolled=4,
    ),
    Variant(
        name="gemm_coalesced",
        source="gemm/02_coalesced.cu",
        entry="gemm_coalesced",
        idea="The naive kernel on transposed weights: a warp reads consecutive words.",
        tile=(8, 32, 1),
        block=(32, 8, 1),
        loads_per_step=2.0,
        instructions_per_step=5.5,
        unrolled=4,
    ),
    Variant(
        name="gemm_tiled",
        source="gemm/03_tiled.cu",
        entry="gemm_tiled",
        idea="16x16 tiles staged in shared memory: each fetched word serves 16 multiply-adds.",
        tile=(16, 16, 16),
        block=(16, 16, 1),
        loads_per_step=2.0,
    ),
    Variant(
        name="gemm_register_tiled",
        source="gemm/04_register_tiled.cu",
        entry="gemm_register_tiled",
        idea="A 4x4 block of sums in each thread's registers: 8 shared loads feed 16 multiply-adds.",
        tile=(32, 64, 16),
        block=(128, 1, 1),
        loads_per_step=0.5,
    ),
    Variant(
        name="gemm_small_tiles",
        source="gemm/05_small_tiles.cu",
        entry="gemm_small_tiles",
        idea="Smaller tiles: more blocks with fewer warps in each, to test whether blocks were short.",
        tile=(32, 32, 16),
        block=(64, 1, 1),
        loads_per_step=0.5,
    ),
    *(_split_k(splits) for splits in (2, 4, 8)),
    *(_sass("wide", (128, 128, 16), 8, splits) for splits in (1, 2, 4, 5, 7, 11, 22)),
    *(_sass("narrow", (128, 64, 16), 8, splits) for splits in (1, 2, 3, 4, 6, 11)),
    *(_sass("square", (64, 64, 32), 4, splits) for splits in (1, 2, 3, 4, 5, 8, 11, 16)),
    *(_wmma("tall", 128, splits) for splits in (1, 2, 3, 4, 6, 11)),
    *(_wmma("short", 64, splits) for splits in (1, 2, 3, 5, 8, 11)),
    *(_assault("tall", 128, splits) for splits in (1, 2, 3, 4, 6, 11)),
    *(_assault("short", 64, splits) for splits in (1, 2, 3, 5, 8, 11)),
    Variant(
        name="gemm_one_row",
        source="gemm/10_one_row.cu",
        entry="gemm_one_row",
        idea="A block of 32 warps divides the inner axis of 32 columns: for one row, all loads in flight.",
        tile=(1, 32, 1),
        block=(1024, 1, 1),
        maths=("fp32", "tf32"),
        loads_per_step=2.0,
    ),
)


KERNELS: tuple[Kernel, ...] = tuple(kernel(variant) for variant in VARIANTS)
