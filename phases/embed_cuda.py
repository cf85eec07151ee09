"""The cuda backend's embedding (`EmbedArgs` of kernels/include/args.cuh)."""

from __future__ import annotations

from math import ceil

from gputop.spec import WORD_BYTES, Dims, Kernel, Launch, Plan, Task, Traffic

THREADS = 256


def _launches(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    task, out = tasks[0], tasks[0].output
    tables = (task.operand("tokens"), task.operand("embedding"), task.operand("position"))
    args = (*tables, out, out.rows, dims.seq, out.columns, out.ld)
    grid = (ceil(out.columns / THREADS), out.rows, 1)
    return (Launch("embed_gather", grid, (THREADS, 1, 1), args, pdl=True),)


def _traffic(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> Traffic:
    elements = float(tasks[0].output.rows * tasks[0].output.columns)
    return Traffic(
        flops=elements, l2_bytes=3 * WORD_BYTES * elements, l1_wavefronts=3 * elements / 32, pipe="fp32"
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
