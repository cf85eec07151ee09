"""GEMMs whose tiles the copy engine brings (kernels/gemm/22_tma.cu).

With the layernorm before them they are in phases/gemm_cuda_tma_layernorm.py, in bf16 in gemm_cuda_bf16.py.

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
from gputop.phases.gemm_cuda_shapes import Tiles, shapes
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
ROWS_SOURCE = "gemm/35_tma_rows.cu"
PACED_AHEAD = {"qkv": ("wo", 0), "wo": ("w1", 0), "w1": ("w2", 0), "w2": ("wqkv", 1)}
"""The same for paced tiles, which prefetch later: the next product's weight."""


@dataclass(frozen=True, slots=True)
class Elements:
    """What activations and weights are stored in, and the entries that take them."""

    math: Math
    size_bytes: int
    prefix: str
    """Of the entries' names."""
    source: str
    pipe: str
    map_format: Literal["tf32", "bf16"]

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
    early: int | None = None
    """Pieces of weights asked for before the launch ahead has ended (paced); None: all that have a slot."""
    rows: int = ROWS
    """64; or 128, which the warpgroups divide (kernels/gemm/35_tma_rows.cu): paced, and not multicast."""

    @property
    def divides_rows(self) -> bool:
        return self.rows > ROWS

    @property
    def chunks(self) -> int:
        """Of a piece."""
        return 1 if self.divides_rows else CHUNKS

    @property
    def label(self) -> str:
        if self.divides_rows:
            return f"rows_{self.columns}_{self.splits}"
        shared = (
            f"_{self.row_blocks}x{self.column_blocks}" if self.row_blocks * self.column_blocks > 1 else ""
        )
        return f"{self.columns}_{self.splits}{shared}{'' if self.early is None else '_paced'}"

    @property
    def cluster(self) -> int:
        return self.splits * self.row_blocks * self.column_blocks

    @property
    def smem_bytes(self) -> int:
        slots = self.a_slots * self.rows + self.w_slots * self.columns
        # Sums of other blocks lie over the tiles, or beside them.
        received = self.columns * self.rows * WORD_BYTES if self.divides_rows else 0
        return slots * self.chunks * CHUNK_BYTES + received + BEHIND_TILES_BYTES

    def clusters(self, rows: int, columns: int) -> int:
        return ceil(rows / (self.rows * self.row_blocks)) * ceil(
            columns / (self.columns * self.column_blocks)
        )


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
    TmaTile(24, 2, 6, 6, early=2),
    TmaTile(112, 8, 6, 4, early=2),
    TmaTile(32, 4, 6, 6, early=4, rows=128),
    TmaTile(56, 8, 6, 10, early=4, rows=128),
)


def _arguments(
    of: Elements, tile: TmaTile, a: View, task: Task, plan: Plan, dims: Dims
) -> tuple[Argument, ...]:
    """`TmaGemmArgs` in order."""
    w, bias, residual = (task.operand(role) for role in ("w", "bias", "residual"))
    assert isinstance(w, WeightView)
    site, fused = task.site, plan.fused_stores
    kept = residual if fused else None
    ahead = _weight_ahead(tile, task, dims)

    def tensor_map(operand: View | WeightView, rows: int, box_rows: int) -> TensorMap:
        sizes = (of.chunk, rows, site.inner // of.chunk)
        strides, box = (operand.ld, of.chunk), (of.chunk, box_rows, tile.chunks)
        return TensorMap(operand, sizes, strides, box, of.map_format)

    return (
        tensor_map(a, task.output.rows, tile.rows),
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


def _weight_ahead(tile: TmaTile, task: Task, dims: Dims) -> WeightView | None:
    """The whole weight that is prefetched while the task runs; None behind the last layer."""
    ahead = AHEAD if tile.early is None else PACED_AHEAD
    if task.site.phase not in ahead:
        return None
    name, layers_on = ahead[task.site.phase]
    layer = task.layer + layers_on
    if layer >= dims.layers:
        return None
    columns, inner = BY_NAME[name].shape(dims)
    return activations.weight(name, layer, 0, columns, columns, inner, "row")


def _lines_ahead(of: Elements, weight: WeightView | None) -> int:
    return weight.outs * weight.ld * of.size_bytes // LINE_BYTES if weight else 0


def tile_launches(
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


def tile_limits(of: Elements, tile: TmaTile, task: Task, plan: Plan, dims: Dims) -> str | None:
    site, output = task.site, parts(task, plan, dims)[0].output
    sizes = ("inner", site.inner, of.chunk), ("columns", output.columns, of.least_multiple)
    return (
        of.refuses(plan)
        or not_multiple_of(site, sizes)
        or too_short(site, tile.splits, of.chunk * tile.chunks)
    )


def _asks(of: Elements, tile: TmaTile) -> Tiles:
    """Two warpgroups take pieces in turn; copies set out as far as shared memory holds them, weights before
    the launch ahead has ended.
    """
    return Tiles(
        (tile.rows, tile.columns, of.chunk * tile.chunks),
        tile.a_slots,
        pipe=of.pipe,
        element_bytes=of.size_bytes,
        warp_tile=(ROWS, tile.columns),
        readers=2 if tile.divides_rows else 1,
        working_warps=CONSUMER_WARPS,
        a_shared_by=tile.column_blocks,
        w_shared_by=tile.row_blocks,
        early=True,
        early_steps=tile.early,
        exchange="cluster",
    )


def tile_shapes(
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
    weight = _weight_ahead(tile, task, dims)
    if weight is None:
        return found
    ahead = WeightAhead(weight.tensor, float(_lines_ahead(of, weight) * LINE_BYTES))
    return tuple(
        replace(shape, ahead=(ahead,)) if launch.entry == entry else shape
        for launch, shape in zip(launches, found, strict=True)
    )


def _when(tile: TmaTile) -> str:
    return "weights" if tile.early is None else f"{tile.early} pieces of weights"


def product_kernel(of: Elements, tile: TmaTile) -> Kernel:
    """Return the record of a product by one tile."""
    name = f"{of.prefix}_{tile.label}"
    shared = f"; {tile.splits} blocks of a cluster share K" if tile.splits > 1 else ""

    def launches(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[Launch, ...]:
        return tile_launches(of, name, tile, lambda a: a, tasks[0], plan, dims)

    return Kernel(
        name=name,
        backend="cuda",
        idea=f"{tile.rows}x{tile.columns} tiles by bulk copies, {_when(tile)} before the launch ahead ends, "
        f"both operands of wgmma in shared memory{shared}.",
        covers=COVERS,
        entries=(name,),
        source=ROWS_SOURCE if tile.divides_rows else of.source,
        maths=(of.math,),
        layouts=("row",),
        fused_stores=True,
        only_arch="sm_90",
        limits=lambda task, plan, dims: tile_limits(of, tile, task, plan, dims),
        launches=launches,
        shapes=lambda tasks, plan, dims: tile_shapes(
            of, launches(tasks, plan, dims), name, tile, tasks[0], plan, dims
        ),
    )


TF32 = Elements("tf32", WORD_BYTES, "gemm_tma", "gemm/22_tma.cu", "tf32_wgmma", "tf32")

KERNELS = tuple(product_kernel(TF32, tile) for tile in TILES)
