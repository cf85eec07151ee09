"""The cuda backend's attention (`AttentionArgs` of kernels/include/args.cuh)."""

from __future__ import annotations

from math import ceil

from gputop.phases.attention_cuda_shapes import FlashTile, parallel, queries, scores, softmax, values
from gputop.plan.launch_shape import LaunchShape
from gputop.plan.types import (
    WORD_BYTES,
    Argument,
    Dims,
    Kernel,
    Launch,
    Plan,
    Scratch,
    Task,
    TensorMap,
    View,
)

COVERS = ("attention",)
THREADS = 128
FLASH_QUERIES, FLASH_KEYS = 8, FlashTile.KEYS
WARPS, WARPS_HEAD = 4, 64
TENSOR_QUERIES, TENSOR_WARPS, TENSOR_HEAD = 16, 4, 64
FLASH = FlashTile(FLASH_QUERIES, at_once=1, key_reads=1, value_reads=4, pipe="fp32")
"""Each of four warps has a quarter of a step's keys, then a quarter of the queries."""
FLASH_WARPS = FlashTile(FLASH_QUERIES, at_once=WARPS, key_reads=1, value_reads=1, pipe="fp32")
FLASH_TENSOR = FlashTile(TENSOR_QUERIES, at_once=TENSOR_WARPS, key_reads=1, value_reads=1, pipe="tf32_mma")


def arguments(task: Task, dims: Dims, scores: Scratch | None) -> tuple[Argument, ...]:
    """`AttentionArgs` in order."""
    q, k, v = (task.operand(role) for role in "qkv")
    assert isinstance(q, View)
    assert isinstance(k, View)
    return (
        q,
        k,
        v,
        task.output,
        scores,
        dims.batch,
        dims.seq,
        dims.heads,
        dims.d_head,
        queries(task, dims),
        q.ld,
        k.ld,
        task.output.ld,
        dims.d_head**-0.5,
    )


