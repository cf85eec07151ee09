"""GEMMs whose tiles the copy engine brings (kernels/gemm/22_tma.cu, 23_tma_layernorm.cu; in bf16
phases/gemm_cuda_bf16.py).

The latter computes the layernorm before the product too: it gets the row from which no mean and no scale has
been taken. The mean is in the folded weights, the scale it finds on the way.

Tiles that no rung names are the menu: which one leaves no SM idle depends on the columns of a product, and on
where the device places clusters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from typing import Literal

from gputop.model import activations
from gputop.model.weights import BY_NAME
from gputop.phases.gemm_cuda import COVERS, parts, store_launch
from gputop.phases.gemm_cuda_shapes import RowByWarps, Tiles, shapes
from gputop.phases.shape_limits import not_multiple_of, too_short
from gputop.plan.launch_shape import LaunchShape, WeightAhead
from gputop.plan.types import (
    LAYERNORM_EPS,
    WORD_BYTES,
    Argument,
    Dims,
    Kernel,
    Launch,
    Math,
    Plan,
    Task,
    TensorMap,
    View,
    WeightView,
)

ROWS, CHUNK_BYTES, CHUNKS = 64, 128, 2
"""Of a tile; of a swizzled row; chunks of a piece."""
THREADS, CONSUMER_WARPS = 320, 8
LINE_BYTES = 128
BEHIND_TILES_BYTES = 4096
"""Room for barriers and rows' moments behind the tiles."""
AHEAD = {"qkv": ("w1", 0), "wo": ("w2", 0), "w1": ("wqkv", 1), "w2": ("wo", 1)}
"""Phase -> the weight of the product after the next one, and how many layers on: it is prefetched."""
ONE_ROW_SOURCE, ONE_ROW_ENTRY = "gemm/23_one_row_layernorm.cu", "gemm_one_row_layernorm"
ONE_ROW_WARPS = 8


@dataclass(frozen=True, slots=True)
class OneRow:
    """A layernorm and its product for one row: the row before the layernorm is read, and both computed."""

    name: str
    """Of its kernels, `{}` the layernorm."""
    source: str
    entries: tuple[str, ...]
    maths: tuple[Math, ...]
    launch: Callable[[View, Task, Plan], Launch]
    """(the row before its layernorm, product, plan)."""
    asks: RowByWarps


@dataclass(frozen=True, slots=True)
class Elements:
    """What activations and weights are stored in, and the entries that take them."""

    math: Math
    size_bytes: int
    prefix: str
    """Of the entries' names."""
    source: str
    layernorm_source: str
    pipe: str
    map_format: Literal["tf32", "bf16"]
    one_row: OneRow

    @property
    def chunk(self) -> int:
        """Indices of K in a swizzled row."""
        return CHUNK_BYTES // self.size_bytes

    @property
    def depth(self) -> int:
        """Indices of K in a piece."""
        return CHUNKS * self.chunk

    @property
    def least_multiple(self) -> int:
        """Of leading dimensions: 16 bytes."""
        return 16 // self.size_bytes

    def refuses(self, plan: Plan) -> str | None:
        """Return why a plan does not suit: what stores apart from a product stores floats alone."""
        if self.math == "bf16" and not plan.fused_stores:
            return "it writes bias, activation and residual itself: fused_stores=on"
        return None


@dataclass(frozen=True, slots=True)
class TmaTile:
    """One entry of a source: 64 rows and so many columns, by the blocks of a cluster."""

    columns: int
    splits: int
    """Blocks that divide K."""
    a_slots: int
    """Pieces of K that shared memory holds, of activations and of weights."""
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
        return slots * CHUNKS * CHUNK_BYTES + BEHIND_TILES_BYTES

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


