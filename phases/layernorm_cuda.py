"""The cuda backend's layernorms (`LayernormArgs` of kernels/include/args.cuh)."""

from __future__ import annotations

from math import ceil

from gputop.spec import LAYERNORM_EPS, WORD_BYTES, Dims, Kernel, Launch, Plan, Task, Traffic, View

COVERS = ("ln1", "ln2", "lnf")
THREADS_PER_ROW_BLOCK = 128
WARPS = 4


def _launch(task: Task, entry: str, rows_per_block: int) -> tuple[Launch, ...]:
    x = task.operand("x")
    assert isinstance(x, View)
    args = (
        x,
        task.operand("gain"),
        task.operand("shift"),
        task.output,
        x.rows,
        x.columns,
        x.ld,
        task.output.ld,
        LAYERNORM_EPS,
    )
    return (Launch(entry, (ceil(x.rows / rows_per_block), 1, 1), (THREADS_PER_ROW_BLOCK, 1, 1), args),)


def _traffic(task: Task, wavefronts_per_word: float) -> Traffic:
    """Three reads and a write of every element; the repeats are L1's where the row fits."""
    elements = float(task.output.rows * task.output.columns)
    return Traffic(
        flops=7 * elements,
        l2_bytes=2 * WORD_BYTES * elements,
        l1_wavefronts=4 * elements * wavefronts_per_word,
        pipe="fp32",
    )


def _thread_per_row(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    return _launch(tasks[0], "layernorm_thread_per_row", THREADS_PER_ROW_BLOCK)


def _warp_per_row(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    return _launch(tasks[0], "layernorm_warp_per_row", WARPS)


KERNELS = (
    Kernel(
        name="layernorm_thread_per_row",
        backend="cuda",
        idea="One thread walks a row three times.",
        covers=COVERS,
        entries=("layernorm_thread_per_row",),
        source="layernorm/01_thread_per_row.cu",
        launches=_thread_per_row,
        traffic=lambda tasks, plan, dims: _traffic(tasks[0], 1.0),
    ),
    Kernel(
        name="layernorm_warp_per_row",
        backend="cuda",
        idea="One warp a row, lanes on consecutive columns, sums by shuffle tree.",
        covers=COVERS,
        entries=("layernorm_warp_per_row",),
        source="layernorm/02_warp_per_row.cu",
        launches=_warp_per_row,
        traffic=lambda tasks, plan, dims: _traffic(tasks[0], 1 / 32),
    ),
)
