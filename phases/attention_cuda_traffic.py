"""What the cuda backend's attention asks of the chip: from its tiles and its loops' machine code."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

from gputop.phases.sass_loops import LOOP_BODIES, UNCOALESCED_CYCLES, LoopBody
from gputop.plan.traffic import CriticalPath, Traffic
from gputop.plan.types import WORD_BYTES, Dims, Plan, Task

LINE_BYTES = 128
PARALLEL_WARPS = 4
FLASH_QUERIES, FLASH_KEYS = 8, 32
WARPS, WARPS_HEAD = 4, 64
TENSOR_QUERIES, TENSOR_WARPS, TENSOR_HEAD = 16, 4, 64


def queries(task: Task, dims: Dims) -> int:
    """Rows asked for in each sequence."""
    return task.output.rows // dims.batch


@dataclass(frozen=True, slots=True)
class AttentionTile:
    """How a flash kernel walks its keys, 32 in a step."""

    queries: int
    warps: int
    """Of a block, that take one step together."""
    at_once: int
    """Steps that a block's warps take side by side."""
    turn: LoopBody
    around: int
    """Cycles before and after the steps."""
    wavefronts: float
    """Of shared memory in a step, copies into it included."""
    pipe: str


def flash(task: Task, dims: Dims, tile: AttentionTile) -> Traffic:
    """Keys and values once for each tile of queries that sees them; whole tiles are multiplied."""
    rows = queries(task, dims)
    visible = [
        min(dims.seq, dims.seq - rows + (i + 1) * tile.queries) for i in range(ceil(rows / tile.queries))
    ]
    steps = [ceil(seen / FLASH_KEYS) for seen in visible]
    keys = dims.batch * FLASH_KEYS * sum(steps)
    heads = dims.heads * dims.batch
    turns = max(ceil(n / tile.at_once) for n in steps)
    copies = turns if tile.at_once == 1 else 0
    return Traffic(
        flops=float(keys * tile.queries * (4 * dims.d_model + 6 * dims.heads)),
        l2_bytes=float(WORD_BYTES * 2 * dims.d_model * (keys + task.output.rows)),
        l1_wavefronts=float(heads * sum(steps) * tile.wavefronts),
        warp_instructions=float(heads * sum(steps) * tile.warps * tile.turn.instructions),
        chains=(
            tile.turn.chain(turns) + CriticalPath(tile.around, l2_waits=1 if copies else turns),
            CriticalPath(tile.around, l2_waits=copies),
        ),
        bytes_in_flight_per_warp=float(2 * WORD_BYTES * FLASH_KEYS * dims.d_head / tile.warps),
        pipe=tile.pipe,
        tile=(tile.queries, dims.d_head, FLASH_KEYS),
    )


def flash_tile(d_head: int) -> AttentionTile:
    """A warp reads its queries' and its keys' rows by 16 bytes, then weights and values.

    Four queries' addresses in a load of 32 lanes take 2 steps, 8 keys' or 8 columns' 4.
    """
    chunks = d_head // 4
    scores = chunks * (2 + 2 * 4)
    values = FLASH_KEYS * (1 + ceil(d_head / 64) * 4)
    copies = 2 * FLASH_KEYS * d_head * WORD_BYTES / LINE_BYTES
    return AttentionTile(
        FLASH_QUERIES,
        4,
        1,
        LOOP_BODIES[f"attention_flash_{d_head}"],
        580,
        4 * (scores + values) + copies,
        "fp32",
    )


# Keys' rows by 16 bytes and queries' that all lanes share, values by 8 bytes and shared weights; copies.
WARPS_TILE = AttentionTile(
    FLASH_QUERIES,
    warps=1,
    at_once=WARPS,
    turn=LOOP_BODIES["attention_flash_warps"],
    around=240 + 73 + 4 * 125 + 60 + 180 + 460,
    wavefronts=WARPS_HEAD / 4 * (4 + 8)
    + FLASH_KEYS * 2
    + 64
    + 2 * FLASH_KEYS * WARPS_HEAD * WORD_BYTES / LINE_BYTES,
    pipe="fp32",
)
TENSOR_TILE = AttentionTile(
    TENSOR_QUERIES,
    warps=1,
    at_once=TENSOR_WARPS,
    turn=LOOP_BODIES["attention_flash_tensor"],
    around=240 + 73 + 4 * 125 + 260 + 180 + 2 * 450,
    # 16 fragment loads of keys, 64 words of values, and their copies.
    wavefronts=16 * 4 + 64 + 2 * FLASH_KEYS * TENSOR_HEAD * WORD_BYTES / LINE_BYTES,
    pipe="tf32_mma",
)
"""Cycles around: addresses, a query's copies, those of keys in four turns, fragments of queries; then the
warps' results through shared memory, in two turns."""


