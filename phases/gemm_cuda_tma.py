"""GEMMs whose tiles the copy engine brings (kernels/gemm/22_tma.cu, 23_tma_layernorm.cu).

The latter computes the layernorm before the product too: it gets the row from which no mean and no scale has
been taken. The mean is in the folded weights, the scale it finds on the way.

Tiles that no rung names are the menu: which one leaves no SM idle depends on the columns of a product, and on
where the device places clusters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil

from gputop.model import activations
from gputop.model.weights import BY_NAME
from gputop.phases.gemm_cuda import COVERS, parts, store_launch
from gputop.phases.gemm_cuda_traffic import (
    CLUSTER_CYCLES,
    Blocking,
    instructions_after,
    l2_bytes_after,
    launches_after,
)
from gputop.phases.sass_loops import LOOP_BODIES
from gputop.phases.shape_limits import not_multiple_of, too_short
from gputop.plan.traffic import CriticalPath, Traffic
from gputop.plan.types import (
    LAYERNORM_EPS,
    WORD_BYTES,
    Argument,
    Dims,
    Kernel,
    Launch,
    Plan,
    Task,
    TensorMap,
    View,
    WeightView,
)

ROWS, CHUNK, DEPTH = 64, 32, 64
THREADS, CONSUMER_WARPS = 320, 8
LINE_BYTES = 128
BEHIND_TILES_BYTES = 4096
"""Room for barriers and rows' moments behind the tiles."""
AHEAD = {"qkv": ("w1", 0), "wo": ("w2", 0), "w1": ("wqkv", 1), "w2": ("wo", 1)}
"""Phase -> the weight of the product after the next one, and how many layers on: it is prefetched."""
BEFORE_AND_AFTER_CYCLES = 900
"""Of a warp before its first product and after its last, by the machine code."""
ONE_ROW_SOURCE, ONE_ROW_ENTRY = "gemm/23_one_row_layernorm.cu", "gemm_one_row_layernorm"
ONE_ROW_WARPS = 8
ONE_ROW_CYCLES = 500
"""Of a warp before its loop and after it: three sums by shuffle tree."""


@dataclass(frozen=True, slots=True)
class TmaTile:
    """One entry of a source: 64 rows and so many columns, by the blocks of a cluster."""

    columns: int
    splits: int
    """Blocks that divide K."""
    a_slots: int
    """Pieces of 64 indices of K that shared memory holds, of activations and of weights."""
    w_slots: int
    row_blocks: int = 1
    """Tiles one below the other that share the copies of their weights."""
    column_blocks: int = 1
    """Tiles side by side that share the copies of their activations."""

    @property
    def label(self) -> str:
        shared = (
            f"_{self.row_blocks}x{self.column_blocks}" if self.row_blocks * self.column_blocks > 1 else ""
        )
        return f"{self.columns}_{self.splits}{shared}"

    @property
    def cluster(self) -> int:
        return self.splits * self.row_blocks * self.column_blocks

    @property
    def smem_bytes(self) -> int:
        slots = self.a_slots * ROWS + self.w_slots * self.columns
        return slots * DEPTH * WORD_BYTES + BEHIND_TILES_BYTES

    def clusters(self, rows: int, columns: int) -> int:
        return ceil(rows / (ROWS * self.row_blocks)) * ceil(columns / (self.columns * self.column_blocks))


TILES = (
    TmaTile(16, 1, 6, 10),
    TmaTile(24, 2, 6, 6),
    TmaTile(32, 2, 6, 6, 2, 2),
    TmaTile(72, 2, 6, 6),
    TmaTile(80, 2, 6, 6, 2, 2),
    TmaTile(96, 2, 4, 6),
    TmaTile(104, 2, 4, 6, 2, 2),
    TmaTile(56, 4, 6, 8),
    TmaTile(112, 8, 6, 4),
    TmaTile(112, 8, 6, 4, 2, 1),
)
LAYERNORM_TILES = (
    TmaTile(40, 1, 6, 10, 2, 2),
    TmaTile(72, 2, 6, 6),
    TmaTile(80, 2, 6, 6, 2, 1),
    TmaTile(80, 2, 6, 6, 2, 2),
    TmaTile(96, 2, 4, 6),
    TmaTile(104, 2, 4, 6, 2, 1),
    TmaTile(104, 2, 4, 6, 2, 2),
)


