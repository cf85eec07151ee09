"""The cuda backend's embedding (`EmbedArgs` of kernels/include/args.cuh)."""

from __future__ import annotations

from math import ceil

from gputop.plan.launch_shape import LaunchShape, Serial
from gputop.plan.types import WORD_BYTES, Dims, Kernel, Launch, Plan, Task

THREADS = 256
SECTOR_BYTES = 32


def _launches(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    task, out = tasks[0], tasks[0].output
    tables = (task.operand("tokens"), task.operand("embedding"), task.operand("position"))
    args = (*tables, out, out.rows, dims.seq, out.columns, out.ld)
    grid = (ceil(out.columns / THREADS), out.rows, 1)
    return (Launch("embed_gather", grid, (THREADS, 1, 1), args, pdl=True),)


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
)
