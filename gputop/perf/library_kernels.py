"""What the name of a vendor library's kernel says: its family, its tile, its pipe.

cuBLAS, cuBLASLt and CUTLASS write the tile into the name: `tilesize64x64x32`, `64x64_32x6` (depth and stages
behind the underscore). They are column-major, so that the tile's first figure lies along our columns. Names
come as the driver gives them, mangled or not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import ceil, prod

from gputop.plan.launch_shape import LaunchFacts, LaunchShape
from gputop.plan.types import WORD_BYTES


@dataclass(frozen=True, slots=True)
class LibraryTile:
    """The tile of a product's kernel, in our axes."""

    rows: int
    columns: int
    depth: int
    stages: int | None
    """Steps that shared memory holds; None: the name does not say."""
    pipe: str
    """The ceiling of its arithmetic."""


SM90 = re.compile(r"sm90|gmma|nvjet|hopper", re.IGNORECASE)
REDUCE = re.compile(r"splitKreduce|split_k_kernel|reduce", re.IGNORECASE)
TILES = (
    re.compile(r"tilesize(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)(?:_stage(?P<s>\d+))?"),
    re.compile(r"(?:gemm|GEMM)\w*?_(?P<m>\d+)x(?P<n>\d+)_(?P<k>\d+)x(?P<s>\d+)"),
)
"""Tried in order: xmma's way to write a tile, then CUTLASS's."""
PIPES = (
    (re.compile(r"bf16.*(?:gmma|sm90)|(?:gmma|sm90).*bf16"), "bf16_wgmma"),
    (re.compile(r"tf32.*(?:gmma|sm90)|(?:gmma|sm90).*tf32"), "tf32_wgmma"),
    (re.compile(r"s1688|tf32"), "tf32_mma"),
    (re.compile(r"s16816|bf16"), "bf16_mma"),
    (re.compile(r"simt|ffma|sgemm|f32f32_f32f32"), "fp32"),
)
"""Tried in order; the first whose pattern is found in the name."""


def family(name: str) -> str:
    """`sm90`: made for Hopper's own instructions; `sm80`: everything before."""
    return "sm90" if SM90.search(name) else "sm80"


def adds_parts(name: str) -> bool:
    """Return whether the kernel adds the parts of a product that was divided along its inner axis."""
    return bool(REDUCE.search(name)) and "execute_kernel" not in name


def tile(name: str) -> LibraryTile | None:
    """The tile that a product's kernel has by its name; None where the name says none."""
    found = next((match for pattern in TILES if (match := pattern.search(name))), None)
    pipe = next((pipe for pattern, pipe in PIPES if pattern.search(name)), None)
    if found is None or pipe is None or adds_parts(name):
        return None
    stages = found["s"]
    return LibraryTile(
        rows=int(found["n"]),
        columns=int(found["m"]),
        depth=int(found["k"]),
        stages=int(stages) if stages else None,
        pipe=pipe,
    )


def product_shape(facts: LaunchFacts, rows: int, columns: int, inner: int) -> LaunchShape | None:
    """Return what a library's launch asks for, by its name and its grid; None if these do not say.

    Of one row each weight is read once, whatever the tile.
    """
    if facts.grid is None or facts.block is None:
        return None
    named, grid_blocks = tile(facts.name), prod(facts.grid)
    common = LaunchShape(
        blocks=grid_blocks,
        threads=prod(facts.block),
        smem_bytes=facts.smem_bytes or 0,
        distinct_bytes=float(WORD_BYTES * (rows + columns) * inner),
        written_bytes=float(WORD_BYTES * rows * columns),
        from_dram=True,
        has_main_loop=False,
        library=family(facts.name),
    )
    if named is None:
        once = WORD_BYTES * inner * (columns / grid_blocks + 1)
        return replace(common, read_bytes=once) if rows == 1 else None
    splits = facts.grid[2] if common.library == "sm80" else 1
    down, across = ceil(rows / named.rows), ceil(columns / named.columns)
    stage_bytes = WORD_BYTES * (named.rows + named.columns) * named.depth
    return replace(
        common,
        # Its grid may be padded to whole clusters, or smaller, with several tiles for a block.
        blocks=down * across * splits,
        tile=(named.rows, named.columns, named.depth),
        splits=splits,
        steps=inner / splits / named.depth,
        stages=named.stages or max(2, common.smem_bytes // stage_bytes),
        pipe=named.pipe,
        flops=2.0 * down * named.rows * across * named.columns * inner,
        read_bytes=WORD_BYTES * (named.rows + named.columns) * inner / splits,
        written_bytes=float(WORD_BYTES * rows * columns * splits),
    )


def sum_shape(facts: LaunchFacts, rows: int, columns: int, splits: int) -> LaunchShape:
    """What the launch asks for that adds the parts of a library's product."""
    blocks = prod(facts.grid or (1,))
    outputs = rows * columns
    return LaunchShape(
        blocks=blocks,
        threads=prod(facts.block or (32,)),
        read_bytes=WORD_BYTES * outputs * (splits + 1) / blocks,
        written_bytes=float(WORD_BYTES * outputs),
        has_main_loop=False,
    )