TMA_TILE = AttentionTile(
    TENSOR_QUERIES,
    warps=2,
    at_once=TENSOR_WARPS,
    turn=LOOP_BODIES["attention_flash_tma"],
    around=240 + 260 + 2 * 450,
    # Two warps: 8 fragment loads of keys and 32 words of values each, and their copies.
    wavefronts=2 * (8 * 4 + 32) + 2 * FLASH_KEYS * TENSOR_HEAD * WORD_BYTES / LINE_BYTES,
    pipe="tf32_mma",
)
"""Two warps take the 32 keys of a step, 16 each. No thread computes addresses of copies."""


def _visible(task: Task, dims: Dims) -> list[int]:
    """Keys that each query of a sequence sees."""
    rows = queries(task, dims)
    return [dims.seq - rows + 1 + row for row in range(rows)]


def _pairs_traffic(task: Task, dims: Dims, query_reads: int, score_trips: int, **loops: Any) -> Traffic:
    """Every block reads the keys and values that its query sees from L2; results are written once.

    Rows of queries are read `query_reads` times in all, scores travel `score_trips` times.
    """
    visible = dims.batch * sum(_visible(task, dims))
    rows = 2 * visible + query_reads + task.output.rows
    return Traffic(
        flops=float(4 * visible * dims.d_model + 6 * visible * dims.heads),
        l2_bytes=float(WORD_BYTES * (rows * dims.d_model + score_trips * visible * dims.heads)),
        pipe="fp32",
        **loops,
    )


NAIVE_KEYS = 128
"""Of a block of `scores`."""
SOFTMAX_WALKS = 5
"""Of each score by the naive softmax: once for the peak, twice for the sum, twice for the division."""


def naive(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> Traffic:
    """Loads of `scores` touch a line a lane, and so does every access of `softmax`, whose lanes are rows.

    `softmax` is one thread a row: of its three walks the later find in L1 what the first had from L2.
    """
    task = tasks[0]
    every, seq, heads = _visible(task, dims), dims.seq, dims.heads * dims.batch
    scores, values = LOOP_BODIES["attention_naive_scores"], LOOP_BODIES["attention_naive_values"]
    peak, total, divide = (
        LOOP_BODIES[f"attention_naive_softmax {walk}"] for walk in ("peak", "sum", "divide")
    )
    score_warps = heads * sum(ceil(seen / 32) for seen in every)
    score_turns, value_warp_turns = dims.d_head / 16, heads * dims.d_head / 32 * sum(every) / 16
    softmax_instructions = peak.instructions / 16 + (total.instructions + divide.instructions) / 4
    softmax = (
        peak.chain(seq / 16, l2_waits=1)
        + total.chain(seq / 4)
        + divide.chain(seq / 4)
        + CriticalPath(cycles=SOFTMAX_WALKS * seq * UNCOALESCED_CYCLES)
    )
    return _pairs_traffic(
        task,
        dims,
        dims.batch * sum(ceil(seen / NAIVE_KEYS) for seen in every),
        SOFTMAX_WALKS + 1,
        l1_wavefronts=score_warps * dims.d_head * (UNCOALESCED_CYCLES + 1)
        + heads * sum(every) * SOFTMAX_WALKS
        + value_warp_turns * 32,
        warp_instructions=score_warps * score_turns * scores.instructions
        + heads * sum(every) / 32 * softmax_instructions
        + value_warp_turns * values.instructions,
        chains=(
            scores.chain(score_turns, l2_waits=2) + CriticalPath(cycles=dims.d_head * UNCOALESCED_CYCLES),
        ),
        after=softmax + values.chain(seq / 16, l2_waits=values.waits),
    )


def parallel(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> Traffic:
    """A warp takes every fourth key's dot product, waiting for each 32 of d_head; then a thread a column."""
    task = tasks[0]
    every, heads = _visible(task, dims), dims.heads * dims.batch
    dots, values = LOOP_BODIES["attention_parallel dots"], LOOP_BODIES["attention_parallel values"]
    waits = ceil(dims.d_head / 32)
    keys, value_turns = heads * sum(every), heads * ceil(dims.d_head / 32) * sum(every) / 16
    return _pairs_traffic(
        task,
        dims,
        task.output.rows,
        0,
        l1_wavefronts=keys * 2.0 * waits + value_turns * 32,
        warp_instructions=keys * dots.instructions + value_turns * values.instructions,
        chains=(
            dots.chain(max(every) / PARALLEL_WARPS, l2_waits=waits)
            + values.chain(max(every) / 16, l2_waits=values.waits),
        ),
        bytes_in_flight_per_warp=2.0 * LINE_BYTES,
    )
