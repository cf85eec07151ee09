"""Attention with 128 queries of a head in one block (kernels/attention/27_flash_head.cu)."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from gputop.phases.attention_cuda import COVERS, arguments
from gputop.phases.attention_cuda_shapes import asked, queries
from gputop.plan.launch_shape import LaunchShape, Serial
from gputop.plan.types import WORD_BYTES, Dims, Kernel, Launch, Plan, Task

HEAD = 64
WARPS = 4
THREADS = 32 * WARPS
QUERIES, TILE = 128, 16
"""Of a block, and of a tile, of which each warp has two."""
KEYS, BUFFERS = 64, 2
GROUP = 16
"""Keys that a tile goes through or leaves out together."""


def _groups(task: Task, dims: Dims) -> tuple[tuple[int, ...], ...]:
    """Of each block of one head: groups of keys that each of its tiles goes through."""
    rows = queries(task, dims)
    before = dims.seq - rows
    return tuple(
        tuple(
            ceil(min(dims.seq, before + first + TILE) / GROUP)
            for first in range(block, min(block + QUERIES, rows), TILE)
        )
        for block in range(0, rows, QUERIES)
    )


def _shapes(task: Task, dims: Dims) -> tuple[LaunchShape, ...]:
    """Keys and values once for 128 queries, or twice where shared memory has no room for them all.

    They come in, go out and in again to be rounded, and out for each group of a tile that goes through them.
    """
    (launch,) = _launches(task, dims)
    blocks = _groups(task, dims)
    heads = dims.heads * dims.batch
    busiest = max(blocks, key=sum)
    buffers = ceil(max(busiest) * GROUP / KEYS)
    walks = 1 if buffers <= BUFFERS else 2
    keys = min(dims.seq, max(busiest) * GROUP) * walks
    rows = min(QUERIES, queries(task, dims))
    copied = 3 * 2 * keys * HEAD
    read = 2 * GROUP * HEAD * sum(busiest)
    return (
        replace(
            asked(launch, task, dims, keys=keys, rows=rows),
            tile=(TILE, HEAD, GROUP),
            steps=buffers * walks,
            stages=1,
            # What shared memory holds is asked for at once; beyond that each buffer is waited for.
            step_loads=1.0 if walks > 1 else 0.0,
            pipe="tf32_mma",
            flops=float(heads * sum(map(sum, blocks)) * TILE * GROUP * 4 * HEAD),
            shared_bytes=float(WORD_BYTES * (copied + read)),
            serial=Serial(barriers=2.0 * buffers * walks),
        ),
    )


def _launches(task: Task, dims: Dims) -> tuple[Launch, ...]:
    grid = (ceil(queries(task, dims) / QUERIES), dims.heads, dims.batch)
    smem_bytes = BUFFERS * 2 * KEYS * HEAD * WORD_BYTES
    args = arguments(task, dims, None)
    return (Launch("attention_flash_head", grid, (THREADS, 1, 1), args, smem_bytes=smem_bytes, pdl=True),)


def _limits(task: Task, plan: Plan, dims: Dims) -> str | None:
    if dims.d_head != HEAD:
        return f"it takes a d_head of {HEAD}, and it is {dims.d_head}"
    return None


KERNELS = (
    Kernel(
        name="attention_flash_head",
        backend="cuda",
        idea="Flash attention on tensor cores with 128 queries of a head in a block, keys once for them.",
        covers=COVERS,
        entries=("attention_flash_head",),
        source="attention/27_flash_head.cu",
        maths=("tf32",),
        limits=_limits,
        launches=lambda tasks, plan, dims: _launches(tasks[0], dims),
        shapes=lambda tasks, plan, dims: _shapes(tasks[0], dims),
    ),
)
