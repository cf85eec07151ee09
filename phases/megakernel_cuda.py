"""The whole pass as one cooperative launch (`PassArgs` of kernels/include/args.cuh)."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from gputop.phases import attention_cuda, embed_cuda, layernorm_cuda
from gputop.phases.gemm_cuda_shapes import RowByColumns, Tiles
from gputop.phases.shape_limits import not_multiple_of
from gputop.plan.launch_shape import LaunchShape
from gputop.plan.types import (
    LAYERNORM_EPS,
    WORD_BYTES,
    Argument,
    Dims,
    Kernel,
    Launch,
    Plan,
    Scratch,
    Task,
    View,
)

NAME = "megakernel"
COVERS = ("embed", "ln1", "qkv", "attention", "wo", "ln2", "w1", "w2", "lnf", "head")
NEEDS = ("fold", "fused_stores", "fused_qkv", "prune")

TILE, DEPTH, STAGES, THREADS = 64, 32, 5, 128
WARPS = THREADS // 32
D_HEAD = 64
SMEM_BYTES = WORD_BYTES * STAGES * (TILE * (DEPTH + 4) + DEPTH * (TILE + 8))
STAMP_BYTES = 16

BLOCKS = 264
"""Work items that a product is divided into where it can be: two blocks for each of 132 SMs."""
PRODUCT_SPLITS = (11, 8, 5, 3, 2, 1)
LEAST_STEPS = 2
"""Depths that a part of the inner axis has at least."""
ROW_ITEMS = 528
LEAST_ROW_INNER = 64

PRODUCTS = ("qkv", "wo", "w1", "w2", "kv")
ROW_PRODUCTS = ("q@1", "wo@1", "w1@1", "w2@1", "head")


def splits(task: Task) -> int:
    """Parts of the inner axis: as many as keep every block of one wave at work, each of some length.

    A result in several parts has an arrival counter (the source's MAX_ARRIVAL_COUNTERS); more than one part
    there is only of few results, at most half of `BLOCKS` or `ROW_ITEMS`.
    """
    site = task.site
    if site.name in ROW_PRODUCTS:
        results = site.rows * ceil(site.columns / 32)
        return max(1, min(ROW_ITEMS // results, site.inner // LEAST_ROW_INNER))
    most = min(BLOCKS // (site.rows // TILE * (site.columns // TILE)), site.inner // (LEAST_STEPS * DEPTH))
    return next((n for n in PRODUCT_SPLITS if n <= most), 1)


def _launches(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    launch = Launch(
        NAME,
        grid=(0, 0, 0),
        block=(THREADS, 1, 1),
        args=_arguments(tasks, dims),
        smem_bytes=SMEM_BYTES,
        cooperative=True,
    )
    return (launch,)


def _arguments(tasks: tuple[Task, ...], dims: Dims) -> tuple[Argument, ...]:
    """`PassArgs` in order, from the operands of the first task at each site."""
    first: dict[str, Task] = {}
    for task in tasks:
        first.setdefault(task.site.name, task)
    kept = any(isinstance(view, View) and view.slot for task in tasks for _, view in task.inputs)
    parts = {name: splits(first[name]) for name in (*PRODUCTS, *ROW_PRODUCTS)}
    partial = max(
        parts[name] * first[name].output.rows * first[name].output.columns * WORD_BYTES for name in parts
    )

    def weights(*sites: str) -> tuple[Argument, ...]:
        return tuple(first[site].operand(role) for site in sites for role in ("w", "bias"))

    def outputs(*sites: str) -> tuple[Argument, ...]:
        return tuple(first[site].output for site in sites)

    return (
        *(first["embed"].operand(role) for role in ("tokens", "embedding", "position")),
        *weights("qkv", "wo", "w1", "w2", "head"),
        *outputs("embed", "ln1", "qkv", "attention", "wo", "ln2", "w1"),
        *outputs("q@1", "attention@1", "wo@1", "ln2@1", "w1@1", "w2@1", "lnf", "head"),
        Scratch("partial", partial),
        Scratch("stamps", STAMP_BYTES * (len(tasks) + 1)),
        dims.batch,
        dims.seq,
        dims.layers,
        dims.d_model,
        dims.heads,
        dims.d_ff,
        dims.vocab,
        int(kept),
        *parts.values(),
        LAYERNORM_EPS,
        dims.d_head**-0.5,
    )


def _limits(task: Task, plan: Plan, dims: Dims) -> str | None:
    missing = [f"{name}=on" for name in NEEDS if not getattr(plan, name)]
    if missing:
        return f"it needs {', '.join(missing)}"
    if dims.layers < 2:
        return f"it needs a whole layer before the pruned one, and the model has {dims.layers}"
    if dims.d_head != D_HEAD:
        return f"it takes a d_head of {D_HEAD}, and it is {dims.d_head}"
    site = task.site
    if site.name in PRODUCTS:
        sizes = ("rows", site.rows, TILE), ("columns", site.columns, TILE), ("inner", site.inner, DEPTH)
        return not_multiple_of(site, sizes)
    return None


_BUILT_OF: dict[str, Kernel] = {
    kernel.name: kernel for kernel in (*embed_cuda.KERNELS, *layernorm_cuda.KERNELS, *attention_cuda.KERNELS)
}

PRODUCT = Tiles(
    (TILE, TILE, DEPTH),
    STAGES,
    pipe="tf32_wmma",
    warp_tile=(TILE // 2, TILE // 2),
    exchange="memory",
)


def _task_shapes(task: Task, plan: Plan, dims: Dims) -> tuple[LaunchShape, ...]:
    """Of a task as it would be alone, an item a block."""
    site = task.site
    task = replace(task, splits=splits(task)) if site.inner else task
    if site.name in PRODUCTS:
        tiles = ceil(site.rows / TILE) * ceil(site.columns / TILE)
        return (PRODUCT.shape(_items(tiles * task.splits), task),)
    if site.name in ROW_PRODUCTS:
        items = site.rows * ceil(site.columns / 32) * task.splits
        # The machine code that is known is the products': here two loads are waited for in a turn.
        shape = RowByColumns(at_once=16).shape(_items(items), task)
        return (replace(shape, step_loads=2.0, exchange="memory", exchange_turns=1, has_main_loop=False),)
    by_phase = {"embed": "embed_gather", "attention": "attention_flash"}
    built_of = _BUILT_OF[by_phase.get(site.phase, "layernorm_warp_per_row")]
    assert built_of.shapes is not None
    return built_of.shapes((task,), plan, dims)


def _items(count: int) -> Launch:
    return Launch(NAME, (count, 1, 1), (THREADS, 1, 1), (), smem_bytes=SMEM_BYTES)


def _shapes(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[LaunchShape, ...]:
    """Of one task; of several together, nothing is declared."""
    if len(tasks) > 1:
        return ()
    return tuple(_inside(shape) for shape in _task_shapes(tasks[0], plan, dims))


def _inside(shape: LaunchShape) -> LaunchShape:
    """After each barrier the SM's own cache knows nothing of what others wrote: it has to ask L2."""
    far = replace(shape.serial, l2_trips=shape.serial.l2_trips + shape.serial.l1_trips, l1_trips=0.0)
    return replace(shape, serial=far, inside=True, pdl=False, threads=THREADS, smem_bytes=SMEM_BYTES)


KERNELS = (
    Kernel(
        name=NAME,
        backend="cuda",
        idea="The whole pass in one cooperative launch: every SM stays, a grid barrier between tasks.",
        covers=COVERS,
        entries=(NAME,),
        source="megakernel/17_persistent.cu",
        fuses=True,
        stamped=True,
        maths=("tf32",),
        layouts=("transposed",),
        fused_stores=True,
        limits=_limits,
        launches=_launches,
        shapes=_shapes,
    ),
)