def _arguments(tile: TmaTile, a: View, task: Task, plan: Plan, dims: Dims) -> tuple[Argument, ...]:
    """`TmaGemmArgs` in order."""
    w, bias, residual = (task.operand(role) for role in ("w", "bias", "residual"))
    assert isinstance(w, WeightView)
    site, fused = task.site, plan.fused_stores
    kept = residual if fused else None
    chunks = site.inner // CHUNK
    ahead = _weight_ahead(task, dims)
    return (
        TensorMap(a, (CHUNK, task.output.rows, chunks), (a.ld, CHUNK), (CHUNK, ROWS, DEPTH // CHUNK)),
        TensorMap(w, (CHUNK, site.columns, chunks), (w.ld, CHUNK), (CHUNK, tile.columns, DEPTH // CHUNK)),
        bias if fused else None,
        kept,
        task.output,
        ahead,
        task.output.rows,
        site.columns,
        site.inner,
        kept.ld if kept else 0,
        task.output.ld,
        int(task.activation is not None and fused),
        _lines_ahead(ahead),
        LAYERNORM_EPS,
    )


def _weight_ahead(task: Task, dims: Dims) -> WeightView | None:
    """The whole weight that is prefetched while the task runs; None behind the last layer."""
    if task.site.phase not in AHEAD:
        return None
    name, layers_on = AHEAD[task.site.phase]
    layer = task.layer + layers_on
    if layer >= dims.layers:
        return None
    columns, inner = BY_NAME[name].shape(dims)
    return activations.weight(name, layer, 0, columns, columns, inner, "row")


def _lines_ahead(weight: WeightView | None) -> int:
    return weight.outs * weight.ld * WORD_BYTES // LINE_BYTES if weight else 0


def _tile_launches(
    entry: str, tile: TmaTile, a_of: Callable[[View], View], task: Task, plan: Plan, dims: Dims
) -> tuple[Launch, ...]:
    """`a_of`: what the product reads in place of its own input."""
    launches = []
    for part in parts(task, plan, dims):
        a = part.operand("a")
        assert isinstance(a, View)
        args = _arguments(tile, a_of(a), part, plan, dims)
        launches.append(
            Launch(
                entry,
                (tile.clusters(part.output.rows, part.output.columns) * tile.cluster, 1, 1),
                (THREADS, 1, 1),
                args,
                smem_bytes=tile.smem_bytes,
                cluster=tile.cluster,
                pdl=True,
            )
        )
    return (*launches, *(() if plan.fused_stores else store_launch(task)))


def _limits(tile: TmaTile, task: Task, plan: Plan, dims: Dims) -> str | None:
    site, output = task.site, parts(task, plan, dims)[0].output
    sizes = ("inner", site.inner, CHUNK), ("columns", output.columns, 4)
    return not_multiple_of(site, sizes) or too_short(site, tile.splits, DEPTH)


def _traffic(entry: str, tile: TmaTile, task: Task, products: int, fused: bool) -> Traffic:
    """Panels once for each tile that reads them; parts travel between SMs, not through L2.

    Weights set out before the launch ahead has ended, activations after it. A block's sums are ready when the
    last of its products is: two warpgroups share the tensor cores, which take half a cycle a column, or as
    long as shared memory takes to deliver both operands, 128 bytes a cycle.
    """
    site = task.site
    blocking = Blocking((ROWS, tile.columns, DEPTH), CONSUMER_WARPS, tile.splits, in_cluster=tile.splits > 1)
    tiles = blocking.down(task) * blocking.across(task, products)
    panel_bytes = blocking.panel_bytes(task, products)
    pieces = ceil(site.inner / DEPTH / tile.splits)
    step_cycles = max(tile.columns / 2, 16 + tile.columns / 4)
    end = CriticalPath(BEFORE_AND_AFTER_CYCLES + (3 * CLUSTER_CYCLES if tile.splits > 1 else 0))
    products_end = CriticalPath(pieces * DEPTH / 8 * step_cycles, l2_waits=1) + end
    copies_end = CriticalPath(l2_waits=ceil(pieces / tile.a_slots)) + end
    warp_pieces = tiles * tile.splits * CONSUMER_WARPS / 2 * pieces
    in_flight = min(pieces, tile.a_slots) * ROWS + min(pieces, tile.w_slots) * tile.columns
    return Traffic(
        flops=2.0 * tiles * ROWS * tile.columns * site.inner,
        l2_bytes=panel_bytes * site.inner + l2_bytes_after(blocking, task, fused),
        l1_wavefronts=tiles
        * tile.splits
        * pieces
        * DEPTH
        * (2 * ROWS + 2 * tile.columns)
        * WORD_BYTES
        / LINE_BYTES,
        warp_instructions=warp_pieces * LOOP_BODIES[entry].instructions
        + instructions_after(blocking, task, fused),
        chains=(products_end.times(products), copies_end.times(products)),
        after=launches_after(blocking, task, products, fused),
        bytes_in_flight_per_warp=float(in_flight * DEPTH * WORD_BYTES / CONSUMER_WARPS),
        pipe="tf32_wgmma",
        tile=blocking.tile,
    )


def _kernel(tile: TmaTile) -> Kernel:
    name = f"gemm_tma_{tile.label}"
    shared = f"; {tile.splits} blocks of a cluster share K" if tile.splits > 1 else ""
    return Kernel(
        name=name,
        backend="cuda",
        idea=f"64x{tile.columns} tiles by bulk copies, weights before the launch ahead ends, both operands "
        f"of wgmma in shared memory{shared}.",
        covers=COVERS,
        entries=(name,),
        source="gemm/22_tma.cu",
        maths=("tf32",),
        layouts=("row",),
        fused_stores=True,
        only_arch="sm_90",
        limits=lambda task, plan, dims: _limits(tile, task, plan, dims),
        launches=lambda tasks, plan, dims: _tile_launches(name, tile, lambda a: a, tasks[0], plan, dims),
        traffic=lambda tasks, plan, dims: _traffic(
            name, tile, tasks[0], len(parts(tasks[0], plan, dims)), plan.fused_stores
        ),
    )


PRODUCT_KERNELS = tuple(map(_kernel, TILES))


# A layernorm and the product after it


def _before(layernorm: Task, normalised: View) -> View:
    """What the layernorm reads of the rows that a product reads of its output, all of them or some."""
    x = layernorm.operand("x")
    assert isinstance(x, View)
    if normalised == layernorm.output:
        return x
    # Of some rows only a layernorm of all rows is asked, whose two buffers have the same shape.
    return replace(normalised, buffer=x.buffer, slot=x.slot)


def _is_one_row(task: Task, dims: Dims) -> bool:
    return task.output.rows == dims.batch and dims.seq > 1


def _layernorm_launches(
    name: str, entry: str, tile: TmaTile, tasks: tuple[Task, ...], plan: Plan, dims: Dims
) -> tuple[Launch, ...]:
    layernorm, *products = tasks
    launches: list[Launch] = []
    for product in products:
        if _is_one_row(product, dims):
            launches += _one_row_launches(layernorm, product, plan, dims)
        else:
            launches += _tile_launches(entry, tile, lambda a: _before(layernorm, a), product, plan, dims)
    return tuple(launches)


def _one_row_launches(layernorm: Task, task: Task, plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    launches = []
    for part in parts(task, plan, dims):
        a, w, bias = (part.operand(role) for role in ("a", "w", "bias"))
        assert isinstance(a, View)
        assert isinstance(w, WeightView)
        rows, output, fused = _before(layernorm, a), part.output, plan.fused_stores
        args = (
            rows, w, bias if fused else None, output,
            output.rows, output.columns, task.site.inner, rows.ld, w.ld, output.ld,
            int(task.activation is not None and fused), LAYERNORM_EPS,
        )  # fmt: skip
        grid = (ceil(output.columns / ONE_ROW_WARPS), output.rows, 1)
        block = (32 * ONE_ROW_WARPS, 1, 1)
        launches.append(Launch(ONE_ROW_ENTRY, grid, block, args, source=ONE_ROW_SOURCE, pdl=True))
    return (*launches, *(() if plan.fused_stores else store_launch(task)))


def _layernorm_limits(tile: TmaTile, task: Task, plan: Plan, dims: Dims) -> str | None:
    if not plan.fold:
        return "it needs weights that have the layernorm folded in: fold=on"
    if not task.site.inner or _is_one_row(task, dims):
        return not_multiple_of(task.site, (("columns", task.site.columns, 4),))
    return _limits(tile, task, plan, dims)


def _layernorm_traffic(entry: str, tile: TmaTile, tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> Traffic:
    """Of the widest product: what is said of a launch that does the work."""
    _, *products = tasks
    if all(_is_one_row(task, dims) for task in products):
        return _one_row_traffic(products[-1])
    widest = max(products, key=lambda task: task.output.rows * task.output.columns)
    return _traffic(entry, tile, widest, len(parts(widest, plan, dims)), plan.fused_stores)


def _layernorm_kernel(layernorm: str, product: str, tile: TmaTile) -> Kernel:
    name, entry = f"gemm_tma_{layernorm}_{tile.label}", f"gemm_tma_layernorm_{tile.label}"
    return Kernel(
        name=name,
        backend="cuda",
        idea=f"{layernorm} in the product after it, a row's scale found beside it, 64x{tile.columns} tiles.",
        covers=(layernorm, product),
        entries=(entry,),
        source="gemm/23_tma_layernorm.cu",
        fuses=True,
        maths=("tf32",),
        layouts=("row",),
        fused_stores=True,
        only_arch="sm_90",
        limits=lambda task, plan, dims: _layernorm_limits(tile, task, plan, dims),
        launches=lambda tasks, plan, dims: _layernorm_launches(name, entry, tile, tasks, plan, dims),
        traffic=lambda tasks, plan, dims: _layernorm_traffic(entry, tile, tasks, plan, dims),
    )


def _one_row_kernel(layernorm: str, product: str) -> Kernel:
    name = f"gemm_one_row_{layernorm}"

    def launches(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[Launch, ...]:
        return tuple(launch for task in tasks[1:] for launch in _one_row_launches(tasks[0], task, plan, dims))

    def limits(task: Task, plan: Plan, dims: Dims) -> str | None:
        if not plan.fold:
            return "it needs weights that have the layernorm folded in: fold=on"
        # A row is read 4 floats at a time: the layernorm's columns, which are the product's inner axis.
        site = task.site
        return not_multiple_of(
            site, (("inner", site.inner, 4) if site.inner else ("columns", site.columns, 4),)
        )

    return Kernel(
        name=name,
        backend="cuda",
        idea=f"{layernorm} in the one-row product after it: a warp reads the whole row for its dot product.",
        covers=(layernorm, product),
        entries=(ONE_ROW_ENTRY,),
        source=ONE_ROW_SOURCE,
        fuses=True,
        maths=("fp32", "tf32"),
        layouts=("row",),
        fused_stores=True,
        limits=limits,
        launches=launches,
        traffic=lambda tasks, plan, dims: _one_row_traffic(tasks[-1]),
    )


def _one_row_traffic(task: Task) -> Traffic:
    """A weight once, and the row once for each of its columns' warps, from L2."""
    rows, columns, inner = task.output.rows, task.site.columns, task.site.inner
    loop = LOOP_BODIES[ONE_ROW_ENTRY]
    turns = ceil(inner / (6 * 128))
    return Traffic(
        flops=2.0 * rows * columns * inner + 5.0 * rows * inner,
        l2_bytes=float(WORD_BYTES * rows * columns * (2 * inner + 2)),
        l1_wavefronts=float(rows * columns * turns * 6 * 4 * 2),
        warp_instructions=float(rows * columns * turns * loop.instructions),
        chains=(loop.chain(turns, dram_waits=1) + CriticalPath(ONE_ROW_CYCLES, l2_waits=1),),
        bytes_in_flight_per_warp=float(min(inner, 768) * WORD_BYTES),
        pipe="fp32",
        tile=(1, ONE_ROW_WARPS, 4),
    )


KERNELS = (
    *PRODUCT_KERNELS,
    *(_layernorm_kernel("ln1", "qkv", tile) for tile in LAYERNORM_TILES),
    *(_layernorm_kernel("ln2", "w1", tile) for tile in LAYERNORM_TILES),
    _one_row_kernel("lnf", "head"),
)