def _naive(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    task = tasks[0]
    rows = queries(task, dims)
    score_rows = dims.batch * dims.heads * rows
    args = arguments(task, dims, Scratch("scores", score_rows * dims.seq * WORD_BYTES))
    block = (THREADS, 1, 1)
    return (
        Launch(
            "attention_naive_scores",
            (ceil(dims.seq / THREADS), rows, dims.batch * dims.heads),
            block,
            args,
        ),
        Launch("attention_naive_softmax", (ceil(score_rows / THREADS), 1, 1), block, args),
        Launch("attention_naive_values", (ceil(dims.d_model / THREADS), rows, dims.batch), block, args),
    )


def _naive_shapes(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[LaunchShape, ...]:
    of_scores, of_softmax, of_values = _naive(tasks, plan, dims)
    task = tasks[0]
    return scores(of_scores, task, dims), softmax(of_softmax, task, dims), values(of_values, task, dims)


def _parallel(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    task = tasks[0]
    grid = (queries(task, dims), dims.heads, dims.batch)
    args = arguments(task, dims, None)
    return (Launch("attention_parallel", grid, (THREADS, 1, 1), args, smem_bytes=dims.seq * WORD_BYTES),)


def _parallel_limits(task: Task, plan: Plan, dims: Dims) -> str | None:
    if dims.seq * WORD_BYTES > 48 * 1024:
        return f"it keeps a row of scores in 48 KiB of shared memory, and seq is {dims.seq}"
    return None


def _tiles(tile: FlashTile, launches: tuple[Launch, ...], task: Task, dims: Dims) -> tuple[LaunchShape, ...]:
    return tuple(tile.shape(launch, task, dims) for launch in launches)


FLASH_HEADS = (64, 128)


def _flash(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    task = tasks[0]
    grid = (ceil(queries(task, dims) / FLASH_QUERIES), dims.heads, dims.batch)
    row = dims.d_head + 4
    words = FLASH_QUERIES * row + 4 * FLASH_KEYS * row + FLASH_QUERIES * (FLASH_KEYS + 1)
    args = arguments(task, dims, None)
    entry = f"attention_flash_{dims.d_head}"
    return (Launch(entry, grid, (THREADS, 1, 1), args, smem_bytes=words * WORD_BYTES, pdl=True),)


def _flash_limits(task: Task, plan: Plan, dims: Dims) -> str | None:
    if dims.d_head not in FLASH_HEADS:
        allowed = " or ".join(map(str, FLASH_HEADS))
        return f"it takes a d_head of {allowed}, and it is {dims.d_head}"
    return None


def _flash_warps(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    task = tasks[0]
    grid = (ceil(queries(task, dims) / FLASH_QUERIES), dims.heads, dims.batch)
    rows = FLASH_QUERIES + 2 * WARPS * FLASH_KEYS
    words = rows * (WARPS_HEAD + 4) + WARPS * FLASH_QUERIES * FLASH_KEYS
    args = arguments(task, dims, None)
    smem_bytes = words * WORD_BYTES
    return (Launch("attention_flash_warps", grid, (THREADS, 1, 1), args, smem_bytes=smem_bytes, pdl=True),)


def _flash_warps_limits(task: Task, plan: Plan, dims: Dims) -> str | None:
    if dims.d_head != WARPS_HEAD:
        return f"it takes a d_head of {WARPS_HEAD}, and it is {dims.d_head}"
    return None


def _flash_tensor(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    task = tasks[0]
    grid = (ceil(queries(task, dims) / TENSOR_QUERIES), dims.heads, dims.batch)
    rows = TENSOR_QUERIES + 2 * TENSOR_WARPS * FLASH_KEYS
    args = arguments(task, dims, None)
    smem_bytes = rows * (TENSOR_HEAD + 4) * WORD_BYTES
    return (Launch("attention_flash_tensor", grid, (THREADS, 1, 1), args, smem_bytes=smem_bytes, pdl=True),)


def _flash_tensor_limits(task: Task, plan: Plan, dims: Dims) -> str | None:
    if dims.d_head != TENSOR_HEAD:
        return f"it takes a d_head of {TENSOR_HEAD}, and it is {dims.d_head}"
    return None


TMA_THREADS, TMA_BOX_KEYS, TMA_CHUNK = 256, 64, 32
TMA_SMEM_BYTES = (TENSOR_QUERIES + 2 * 2 * TMA_BOX_KEYS) * TENSOR_HEAD * WORD_BYTES + 128
"""Queries, two boxes each of keys and of values, and barriers behind them."""
ALONE_SMEM_BYTES = 116 << 10
"""Over half of what an SM has: no two blocks share one."""


def _flash_tma(smem_bytes: int, tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    task = tasks[0]
    rows = queries(task, dims)

    def tensor_map(role: str, rows: int, box_rows: int) -> TensorMap:
        """One sequence's rows of one head at a time; what lies beyond a sequence arrives as zeros."""
        operand = task.operand(role)
        assert isinstance(operand, View)
        sizes = (TMA_CHUNK, rows, dims.d_model // TMA_CHUNK, dims.batch)
        strides = (operand.ld, TMA_CHUNK, rows * operand.ld)
        return TensorMap(operand, sizes, strides, (TMA_CHUNK, box_rows, TENSOR_HEAD // TMA_CHUNK, 1))

    maps = (
        tensor_map("q", rows, TENSOR_QUERIES),
        tensor_map("k", dims.seq, TMA_BOX_KEYS),
        tensor_map("v", dims.seq, TMA_BOX_KEYS),
    )
    grid = (ceil(rows / TENSOR_QUERIES), dims.heads, dims.batch)
    args = (*maps, *arguments(task, dims, None))
    return (Launch("attention_flash_tma", grid, (TMA_THREADS, 1, 1), args, smem_bytes=smem_bytes, pdl=True),)


def _flash_tma_limits(task: Task, plan: Plan, dims: Dims) -> str | None:
    if dims.d_head != TENSOR_HEAD:
        return f"it takes a d_head of {TENSOR_HEAD}, and it is {dims.d_head}"
    return None


def _flash_tma_kernel(name: str, smem_bytes: int, beside: str) -> Kernel:
    return Kernel(
        name=name,
        backend="cuda",
        idea=f"Flash attention on tensor cores, tiles by bulk copies, eight warps share the keys{beside}.",
        covers=COVERS,
        entries=("attention_flash_tma",),
        source="attention/24_flash_tma.cu",
        maths=("tf32",),
        min_arch=90,
        limits=_flash_tma_limits,
        launches=lambda tasks, plan, dims: _flash_tma(smem_bytes, tasks, plan, dims),
        shapes=lambda tasks, plan, dims: _tiles(
            FLASH_TENSOR, _flash_tma(smem_bytes, tasks, plan, dims), tasks[0], dims
        ),
    )


KERNELS = (
    Kernel(
        name="attention_naive",
        backend="cuda",
        idea="Three launches through a score matrix in memory; one thread does a row's softmax.",
        covers=COVERS,
        entries=("attention_naive_scores", "attention_naive_softmax", "attention_naive_values"),
        source="attention/01_naive.cu",
        launches=_naive,
        shapes=_naive_shapes,
    ),
    Kernel(
        name="attention_parallel",
        backend="cuda",
        idea="One block a row: dot products by warps, softmax by shuffle tree, scores in shared memory.",
        covers=COVERS,
        entries=("attention_parallel",),
        source="attention/07_parallel.cu",
        limits=_parallel_limits,
        launches=_parallel,
        shapes=lambda tasks, plan, dims: (parallel(_parallel(tasks, plan, dims)[0], tasks[0], dims),),
    ),
    Kernel(
        name="attention_flash",
        backend="cuda",
        idea="Keys and values stream through shared memory for 8 queries at once; softmax computed online.",
        covers=COVERS,
        entries=tuple(f"attention_flash_{d_head}" for d_head in FLASH_HEADS),
        source="attention/14_flash.cu",
        limits=_flash_limits,
        launches=_flash,
        shapes=lambda tasks, plan, dims: _tiles(FLASH, _flash(tasks, plan, dims), tasks[0], dims),
    ),
    Kernel(
        name="attention_flash_warps",
        backend="cuda",
        idea="Flash attention in fp32 whose four warps take key tiles of their own, merged at the end.",
        covers=COVERS,
        entries=("attention_flash_warps",),
        source="attention/14_flash_warps.cu",
        limits=_flash_warps_limits,
        launches=_flash_warps,
        shapes=lambda tasks, plan, dims: _tiles(FLASH_WARPS, _flash_warps(tasks, plan, dims), tasks[0], dims),
    ),
    Kernel(
        name="attention_flash_tensor",
        backend="cuda",
        idea="Flash attention on tensor cores: four warps share 16 queries' keys, both products in TF32.",
        covers=COVERS,
        entries=("attention_flash_tensor",),
        source="attention/14_flash_tensor.cu",
        maths=("tf32",),
        limits=_flash_tensor_limits,
        launches=_flash_tensor,
        shapes=lambda tasks, plan, dims: _tiles(
            FLASH_TENSOR, _flash_tensor(tasks, plan, dims), tasks[0], dims
        ),
    ),
    _flash_tma_kernel("attention_flash_tma", TMA_SMEM_BYTES, ""),
    _flash_tma_kernel("attention_flash_tma_alone", ALONE_SMEM_BYTES, "; no two blocks on an SM"),
)
