"""What the launches of the cuda backend's attention ask of the chip, by their tiles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from gputop.plan.launch_shape import LaunchShape, Serial
from gputop.plan.types import WORD_BYTES, Dims, Launch, Task

WARP = 32


def queries(task: Task, dims: Dims) -> int:
    """Rows asked for in each sequence."""
    return task.output.rows // dims.batch


def visible(task: Task, dims: Dims, query: int) -> int:
    """Keys that a query of a sequence sees, and with them every query before it."""
    return min(dims.seq, dims.seq - queries(task, dims) + query + 1)


def asked(
    launch: Launch, task: Task, dims: Dims, *, keys: int, rows: int, element_bytes: int = WORD_BYTES
) -> LaunchShape:
    """Of a launch whose busiest block reads the keys and values of one head for `rows` of its queries.

    No FLOPs are told, and no way through shared memory.
    """
    x, y, z = launch.grid
    d_head, every = dims.d_head, task.output.rows
    return LaunchShape(
        blocks=x * y * z,
        threads=launch.block[0],
        smem_bytes=launch.smem_bytes,
        read_bytes=float(element_bytes * d_head * (2 * keys + rows)),
        distinct_bytes=float(element_bytes * dims.d_model * (2 * dims.batch * dims.seq + every)),
        written_bytes=float(element_bytes * dims.d_model * every),
        pdl=launch.pdl,
    )


@dataclass(frozen=True, slots=True)
class FlashTile:
    """How a flash kernel walks its keys, 32 in a step."""

    queries: int
    """Of a block."""
    at_once: int
    """Steps that a block's warps take side by side, each from copies that it waits for. 1: all warps take
    each step together, with the copies of the next on their way.
    """
    key_reads: float
    """How often shared memory gives a step's keys out, all warps together."""
    value_reads: float
    pipe: str
    element_bytes: int = WORD_BYTES

    KEYS = 32

    def shape(self, launch: Launch, task: Task, dims: Dims) -> LaunchShape:
        """Whole tiles are multiplied, those of the future left out."""
        rows = queries(task, dims)
        seen = [visible(task, dims, first + self.queries - 1) for first in range(0, rows, self.queries)]
        steps = [ceil(keys / self.KEYS) for keys in seen]
        heads = dims.heads * dims.batch
        most = max(steps) * self.KEYS
        copied = self.element_bytes * dims.d_head * 2 * most
        read = self.element_bytes * dims.d_head * most * (self.key_reads + self.value_reads)
        return replace(
            asked(launch, task, dims, keys=max(seen), rows=self.queries, element_bytes=self.element_bytes),
            tile=(self.queries, dims.d_head, self.KEYS),
            steps=ceil(max(steps) / self.at_once),
            stages=2 if self.at_once == 1 else 1,
            step_loads=0.0 if self.at_once == 1 else 1.0,
            pipe=self.pipe,
            flops=float(heads * sum(steps) * self.KEYS * self.queries * 4 * dims.d_head),
            shared_bytes=float(copied + read),
            serial=Serial(barriers=3),
        )


def scores(launch: Launch, task: Task, dims: Dims) -> LaunchShape:
    """A thread computes a score: lanes take keys, a line each, and share a query."""
    warps = _pairs(task, dims, WARP) * dims.heads * dims.batch
    one = asked(launch, task, dims, keys=0, rows=0)
    return replace(
        one,
        steps=dims.d_head,
        step_loads=2.0,
        pipe="fp32",
        flops=2.0 * WARP * warps * dims.d_head,
        read_bytes=WORD_BYTES * dims.d_head * (_score_count(task, dims) / one.blocks + 1),
        distinct_bytes=float(WORD_BYTES * dims.d_model * (dims.batch * dims.seq + task.output.rows)),
        written_bytes=float(WORD_BYTES * _score_count(task, dims)),
        lookups=2.0 * warps / one.blocks * dims.d_head,
        lines_per_load=(WARP + 1) / 2,
    )


SOFTMAX_WALKS = 5
"""Of each score by the naive softmax: once for the peak, twice for the sum, twice for the division."""
PEAK_AT_ONCE = 8
"""Scores of the first walk that a thread loads together."""


def softmax(launch: Launch, task: Task, dims: Dims) -> LaunchShape:
    """A thread walks a row three times, first from L2, then from L1; lanes are rows, a line each."""
    rows = task.output.rows * dims.heads
    every = _score_count(task, dims)
    threads = launch.block[0]
    of_block = min(1.0, threads / rows) * every
    return replace(
        asked(launch, task, dims, keys=0, rows=0),
        stages=1,
        read_bytes=WORD_BYTES * of_block,
        distinct_bytes=None,
        written_bytes=2.0 * WORD_BYTES * every,
        lookups=SOFTMAX_WALKS * of_block / WARP,
        lines_per_load=float(WARP),
        serial=Serial(
            l2_trips=dims.seq / PEAK_AT_ONCE, l1_trips=dims.seq / 4 + dims.seq, specials=2.0 * dims.seq
        ),
        has_main_loop=False,
    )


VALUE_LOADS, VALUE_WAITS = 16, 6
"""Of a thread that mixes values: keys in one turn of its loop, and how often it waits in one."""


def values(launch: Launch, task: Task, dims: Dims) -> LaunchShape:
    """A thread mixes one column of values with a row's weights, both from L2."""
    every, threads = _score_count(task, dims), launch.block[0]
    mean_keys = every / (task.output.rows * dims.heads)
    one = asked(launch, task, dims, keys=0, rows=0)
    return replace(
        one,
        read_bytes=WORD_BYTES * mean_keys * (threads + threads / dims.d_head),
        distinct_bytes=WORD_BYTES * (every + float(dims.batch * dims.seq * dims.d_model)),
        lookups=threads / WARP * mean_keys * 2.0,
        serial=Serial(l2_trips=dims.seq / VALUE_LOADS * VALUE_WAITS),
        has_main_loop=False,
    )


def parallel(launch: Launch, task: Task, dims: Dims) -> LaunchShape:
    """A block has one query: a warp takes every fourth key's dot product, then a thread a column of
    values.
    """
    warps = launch.block[0] // WARP
    keys = visible(task, dims, queries(task, dims) - 1)
    mean_keys = _score_count(task, dims) / (task.output.rows * dims.heads)
    own_keys = keys / warps
    return replace(
        asked(launch, task, dims, keys=0, rows=0),
        steps=keys,
        step_loads=1.0,
        pipe="fp32",
        flops=float(task.output.rows * dims.heads * 4 * keys * dims.d_head),
        read_bytes=WORD_BYTES * dims.d_head * (2 * mean_keys + 1.0),
        serial=Serial(l2_trips=ceil(dims.d_head / WARP) * own_keys, shuffles=5 * own_keys + 20, barriers=6),
    )


def _pairs(task: Task, dims: Dims, keys: int) -> int:
    """Runs of so many keys that the queries of one head see, over all of them in one sequence."""
    return sum(ceil(visible(task, dims, query) / keys) for query in range(queries(task, dims)))


def _score_count(task: Task, dims: Dims) -> int:
    """Scores of all heads and sequences, those of the future left out."""
    return _pairs(task, dims, 1) * dims.heads * dims.batch
