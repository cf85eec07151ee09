"""The cuda backend's layernorms (`LayernormArgs` of kernels/include/args.cuh).

Two are on the menu only, for comparison: a thread a row, the plain port of what a warp a row does,
and weights ahead, which asks whether products wait for DRAM.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from gputop.model import activations
from gputop.plan.launch_shape import LaunchShape, Serial, WeightAhead
from gputop.plan.types import LAYERNORM_EPS, WORD_BYTES, Dims, Kernel, Launch, Plan, Task, View, WeightView

COVERS = ("ln1", "ln2", "lnf")
THREADS = 128
WARPS = 4
WARP = 32
LINE_BYTES = 128


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


def _shape(launch: Launch, task: Task, rows_per_block: int, serial: Serial) -> LaunchShape:
    """Rows are read once; gain and shift, where they are not folded, once a block."""
    rows, columns = task.output.rows, task.output.columns
    vectors = sum(task.operand(role) is not None for role in ("gain", "shift"))
    return LaunchShape(
        blocks=launch.grid[0],
        threads=launch.block[0],
        tile=(rows_per_block, columns, 1),
        read_bytes=float(WORD_BYTES * columns * (min(rows, rows_per_block) + vectors)),
        written_bytes=float(WORD_BYTES * rows * columns),
        serial=serial,
        has_main_loop=False,
        pdl=launch.pdl,
    )


WALKED_AT_ONCE = 16
"""Elements of a walk that a thread loads together."""


def _walks(task: Task, elements: float) -> Serial:
    """Of a thread that walks `elements` three times: first from L2, then from L1.

    The third walk waits for each element: what it writes might be what it reads next. Gain and shift come
    from DRAM if they are not folded.
    """
    turns = ceil(elements / WALKED_AT_ONCE)
    if task.operand("gain"):
        return Serial(l2_trips=turns, l1_trips=turns, dram_trips=elements)
    return Serial(l2_trips=turns, l1_trips=turns + elements)


TREE_SHUFFLES = 2 * 5
"""Sums over a warp: mean, then squares."""


def _thread_per_row(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    return _launch(tasks[0], "layernorm_thread_per_row", THREADS)


def _thread_per_row_shapes(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[LaunchShape, ...]:
    """A load or store of a warp touches a line a lane."""
    (launch,), columns = _thread_per_row(tasks, plan, dims), tasks[0].output.columns
    shape = _shape(launch, tasks[0], THREADS, _walks(tasks[0], columns))
    return (replace(shape, lookups=4.0 * columns * WARPS, lines_per_load=float(WARP)),)


def _warp_per_row(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    return _launch(tasks[0], "layernorm_warp_per_row", WARPS)


def _warp_per_row_shapes(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[LaunchShape, ...]:
    (launch,), columns = _warp_per_row(tasks, plan, dims), tasks[0].output.columns
    serial = _walks(tasks[0], columns / WARP)
    return (_shape(launch, tasks[0], WARPS, replace(serial, shuffles=TREE_SHUFFLES)),)


MOST_COLUMNS = 1024


def _row_in_registers(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    (launch,) = _launch(tasks[0], "layernorm_row_in_registers", rows_per_block=1, threads=32)
    return (replace(launch, pdl=True),)


def _row_in_registers_shapes(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[LaunchShape, ...]:
    """One wait for the row; where gain and shift are not folded one more a chunk of 128 columns."""
    task = tasks[0]
    (launch,) = _row_in_registers(tasks, plan, dims)
    waits = ceil(task.output.columns / 128) if task.operand("gain") else 0
    return (_shape(launch, task, 1, Serial(dram_trips=waits)),)


WEIGHTS_AFTER = {"ln1": ("wqkv", "wo"), "ln2": ("w1", "w2"), "lnf": ("whead",)}
"""What the products after a layernorm read, two at most."""
LEAST_SENDERS = 128
"""Blocks that send for weights, whatever the rows."""


def _weight_shapes(dims: Dims) -> dict[str, tuple[int, int]]:
    """Outputs and inner axis of every GEMM weight."""
    d, ff = dims.d_model, dims.d_ff
    return {"wqkv": (3 * d, d), "wo": (d, d), "w1": (ff, d), "w2": (d, ff), "whead": (dims.vocab, d)}


def _lines_sent_for(task: Task, dims: Dims) -> tuple[int, ...]:
    """Of each weight that is sent for."""
    shapes = (_weight_shapes(dims)[name] for name in WEIGHTS_AFTER[task.site.phase])
    return tuple(outputs * inner * WORD_BYTES // LINE_BYTES for outputs, inner in shapes)


def _senders(task: Task) -> int:
    """Blocks, of one warp: those with a row, and others that only send."""
    return max(task.output.rows, LEAST_SENDERS)


def _weights_ahead(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    task = tasks[0]
    (plain,) = _row_in_registers(tasks, plan, dims)
    shapes = _weight_shapes(dims)
    names = WEIGHTS_AFTER[task.site.phase]
    layer = 0 if task.site.phase == "lnf" else task.layer
    weights: list[WeightView | None] = [
        activations.weight(name, layer, 0, shapes[name][0], *shapes[name], plan.layout) for name in names
    ]
    absent = 2 - len(names)
    args = (
        *plain.args[:4],
        *weights,
        *[None] * absent,
        *plain.args[4:8],
        *_lines_sent_for(task, dims),
        *[0] * absent,
        plain.args[8],
    )
    grid = (_senders(task), 1, 1)
    return (replace(plain, entry="layernorm_weights_ahead", grid=grid, args=args, pdl=False),)


def _weights_ahead_shapes(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[LaunchShape, ...]:
    """Of a row in registers, and every line of the weights once, which nothing waits for.

    L1 looks up each lane's line by itself.
    """
    task = tasks[0]
    (row,) = _row_in_registers_shapes(tasks, plan, dims)
    senders, lines = _senders(task), _lines_sent_for(task, dims)
    ahead = tuple(
        WeightAhead(name, float(count * LINE_BYTES))
        for name, count in zip(WEIGHTS_AFTER[task.site.phase], lines, strict=True)
    )
    sent_bytes = sum(weight.size_bytes for weight in ahead)
    return (
        replace(
            row,
            blocks=senders,
            read_bytes=row.read_bytes + sent_bytes / senders,
            lookups=sum(lines) / WARP / senders,
            lines_per_load=float(WARP),
            ahead=ahead,
            pdl=False,
        ),
    )


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
        shapes=_thread_per_row_shapes,
    ),
    Kernel(
        name="layernorm_warp_per_row",
        backend="cuda",
        idea="One warp a row, lanes on consecutive columns, sums by shuffle tree.",
        covers=COVERS,
        entries=("layernorm_warp_per_row",),
        source="layernorm/01_warp_per_row.cu",
        launches=_warp_per_row,
        shapes=_warp_per_row_shapes,
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
        shapes=_row_in_registers_shapes,
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
        shapes=_weights_ahead_shapes,
    ),
)
