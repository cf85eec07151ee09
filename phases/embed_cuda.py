"""The cuda backend's embedding (`EmbedArgs` of kernels/include/args.cuh)."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from gputop.phases.shape_limits import not_multiple_of
from gputop.plan.launch_shape import LaunchShape, Serial
from gputop.plan.types import WORD_BYTES, Argument, Dims, Kernel, Launch, Plan, Task

THREADS = 256
SECTOR_BYTES = 32


BF16_BYTES = 2


def _arguments(task: Task, dims: Dims) -> tuple[Argument, ...]:
    """`EmbedArgs` in order."""
    out = task.output
    tables = (task.operand("tokens"), task.operand("embedding"), task.operand("position"))
    return (*tables, out, out.rows, dims.seq, out.columns, out.ld)


def _launches(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    out = tasks[0].output
    grid = (ceil(out.columns / THREADS), out.rows, 1)
    return (Launch("embed_gather", grid, (THREADS, 1, 1), _arguments(tasks[0], dims), pdl=True),)


def _bf16_launches(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    """A thread has two columns."""
    out = tasks[0].output
    grid = (ceil(out.columns / (2 * THREADS)), out.rows, 1)
    return (Launch("embed_bf16_gather", grid, (THREADS, 1, 1), _arguments(tasks[0], dims), pdl=True),)


def _bf16_shapes(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[LaunchShape, ...]:
    """As `_shapes`, a block with twice the columns, and half the bytes of them stored."""
    (launch,) = _bf16_launches(tasks, plan, dims)
    (shape,) = _shapes(tasks, plan, dims)
    across = 2 * THREADS
    return (
        replace(
            shape,
            blocks=launch.grid[0] * launch.grid[1],
            tile=(1, across, 1),
            read_bytes=float(2 * WORD_BYTES * min(across, tasks[0].output.columns) + SECTOR_BYTES),
            written_bytes=shape.written_bytes * BF16_BYTES / WORD_BYTES,
        ),
    )


def _bf16_limits(task: Task, plan: Plan, dims: Dims) -> str | None:
    return not_multiple_of(task.site, (("columns", task.site.columns, 2),))


def _shapes(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[LaunchShape, ...]:
    """A block asks for its row's token, of which it takes a sector; then for both tables, which DRAM has."""
    (launch,) = _launches(tasks, plan, dims)
    rows, columns = tasks[0].output.rows, tasks[0].output.columns
    return (
        LaunchShape(
            blocks=launch.grid[0] * launch.grid[1],
            threads=THREADS,
            tile=(1, THREADS, 1),
            read_bytes=float(2 * WORD_BYTES * min(THREADS, columns) + SECTOR_BYTES),
            written_bytes=float(WORD_BYTES * rows * columns),
            from_dram=True,
            serial=Serial(dram_trips=1),
            has_main_loop=False,
            pdl=launch.pdl,
        ),
    )


KERNELS = (
    Kernel(
        name="embed_gather",
        backend="cuda",
        idea="One thread an element of the sum of a token's and a position's row.",
        covers=("embed",),
        entries=("embed_gather",),
        source="embed/01_gather.cu",
        launches=_launches,
        shapes=_shapes,
    ),
    Kernel(
        name="embed_bf16_gather",
        backend="cuda",
        idea="Two elements a thread of the sum of a token's and a position's row, stored in bf16.",
        covers=("embed",),
        entries=("embed_bf16_gather",),
        source="embed/29_bf16_gather.cu",
        maths=("bf16",),
        limits=_bf16_limits,
        launches=_bf16_launches,
        shapes=_bf16_shapes,
    ),
)
