"""The cuda backend's layernorms (`LayernormArgs` of kernels/include/args.cuh)."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from gputop import buffers
from gputop.spec import LAYERNORM_EPS, WORD_BYTES, Dims, Kernel, Launch, Plan, Task, Traffic, View, WeightView

COVERS = ("ln1", "ln2", "lnf")
THREADS = 128
WARPS = 4


def _launch(task: Task, entry: str, rows_per_block: int, threads: int = THREADS) -> tuple[Launch, ...]:
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
    return (Launch(entry, (ceil(x.rows / rows_per_block), 1, 1), (threads, 1, 1), args),)


def _traffic(task: Task, walks: int, wavefronts_per_word: float) -> Traffic:
    """`walks` reads and a write of every element; the repeats are L1's where the row fits."""
    elements = float(task.output.rows * task.output.columns)
    return Traffic(
        flops=7 * elements,
        l2_bytes=2 * WORD_BYTES * elements,
        l1_wavefronts=(walks + 1) * elements * wavefronts_per_word,
        pipe="fp32",
    )


def _thread_per_row(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    return _launch(tasks[0], "layernorm_thread_per_row", THREADS)


def _warp_per_row(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    return _launch(tasks[0], "layernorm_warp_per_row", WARPS)


MOST_COLUMNS = 1024


def _row_in_registers(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    (launch,) = _launch(tasks[0], "layernorm_row_in_registers", rows_per_block=1, threads=32)
    return (replace(launch, pdl=True),)


WEIGHTS_AFTER = {"ln1": ("wqkv", "wo"), "ln2": ("w1", "w2"), "lnf": ("whead",)}
"""What the products after a layernorm read, two at most."""
LINE_BYTES = 128
LEAST_SENDERS = 128
"""Blocks that send for weights, whatever the rows."""


def _weight_shapes(dims: Dims) -> dict[str, tuple[int, int]]:
    """Outputs and inner axis of every GEMM weight."""
    d, ff = dims.d_model, dims.d_ff
    return {"wqkv": (3 * d, d), "wo": (d, d), "w1": (ff, d), "w2": (d, ff), "whead": (dims.vocab, d)}


def _weights_ahead(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    task = tasks[0]
    (plain,) = _row_in_registers(tasks, plan, dims)
    shapes = _weight_shapes(dims)
    names = WEIGHTS_AFTER[task.site.phase]
    layer = 0 if task.site.phase == "lnf" else task.layer
    weights: list[WeightView | None] = [
        buffers.weight(name, layer, 0, shapes[name][0], *shapes[name], plan.layout) for name in names
    ]
    lines = [shapes[name][0] * shapes[name][1] * WORD_BYTES // LINE_BYTES for name in names]
    absent = 2 - len(names)
    args = (
        *plain.args[:4],
        *weights,
        *[None] * absent,
        *plain.args[4:8],
        *lines,
        *[0] * absent,
        plain.args[8],
    )
    blocks = max(task.output.rows, LEAST_SENDERS)
    return (replace(plain, entry="layernorm_weights_ahead", grid=(blocks, 1, 1), args=args, pdl=False),)


def _row_in_registers_limits(task: Task, plan: Plan, dims: Dims) -> str | None:
    if task.site.columns % 4 or task.site.columns > MOST_COLUMNS:
        return (
            f"a row in a warp's registers has columns in multiples of 4 up to {MOST_COLUMNS}, "
            f"and {task.site.name} has {task.site.columns}"
        )
    return None


KERNELS = (
    Kernel(
        name="layernorm_thread_per_row",
        backend="cuda",
        idea="One thread walks a row three times.",
        covers=COVERS,
        entries=("layernorm_thread_per_row",),
        source="layernorm/01_thread_per_row.cu",
        launches=_thread_per_row,
        traffic=lambda tasks, plan, dims: _traffic(tasks[0], 3, 1.0),
    ),
    Kernel(
        name="layernorm_warp_per_row",
        backend="cuda",
        idea="One warp a row, lanes on consecutive columns, sums by shuffle tree.",
        covers=COVERS,
        entries=("layernorm_warp_per_row",),
        source="layernorm/02_warp_per_row.cu",
        launches=_warp_per_row,
        traffic=lambda tasks, plan, dims: _traffic(tasks[0], 3, 1 / 32),
    ),
    Kernel(
        name="layernorm_row_in_registers",
        backend="cuda",
        idea="One warp holds a row in registers: read once, all loads in flight.",
        covers=COVERS,
        entries=("layernorm_row_in_registers",),
        source="layernorm/11_row_in_registers.cu",
        limits=_row_in_registers_limits,
        launches=_row_in_registers,
        traffic=lambda tasks, plan, dims: _traffic(tasks[0], 1, 1 / 32),
    ),
    Kernel(
        name="layernorm_weights_ahead",
        backend="cuda",
        idea="A row in registers, and the weights of the two products after it sent for meanwhile.",
        covers=COVERS,
        entries=("layernorm_weights_ahead",),
        source="layernorm/11_weights_ahead.cu",
        limits=_row_in_registers_limits,
        launches=_weights_ahead,
        traffic=lambda tasks, plan, dims: _traffic(tasks[0], 1, 1 / 32),
    ),
)
