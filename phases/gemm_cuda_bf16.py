"""GEMMs whose weights and activations are bf16 (kernels/gemm/29_bf16_tma.cu, 29_bf16_one_row.cu).

The tiles are those of phases/gemm_cuda_tma.py with elements of two bytes. One row is computed by a warp a
column, which finds the scale of a layernorm before it on the way where it is asked to.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from gputop.model.number_formats import of_buffer
from gputop.phases.gemm_cuda import COVERS, parts
from gputop.phases.gemm_cuda_shapes import RowByWarps, shapes
from gputop.phases.gemm_cuda_tma import Elements, TmaTile, product_kernel
from gputop.phases.gemm_cuda_tma_layernorm import OneRow, kernels_of
from gputop.phases.shape_limits import not_multiple_of
from gputop.plan.launch_shape import LaunchShape
from gputop.plan.types import LAYERNORM_EPS, Dims, Kernel, Launch, Plan, Task, View, WeightView

ELEMENT_BYTES, LOAD_ELEMENTS = 2, 8
"""Of bf16; in a lane's load of 16 bytes."""
ROW_SOURCE, ROW_WARPS = "gemm/29_bf16_one_row.cu", 8
LAYERNORM_ENTRY, LOGITS_ENTRY = "gemm_bf16_one_row_layernorm", "gemm_bf16_one_row_layernorm_logits"

TILES = (
    TmaTile(16, 1, 6, 6, early=2),
    TmaTile(56, 4, 6, 6, early=2),
    TmaTile(112, 8, 4, 4, early=2),
)
LAYERNORM_TILES = (
    TmaTile(40, 1, 6, 6, early=2),
    TmaTile(48, 1, 6, 6, early=2),
    TmaTile(72, 2, 4, 4, early=2),
    TmaTile(96, 2, 4, 4, early=2),
)


def _row_launch(entry: str, rows: View, part: Task) -> Launch:
    """With `OneRowBf16Args`, for a product whose stores are fused."""
    w, residual, output = part.operand("w"), part.operand("residual"), part.output
    assert isinstance(w, WeightView)
    args = (
        rows, w, part.operand("bias"), residual, output,
        output.rows, output.columns, part.site.inner,
        rows.ld, w.ld, residual.ld if residual else 0, output.ld,
        int(part.activation is not None), LAYERNORM_EPS,
    )  # fmt: skip
    grid = (ceil(output.columns / ROW_WARPS), output.rows, 1)
    return Launch(entry, grid, (32 * ROW_WARPS, 1, 1), args, source=ROW_SOURCE, pdl=True)


def _layernorm_row(rows: View, part: Task, plan: Plan) -> Launch:
    """See `OneRow.launch`. Logits are stored as floats."""
    stored = of_buffer(part.output.buffer, plan.math)
    return _row_launch(LAYERNORM_ENTRY if stored == "bf16" else LOGITS_ENTRY, rows, part)


TILE_SOURCE = "gemm/29_bf16_tma.cu"
BF16 = Elements("bf16", ELEMENT_BYTES, "gemm_bf16", TILE_SOURCE, "bf16_wgmma", "bf16")
BF16_ROW = OneRow(
    "gemm_bf16_one_row_{}",
    ROW_SOURCE,
    (LAYERNORM_ENTRY, LOGITS_ENTRY),
    ("bf16",),
    _layernorm_row,
    RowByWarps(1, sums=3, lane_elements=3 * LOAD_ELEMENTS, element_bytes=ELEMENT_BYTES),
)


@dataclass(frozen=True, slots=True)
class Row:
    """An entry for one row of activations."""

    entry: str
    loads: int
    """Of 16 bytes, that a lane has in flight at once."""

    def kernel(self) -> Kernel:
        """Return its record."""
        asks = RowByWarps(1, lane_elements=self.loads * LOAD_ELEMENTS, element_bytes=ELEMENT_BYTES)

        def launches(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[Launch, ...]:
            found = []
            for part in parts(tasks[0], plan, dims):
                a = part.operand("a")
                assert isinstance(a, View)
                found.append(_row_launch(self.entry, a, part))
            return tuple(found)

        def row_shapes(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[LaunchShape, ...]:
            one = parts(tasks[0], plan, dims)[0]
            return shapes(launches(tasks, plan, dims), one, self.entry, asks, fused=True)

        return Kernel(
            name=self.entry,
            backend="cuda",
            idea=f"One row in bf16: a warp a column, {self.loads} loads of 16 bytes a lane in flight.",
            covers=tuple(phase for phase in COVERS if phase != "head"),
            entries=(self.entry,),
            source=ROW_SOURCE,
            maths=("bf16",),
            layouts=("row",),
            fused_stores=True,
            limits=_row_limits,
            launches=launches,
            shapes=row_shapes,
        )


def _row_limits(task: Task, plan: Plan, dims: Dims) -> str | None:
    return BF16.refuses(plan) or not_multiple_of(task.site, (("inner", task.site.inner, LOAD_ELEMENTS),))


KERNELS = (
    *(product_kernel(BF16, tile) for tile in TILES),
    Row("gemm_bf16_one_row", 3).kernel(),
    Row("gemm_bf16_one_row_long", 12).kernel(),
    *kernels_of(BF16, BF16_ROW, TILE_SOURCE, LAYERNORM_TILES),
)
