"""The cuda backend's embedding (`EmbedArgs` of kernels/include/args.cuh)."""

from __future__ import annotations

from math import ceil

from gputop.plan.traffic import CriticalPath, Traffic
from gputop.plan.types import WORD_BYTES, Dims, Kernel, Launch, Plan, Task

THREADS = 256
INSTRUCTIONS = 56
"""Of a warp, by its machine code."""
SECTOR_BYTES = 32


def _launches(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    task, out = tasks[0], tasks[0].output
    tables = (task.operand("tokens"), task.operand("embedding"), task.operand("position"))
    args = (*tables, out, out.rows, dims.seq, out.columns, out.ld)
    grid = (ceil(out.columns / THREADS), out.rows, 1)
    return (Launch("embed_gather", grid, (THREADS, 1, 1), args, pdl=True),)


def _traffic(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> Traffic:
    """A block asks for its row's token, of which it takes a sector."""
    rows, columns = tasks[0].output.rows, tasks[0].output.columns
    elements = float(rows * columns)
    # The token, then both tables, which DRAM has.
    chain = CriticalPath(cycles=INSTRUCTIONS, l2_waits=1, dram_waits=1)
    return Traffic(
        flops=elements,
        l2_bytes=3 * WORD_BYTES * elements + SECTOR_BYTES * rows * ceil(columns / THREADS),
        l1_wavefronts=4 * elements / 32,
        warp_instructions=INSTRUCTIONS * elements / 32,
        chains=(chain,),
        bytes_in_flight_per_warp=2.0 * WORD_BYTES * 32,
        pipe="fp32",
        tile=(1, THREADS, 1),
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
        traffic=_traffic,
    ),
)