def _arguments(
    of: Elements, tile: TmaTile, a: View, task: Task, plan: Plan, dims: Dims
) -> tuple[Argument, ...]:
    """`TmaGemmArgs` in order."""
    w, bias, residual = (task.operand(role) for role in ("w", "bias", "residual"))
    assert isinstance(w, WeightView)
    site, fused = task.site, plan.fused_stores
    kept = residual if fused else None
    ahead = _weight_ahead(task, dims)

    def tensor_map(operand: View | WeightView, rows: int, box_rows: int) -> TensorMap:
        sizes = (of.chunk, rows, site.inner // of.chunk)
        strides, box = (operand.ld, of.chunk), (of.chunk, box_rows, CHUNKS)
        return TensorMap(operand, sizes, strides, box, of.map_format)

    return (
        tensor_map(a, task.output.rows, ROWS),
        tensor_map(w, site.columns, tile.columns),
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
        _lines_ahead(of, ahead),
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


def _lines_ahead(of: Elements, weight: WeightView | None) -> int:
    return weight.outs * weight.ld * of.size_bytes // LINE_BYTES if weight else 0


def _tile_launches(
    of: Elements,
    entry: str,
    tile: TmaTile,
    a_of: Callable[[View], View],
    task: Task,
    plan: Plan,
    dims: Dims,
) -> tuple[Launch, ...]:
    """`a_of`: what the product reads in place of its own input."""
    launches = []
    for part in parts(task, plan, dims):
        a = part.operand("a")
        assert isinstance(a, View)
        args = _arguments(of, tile, a_of(a), part, plan, dims)
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


def _limits(of: Elements, tile: TmaTile, task: Task, plan: Plan, dims: Dims) -> str | None:
    site, output = task.site, parts(task, plan, dims)[0].output
    sizes = ("inner", site.inner, of.chunk), ("columns", output.columns, of.least_multiple)
    return of.refuses(plan) or not_multiple_of(site, sizes) or too_short(site, tile.splits, of.depth)


def _asks(of: Elements, tile: TmaTile) -> Tiles:
    """Two warpgroups take pieces in turn; copies set out as far as shared memory holds them, weights at
    once.
    """
    return Tiles(
        (ROWS, tile.columns, of.depth),
        tile.a_slots,
        pipe=of.pipe,
        element_bytes=of.size_bytes,
        warp_tile=(ROWS, tile.columns),
        readers=1,
        working_warps=CONSUMER_WARPS,
        a_shared_by=tile.column_blocks,
        w_shared_by=tile.row_blocks,
        early=True,
        exchange="cluster",
    )


def _tile_shapes(
    of: Elements,
    launches: tuple[Launch, ...],
    entry: str,
    tile: TmaTile,
    task: Task,
    plan: Plan,
    dims: Dims,
) -> tuple[LaunchShape, ...]:
    """Each launch with the weight that it prefetches for a later product."""
    part = replace(parts(task, plan, dims)[0], splits=tile.splits)
    found = shapes(launches, part, entry, _asks(of, tile), fused=plan.fused_stores)
    weight = _weight_ahead(task, dims)
    if weight is None:
        return found
    ahead = WeightAhead(weight.tensor, float(_lines_ahead(of, weight) * LINE_BYTES))
    return tuple(
        replace(shape, ahead=(ahead,)) if launch.entry == entry else shape
        for launch, shape in zip(launches, found, strict=True)
    )


def product_kernel(of: Elements, tile: TmaTile) -> Kernel:
    """Return the record of a product by one tile."""
    name = f"{of.prefix}_{tile.label}"
    shared = f"; {tile.splits} blocks of a cluster share K" if tile.splits > 1 else ""

    def launches(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[Launch, ...]:
        return _tile_launches(of, name, tile, lambda a: a, tasks[0], plan, dims)

    return Kernel(
        name=name,
        backend="cuda",
        idea=f"64x{tile.columns} tiles by bulk copies, weights before the launch ahead ends, both operands "
        f"of wgmma in shared memory{shared}.",
        covers=COVERS,
        entries=(name,),
        source=of.source,
        maths=(of.math,),
        layouts=("row",),
        fused_stores=True,
        only_arch="sm_90",
        limits=lambda task, plan, dims: _limits(of, tile, task, plan, dims),
        launches=launches,
        shapes=lambda tasks, plan, dims: _tile_shapes(
            of, launches(tasks, plan, dims), name, tile, tasks[0], plan, dims
        ),
    )


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
    of: Elements, entry: str, tile: TmaTile, tasks: tuple[Task, ...], plan: Plan, dims: Dims
) -> tuple[Launch, ...]:
    layernorm, *products = tasks
    launches: list[Launch] = []
    for product in products:
        if _is_one_row(product, dims):
            launches += _one_row_launches(of, layernorm, product, plan, dims)
        else:
            launches += _tile_launches(of, entry, tile, lambda a: _before(layernorm, a), product, plan, dims)
    return tuple(launches)


def _one_row_launches(
    of: Elements, layernorm: Task, task: Task, plan: Plan, dims: Dims
) -> tuple[Launch, ...]:
    launches = []
    for part in parts(task, plan, dims):
        a = part.operand("a")
        assert isinstance(a, View)
        launches.append(of.one_row.launch(_before(layernorm, a), part, plan))
    return (*launches, *(() if plan.fused_stores else store_launch(task)))


def _one_row(rows: View, part: Task, plan: Plan) -> Launch:
    """See `OneRow.launch`."""
    w, bias = part.operand("w"), part.operand("bias")
    assert isinstance(w, WeightView)
    output, fused = part.output, plan.fused_stores
    args = (
        rows, w, bias if fused else None, output,
        output.rows, output.columns, part.site.inner, rows.ld, w.ld, output.ld,
        int(part.activation is not None and fused), LAYERNORM_EPS,
    )  # fmt: skip
    grid = (ceil(output.columns / ONE_ROW_WARPS), output.rows, 1)
    block = (32 * ONE_ROW_WARPS, 1, 1)
    return Launch(ONE_ROW_ENTRY, grid, block, args, source=ONE_ROW_SOURCE, pdl=True)


def _layernorm_limits(of: Elements, tile: TmaTile, task: Task, plan: Plan, dims: Dims) -> str | None:
    if not plan.fold:
        return "it needs weights that have the layernorm folded in: fold=on"
    if not task.site.inner or _is_one_row(task, dims):
        return of.refuses(plan) or not_multiple_of(
            task.site, (("columns", task.site.columns, of.least_multiple),)
        )
    return _limits(of, tile, task, plan, dims)


def _layernorm_shapes(
    of: Elements, entry: str, tile: TmaTile, tasks: tuple[Task, ...], plan: Plan, dims: Dims
) -> tuple[LaunchShape, ...]:
    layernorm, *products = tasks
    found: list[LaunchShape] = []
    for product in products:
        if _is_one_row(product, dims):
            found += _one_row_shapes(of, layernorm, product, plan, dims)
        else:
            launches = _tile_launches(of, entry, tile, lambda a: _before(layernorm, a), product, plan, dims)
            found += _tile_shapes(of, launches, entry, tile, product, plan, dims)
    return tuple(found)


def _one_row_shapes(
    of: Elements, layernorm: Task, task: Task, plan: Plan, dims: Dims
) -> tuple[LaunchShape, ...]:
    launches = _one_row_launches(of, layernorm, task, plan, dims)
    part = parts(task, plan, dims)[0]
    return shapes(launches, part, launches[0].entry, of.one_row.asks, fused=plan.fused_stores)


def layernorm_kernel(of: Elements, layernorm: str, product: str, tile: TmaTile) -> Kernel:
    """Return the record of a layernorm in the product after it."""
    name, entry = f"{of.prefix}_{layernorm}_{tile.label}", f"{of.prefix}_layernorm_{tile.label}"
    return Kernel(
        name=name,
        backend="cuda",
        idea=f"{layernorm} in the product after it, a row's scale found beside it, 64x{tile.columns} tiles.",
        covers=(layernorm, product),
        entries=(entry,),
        source=of.layernorm_source,
        fuses=True,
        maths=(of.math,),
        layouts=("row",),
        fused_stores=True,
        only_arch="sm_90",
        limits=lambda task, plan, dims: _layernorm_limits(of, tile, task, plan, dims),
        launches=lambda tasks, plan, dims: _layernorm_launches(of, entry, tile, tasks, plan, dims),
        shapes=lambda tasks, plan, dims: _layernorm_shapes(of, entry, tile, tasks, plan, dims),
    )


def one_row_kernel(of: Elements, layernorm: str, product: str) -> Kernel:
    """Return the record of a layernorm in the one-row product after it."""

    def launches(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[Launch, ...]:
        return tuple(
            launch for task in tasks[1:] for launch in _one_row_launches(of, tasks[0], task, plan, dims)
        )

    def row_shapes(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[LaunchShape, ...]:
        return tuple(
            shape for task in tasks[1:] for shape in _one_row_shapes(of, tasks[0], task, plan, dims)
        )

    def limits(task: Task, plan: Plan, dims: Dims) -> str | None:
        if not plan.fold:
            return "it needs weights that have the layernorm folded in: fold=on"
        # A row is read 16 bytes at a time: the layernorm's columns, which are the product's inner axis.
        site, multiple = task.site, of.least_multiple
        return of.refuses(plan) or not_multiple_of(
            site, (("inner", site.inner, multiple) if site.inner else ("columns", site.columns, multiple),)
        )

    return Kernel(
        name=of.one_row.name.format(layernorm),
        backend="cuda",
        idea=f"{layernorm} in the one-row product after it: a warp reads the whole row for its dot product.",
        covers=(layernorm, product),
        entries=of.one_row.entries,
        source=of.one_row.source,
        fuses=True,
        maths=of.one_row.maths,
        layouts=("row",),
        fused_stores=True,
        limits=limits,
        launches=launches,
        shapes=row_shapes,
    )


TF32 = Elements(
    math="tf32",
    size_bytes=WORD_BYTES,
    prefix="gemm_tma",
    source="gemm/22_tma.cu",
    layernorm_source="gemm/23_tma_layernorm.cu",
    pipe="tf32_wgmma",
    map_format="tf32",
    one_row=OneRow(
        "gemm_one_row_{}",
        ONE_ROW_SOURCE,
        (ONE_ROW_ENTRY,),
        ("fp32", "tf32"),
        _one_row,
        # Mean, scale and product are three sums over a warp.
        RowByWarps(warps=1, sums=3),
    ),
)

KERNELS = (
    *(product_kernel(TF32, tile) for tile in TILES),
    *(layernorm_kernel(TF32, "ln1", "qkv", tile) for tile in LAYERNORM_TILES),
    *(layernorm_kernel(TF32, "ln2", "w1", tile) for tile in LAYERNORM_TILES),
    one_row_kernel(TF32, "lnf", "head"),
)
