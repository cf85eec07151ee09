"""The whole pass as one cooperative launch (`PassArgs` of kernels/include/args.cuh)."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from gputop.phases import attention_cuda, embed_cuda, gemm_cuda, layernorm_cuda
from gputop.phases.gemm_cuda_traffic import Blocking, GemmLoop, copy_wavefronts, traffic
from gputop.phases.sass_loops import LOOP_BODIES
from gputop.phases.shape_limits import not_multiple_of
from gputop.plan.traffic import CriticalPath, Traffic
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

BARRIER = CriticalPath(grid_barriers=1)
"""After each task."""
PRODUCT_LOOP = GemmLoop(
    LOOP_BODIES["megakernel products"],
    DEPTH,
    wavefronts=64 + copy_wavefronts(TILE, TILE, DEPTH, WARPS),
    ahead=STAGES - 1,
    around=gemm_cuda.WMMA_AROUND,
)
ROW_LOOP = GemmLoop(LOOP_BODIES["megakernel rows"], 16 * WARPS, wavefronts=32, dram_waits=2, around=400)


def _task_traffic(task: Task, plan: Plan, dims: Dims) -> Traffic:
    """Of a task as it would be alone; a block that has several items of it takes them in turn."""
    site = task.site
    if site.name in PRODUCTS:
        blocking = Blocking((TILE, TILE, DEPTH), WARPS, splits(task), part_waits=1.0)
        return traffic(PRODUCT_LOOP, blocking, "tf32_mma", task, 1, True)
    if site.name in ROW_PRODUCTS:
        blocking = Blocking(
            (1, 32, 1), WARPS, splits(task), part_waits=1 / 8, stores=1, beyond=gemm_cuda.ONE_ROW_BEYOND
        )
        return traffic(ROW_LOOP, blocking, "fp32", task, 1, True)
    by_phase = {"embed": "embed_gather", "attention": "attention_flash"}
    built_of = _BUILT_OF[by_phase.get(site.phase, "layernorm_warp_per_row")]
    assert built_of.traffic is not None
    return built_of.traffic((task,), plan, dims)


def _traffic(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> Traffic:
    """Of one task, its barrier included; of several together, nothing is declared.

    Its tile is left out: the grid is the pass's and says nothing of how a task's items fit it.
    """
    if len(tasks) > 1:
        return Traffic()
    alone = _task_traffic(tasks[0], plan, dims)
    chains = tuple(chain + BARRIER for chain in alone.chains)
    return replace(alone, chains=chains, after=CriticalPath(), tile=None)


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
        traffic=_traffic,
    ),
)
