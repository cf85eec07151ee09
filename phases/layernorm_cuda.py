"""The cuda backend's layernorms (`LayernormArgs` of kernels/include/args.cuh).

Two are on the menu only, for comparison: a thread a row, the plain port of what a warp a row does,
and weights ahead, which asks whether products wait for DRAM.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from gputop.model import activations
from gputop.phases.sass_loops import LOOP_BODIES, UNCOALESCED_CYCLES, LoopBody
from gputop.plan.traffic import CriticalPath, Traffic
from gputop.plan.types import LAYERNORM_EPS, WORD_BYTES, Dims, Kernel, Launch, Plan, Task, View, WeightView

COVERS = ("ln1", "ln2", "lnf")
THREADS = 128
WARPS = 4
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


def _traffic(
    task: Task,
    rows_per_block: int,
    wavefronts: float,
    instructions: float,
    chain: CriticalPath,
    in_flight: float,
) -> Traffic:
    """`wavefronts` and `instructions` (of warps) are a row's; of the repeated walks' words L1 serves all.

    Gain and shift, where they are not folded, each block asks L2 for once; each is a FLOP more an element.
    """
    rows, columns = task.output.rows, task.output.columns
    weights = sum(task.operand(role) is not None for role in ("gain", "shift"))
    return Traffic(
        flops=(5.0 + weights) * rows * columns,
        l2_bytes=WORD_BYTES * columns * (2.0 * rows + weights * ceil(rows / rows_per_block)),
        l1_wavefronts=rows * wavefronts,
        warp_instructions=rows * instructions,
        chains=(chain,),
        bytes_in_flight_per_warp=in_flight,
        pipe="fp32",
        tile=(rows_per_block, columns, 1),
    )


SHUFFLE_CYCLES = 27
"""Of a step of a shuffle tree: the shuffle, then an addition."""
TREES = 2 * 5 * SHUFFLE_CYCLES
"""Sums over a warp: mean, then squares."""


def _walks(task: Task, entry: str, steps: float) -> tuple[float, CriticalPath]:
    """Instructions and chain of a warp's three walks over `steps` elements a lane, 16 in a turn.

    The first finds the row in L2, the others in L1. The third waits for each element: what it writes might
    be what it reads next. Gain and shift, where they are not folded, it has from DRAM: four in a turn.
    """
    mean, squares = LOOP_BODIES[f"{entry} mean"], LOOP_BODIES[f"{entry} squares"]
    if task.operand("gain"):
        output, turns = LOOP_BODIES[f"{entry} output"], steps / 4
        third = output.chain(turns, dram_waits=output.waits)
    else:
        output, turns = LOOP_BODIES[f"{entry} folded"], steps / 16
        third = output.chain(turns)
    first_two = mean.chain(steps / 16, l2_waits=mean.waits) + squares.chain(steps / 16)
    instructions = (mean.instructions + squares.instructions) * steps / 16 + output.instructions * turns
    return instructions, first_two + third


def _thread_per_row_traffic(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> Traffic:
    """A load or store of a warp touches 32 lines, one of each row."""
    task = tasks[0]
    columns = task.output.columns
    instructions, chain = _walks(task, "layernorm_thread_per_row", columns)
    accesses = CriticalPath(cycles=4 * UNCOALESCED_CYCLES * columns)
    return _traffic(task, THREADS, 4.0 * columns, instructions / 32, chain + accesses, 16 * 32.0 * 32)


def _warp_per_row_traffic(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> Traffic:
    task = tasks[0]
    columns = task.output.columns
    instructions, chain = _walks(task, "layernorm_warp_per_row", columns / 32)
    return _traffic(
        task, WARPS, 4 * columns / 32, instructions, chain + CriticalPath(cycles=TREES), 8.0 * LINE_BYTES
    )


REGISTER_INSTRUCTIONS = 400
REGISTER_CYCLES = 1250
"""Of a row in registers, of six chunks of its eight: the whole kernel's, which has no loop."""


def _row_in_registers_traffic(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> Traffic:
    """One wait for the row; where gain and shift are not folded one more a chunk of 128 columns."""
    task = tasks[0]
    columns = task.output.columns
    waits = ceil(columns / 128) if task.operand("gain") else 0
    chain = CriticalPath(REGISTER_CYCLES, l2_waits=1, dram_waits=waits)
    return _traffic(task, 1, 2 * columns / 32, REGISTER_INSTRUCTIONS, chain, float(WORD_BYTES * columns))


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
LEAST_SENDERS = 128
"""Blocks that send for weights, whatever the rows."""


SENDING = LoopBody(5, 24)
"""Of the loop that sends for a line a lane, by its machine code for sm_90."""


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


def _weights_ahead_traffic(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> Traffic:
    """Of a row in registers, and every line of the weights once, which nothing waits for.

    Rows are asked for before sending begins, and needed after it: a block waits for the longer of the two.
    L1 looks up each lane's line by itself.
    """
    task = tasks[0]
    row = _row_in_registers_traffic(tasks, plan, dims)
    (walk,) = row.chains
    lines, senders = _lines_sent_for(task, dims), _senders(task)
    turns = sum(ceil(count / (32 * senders)) for count in lines)
    sending_cycles = turns * max(SENDING.cycles, UNCOALESCED_CYCLES)
    sent_bytes = float(sum(lines) * LINE_BYTES)
    vector_bytes = 2 * WORD_BYTES * task.output.columns if task.operand("gain") else 0
    asked_at_once = WORD_BYTES * task.output.rows * task.output.columns + sent_bytes
    assert row.l2_bytes is not None
    assert row.l1_wavefronts is not None
    assert row.warp_instructions is not None
    return replace(
        row,
        dram_bytes=sent_bytes + vector_bytes,
        l2_bytes=row.l2_bytes + sent_bytes,
        l1_wavefronts=row.l1_wavefronts + sum(lines),
        warp_instructions=row.warp_instructions + sum(lines) / 32 * SENDING.instructions,
        chains=(walk, CriticalPath(walk.cycles + sending_cycles, dram_waits=walk.dram_waits)),
        bytes_in_flight_per_warp=asked_at_once / senders,
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
        traffic=_thread_per_row_traffic,
    ),
    Kernel(
        name="layernorm_warp_per_row",
        backend="cuda",
        idea="One warp a row, lanes on consecutive columns, sums by shuffle tree.",
        covers=COVERS,
        entries=("layernorm_warp_per_row",),
        source="layernorm/01_warp_per_row.cu",
        launches=_warp_per_row,
        traffic=_warp_per_row_traffic,
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
        traffic=_row_in_registers_traffic,
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
        traffic=_weights_ahead_traffic,
    ),
)
