"""Attention with 128 queries of a head in one block (kernels/attention/27_flash_head.cu)."""

from __future__ import annotations

from math import ceil

from gputop.phases.attention_cuda import COVERS, arguments
from gputop.phases.attention_cuda_traffic import LINE_BYTES, queries
from gputop.phases.sass_loops import LOOP_BODIES
from gputop.plan.traffic import CriticalPath, Traffic
from gputop.plan.types import WORD_BYTES, Dims, Kernel, Launch, Plan, Task

HEAD = 64
WARPS = 4
THREADS = 32 * WARPS
QUERIES, TILE = 128, 16
"""Of a block, and of a tile, of which each warp has two."""
KEYS, BUFFERS = 64, 2
GROUP = 16
"""Keys that a tile goes through or leaves out together."""
ROUNDING_INSTRUCTIONS, ROUNDING_CYCLES = 250, 400
"""Of a warp for its share of a buffer; they stand in the loop over buffers."""
AROUND = 300 + 600
"""Cycles of a warp before its first buffer and after its last, by the machine code."""


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


def _traffic(task: Task, dims: Dims) -> Traffic:
    """Keys and values once for 128 queries, or twice where shared memory has no room for them all."""
    turn = LOOP_BODIES["attention_flash_head"]
    blocks = _groups(task, dims)
    heads = dims.heads * dims.batch
    groups = heads * sum(map(sum, blocks))
    buffers = [ceil(max(tiles) * GROUP / KEYS) for tiles in blocks]
    loads = [count * (1 if count <= BUFFERS else 2) for count in buffers]
    keys = sum(
        min(dims.seq, max(tiles) * GROUP) * count // own
        for tiles, count, own in zip(blocks, loads, buffers, strict=True)
    )
    rows = queries(task, dims)
    longest = max(
        sum(tiles[warp] for warp in (own, 2 * WARPS - 1 - own) if warp < len(tiles))
        for tiles in blocks
        for own in range(WARPS)
    )
    attend_instructions = turn.instructions - ROUNDING_INSTRUCTIONS
    attend_cycles = turn.cycles - ROUNDING_CYCLES
    # Keys and values in and, for their rounding, out and in again; then 16 bytes a lane for each group.
    buffer_wavefronts = 3 * 2 * KEYS * HEAD * WORD_BYTES / LINE_BYTES
    group_wavefronts = 2 * GROUP * HEAD * WORD_BYTES / LINE_BYTES
    return Traffic(
        flops=float(groups * TILE * GROUP * (4 * HEAD + 6)),
        l2_bytes=float(WORD_BYTES * 2 * heads * HEAD * (rows + keys)),
        l1_wavefronts=heads * sum(loads) * buffer_wavefronts + groups * group_wavefronts,
        warp_instructions=heads * sum(loads) * WARPS * ROUNDING_INSTRUCTIONS
        + groups * attend_instructions * GROUP / KEYS,
        chains=(
            CriticalPath(
                AROUND + max(loads) * ROUNDING_CYCLES + longest * attend_cycles * GROUP / KEYS,
                l2_waits=max(loads) if max(loads) > BUFFERS else 1,
            ),
        ),
        bytes_in_flight_per_warp=float(BUFFERS * 2 * KEYS * HEAD * WORD_BYTES / WARPS),
        pipe="tf32_mma",
        tile=(TILE, HEAD, GROUP),
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
        traffic=lambda tasks, plan, dims: _traffic(tasks[0], dims),
    ),
)
