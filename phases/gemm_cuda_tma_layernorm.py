"""A layernorm in the product after it (kernels/gemm/23_tma_layernorm.cu, 23_one_row_layernorm.cu).

The product gets the rows from which no mean and no scale has been taken. The mean is in the folded weights,
the scale it finds on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil

from gputop.phases.gemm_cuda import parts, store_launch
from gputop.phases.gemm_cuda_shapes import RowByWarps, shapes
from gputop.phases.gemm_cuda_tma import TF32, Elements, TmaTile, tile_launches, tile_limits, tile_shapes
from gputop.phases.shape_limits import not_multiple_of
from gputop.plan.launch_shape import LaunchShape
from gputop.plan.types import LAYERNORM_EPS, Dims, Kernel, Launch, Math, Plan, Task, View, WeightView

ONE_ROW_SOURCE, ONE_ROW_ENTRY = "gemm/23_one_row_layernorm.cu", "gemm_one_row_layernorm"
ONE_ROW_WARPS = 8

LAYERNORM_TILES = (
    TmaTile(40, 1, 6, 10, 2, 2),
    TmaTile(72, 2, 6, 6),
    TmaTile(80, 2, 6, 6, 2, 1),
    TmaTile(80, 2, 6, 6, 2, 2),
    TmaTile(96, 2, 4, 6),
    TmaTile(104, 2, 4, 6, 2, 1),
    TmaTile(104, 2, 4, 6, 2, 2),
    TmaTile(72, 2, 6, 6, early=2),
    TmaTile(96, 2, 4, 6, early=2),
)


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
    of: Elements, row: OneRow, entry: str, tile: TmaTile, tasks: tuple[Task, ...], plan: Plan, dims: Dims
) -> tuple[Launch, ...]:
    layernorm, *products = tasks
    launches: list[Launch] = []
    for product in products:
        if _is_one_row(product, dims):
            launches += _one_row_launches(row, layernorm, product, plan, dims)
        else:
            launches += tile_launches(of, entry, tile, lambda a: _before(layernorm, a), product, plan, dims)
    return tuple(launches)


def _one_row_launches(row: OneRow, layernorm: Task, task: Task, plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    launches = []
    for part in parts(task, plan, dims):
        a = part.operand("a")
        assert isinstance(a, View)
        launches.append(row.launch(_before(layernorm, a), part, plan))
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
    return tile_limits(of, tile, task, plan, dims)


def _layernorm_shapes(
    of: Elements, row: OneRow, entry: str, tile: TmaTile, tasks: tuple[Task, ...], plan: Plan, dims: Dims
) -> tuple[LaunchShape, ...]:
    layernorm, *products = tasks
    found: list[LaunchShape] = []
    for product in products:
        if _is_one_row(product, dims):
            found += _one_row_shapes(row, layernorm, product, plan, dims)
        else:
            launches = tile_launches(of, entry, tile, lambda a: _before(layernorm, a), product, plan, dims)
            found += tile_shapes(of, launches, entry, tile, product, plan, dims)
    return tuple(found)


def _one_row_shapes(
    row: OneRow, layernorm: Task, task: Task, plan: Plan, dims: Dims
) -> tuple[LaunchShape, ...]:
    launches = _one_row_launches(row, layernorm, task, plan, dims)
    part = parts(task, plan, dims)[0]
    return shapes(launches, part, launches[0].entry, row.asks, fused=plan.fused_stores)


def layernorm_kernel(
    of: Elements, row: OneRow, source: str, layernorm: str, product: str, tile: TmaTile
) -> Kernel:
    """Return the record of a layernorm in the product after it."""
    name, entry = f"{of.prefix}_{layernorm}_{tile.label}", f"{of.prefix}_layernorm_{tile.label}"
    return Kernel(
        name=name,
        backend="cuda",
        idea=f"{layernorm} in the product after it, a row's scale found beside it, 64x{tile.columns} tiles.",
        covers=(layernorm, product),
        entries=(entry,),
        source=source,
        fuses=True,
        maths=(of.math,),
        layouts=("row",),
        fused_stores=True,
        only_arch="sm_90",
        limits=lambda task, plan, dims: _layernorm_limits(of, tile, task, plan, dims),
        launches=lambda tasks, plan, dims: _layernorm_launches(of, row, entry, tile, tasks, plan, dims),
        shapes=lambda tasks, plan, dims: _layernorm_shapes(of, row, entry, tile, tasks, plan, dims),
    )


def one_row_kernel(of: Elements, row: OneRow, layernorm: str, product: str) -> Kernel:
    """Return the record of a layernorm in the one-row product after it."""

    def launches(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[Launch, ...]:
        return tuple(
            launch for task in tasks[1:] for launch in _one_row_launches(row, tasks[0], task, plan, dims)
        )

    def row_shapes(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[LaunchShape, ...]:
        return tuple(
            shape for task in tasks[1:] for shape in _one_row_shapes(row, tasks[0], task, plan, dims)
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
        name=row.name.format(layernorm),
        backend="cuda",
        idea=f"{layernorm} in the one-row product after it: a warp reads the whole row for its dot product.",
        covers=(layernorm, product),
        entries=row.entries,
        source=row.source,
        fuses=True,
        maths=row.maths,
        layouts=("row",),
        fused_stores=True,
        limits=limits,
        launches=launches,
        shapes=row_shapes,
    )


TF32_ROW = OneRow(
    "gemm_one_row_{}",
    ONE_ROW_SOURCE,
    (ONE_ROW_ENTRY,),
    ("fp32", "tf32"),
    _one_row,
    # Mean, scale and product are three sums over a warp.
    RowByWarps(warps=1, sums=3),
)


def kernels_of(of: Elements, row: OneRow, source: str, tiles: tuple[TmaTile, ...]) -> tuple[Kernel, ...]:
    """Return the records of every layernorm, by these tiles of `source` or for one row."""
    pairs = ("ln1", "qkv"), ("ln2", "w1")
    fused = (layernorm_kernel(of, row, source, *pair, tile) for pair in pairs for tile in tiles)
    return (*fused, one_row_kernel(of, row, "lnf", "head"))


KERNELS = kernels_of(TF32, TF32_ROW, "gemm/23_tma_layernorm.cu", LAYERNORM_TILES)
