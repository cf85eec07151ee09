"""GEMMs of the cuda backend on weights stored [columns, inner]: both operands lie along the inner axis.

`gemm_k_major_*` is in no rung: it is our only tensor-core product for such weights on a device that is not
Hopper, and stands on the menu for routing there, as do the tiles and warps a column that no rung names.
"""

from __future__ import annotations

from dataclasses import dataclass

from gputop.phases.gemm_cuda import Variant, kernel
from gputop.phases.gemm_cuda_shapes import RowByWarps, Tiles
from gputop.plan.types import WORD_BYTES, Kernel

MOST_TILES = 8192
"""Arrival counters of either kernel for split tiles."""
PARTS_AT_ONCE = 2
"""That the block which comes last waits for together."""


def _k_major(height: str, rows: int, stages: int, splits: tuple[int, ...]) -> Variant:
    return Variant(
        entry=f"gemm_k_major_{height}",
        source="gemm/11_k_major.cu",
        idea="Both operands along the inner axis, fragments by ldmatrix; parts added in the same launch.",
        tile=(rows, 64, 32),
        block=(2 * rows, 1, 1),
        asks=Tiles(
            (rows, 64, 32),
            stages,
            pipe="tf32_mma",
            warp_tile=(32, 32),
            prefetches=True,
            exchange="memory",
            parts_at_once=PARTS_AT_ONCE,
        ),
        layout="row",
        maths=("tf32",),
        splits=splits,
        most_tiles=MOST_TILES,
        exact=True,
        smem_bytes=WORD_BYTES * stages * (rows + 64) * 36,
        pdl=True,
    )


@dataclass(frozen=True, slots=True)
class Fp32Tile:
    """One entry of kernels/gemm/11_fp32_k_major.cu: 64 rows, 8 of them a thread's."""

    name: str
    columns: int
    micro_columns: int
    """A thread's columns."""
    groups: int
    """Of warps that compute the same tile, each over its share of every stage."""
    warp_tile: tuple[int, int]
    splits: tuple[int, ...]


FP32_TILES = (
    Fp32Tile("8x4", 64, 4, 1, (32, 32), (2, 4, 5, 8)),
    Fp32Tile("8x8", 64, 8, 2, (64, 32), (1, 2, 3, 4, 5, 8, 11, 16)),
    Fp32Tile("half", 32, 4, 2, (32, 32), (1, 2, 4, 5, 8, 11)),
)


def _fp32_k_major(tile: Fp32Tile) -> Variant:
    rows, depth, stages, warps = 64, 32, 2, 4
    return Variant(
        entry=f"gemm_fp32_k_major_{tile.name}",
        source="gemm/11_fp32_k_major.cu",
        idea=f"fp32 with both operands along the inner axis, 8x{tile.micro_columns} sums; parts added in "
        "the same launch.",
        tile=(rows, tile.columns, depth),
        block=(32 * warps, 1, 1),
        asks=Tiles(
            (rows, tile.columns, depth),
            stages,
            warp_tile=tile.warp_tile,
            readers=warps // tile.groups,
            prefetches=True,
            exchange="memory",
            parts_at_once=PARTS_AT_ONCE,
        ),
        layout="row",
        splits=tile.splits,
        blocks_per_sm=3,
        most_tiles=MOST_TILES,
        exact=True,
        smem_bytes=WORD_BYTES * stages * (rows + tile.columns) * (depth + 4),
        pdl=True,
    )


def _one_row_k_major(warps: int) -> Variant:
    """`warps` of a block's 8 share a column."""
    shared = "One warp a column" if warps == 1 else f"{warps} warps a column, their sums added in order,"
    return Variant(
        entry="gemm_one_row_k_major" + (f"_{warps}" if warps > 1 else ""),
        source="gemm/11_one_row_k_major.cu",
        idea=f"{shared} along the inner axis: for one row, all loads in flight.",
        tile=(1, 8 // warps, 4),
        block=(256, 1, 1),
        asks=RowByWarps(warps),
        layout="row",
        maths=("fp32", "tf32"),
        exact=True,
        any_columns=True,
        pdl=True,
    )


VARIANTS: tuple[Variant, ...] = (
    _k_major("tall", 128, 3, (1, 2, 3, 4, 6, 8, 11)),
    _k_major("short", 64, 4, (1, 2, 3, 4, 5, 8, 11)),
    *map(_fp32_k_major, FP32_TILES),
    *(_one_row_k_major(warps) for warps in (1, 2, 4, 8)),
)

KERNELS: tuple[Kernel, ...] = tuple(kernel(variant) for variant in VARIANTS)
