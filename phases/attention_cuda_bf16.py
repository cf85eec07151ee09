"""Attention whose queries, keys, values and results are bf16 (kernels/attention/29_bf16_flash.cu)."""

from __future__ import annotations

from math import ceil

from gputop.phases.attention_cuda import arguments
from gputop.phases.attention_cuda_shapes import FlashTile, queries
from gputop.plan.launch_shape import LaunchShape
from gputop.plan.types import Dims, Kernel, Launch, Plan, Task, TensorMap, View

ENTRY, THREADS = "attention_bf16_flash", 256
HEAD, QUERIES, BOX_KEYS, WARPS = 64, 16, 64, 8
ELEMENT_BYTES = 2
SMEM_BYTES = 116 << 10
"""Over half of what an SM has: no two blocks share one."""
TILE = FlashTile(QUERIES, WARPS // 2, 1, 1, "bf16_mma", ELEMENT_BYTES)
"""Of eight warps two share the 32 keys of a step."""


def _launches(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    task = tasks[0]
    rows = queries(task, dims)

    def tensor_map(role: str, rows: int, box_rows: int) -> TensorMap:
        """One sequence's rows of one head at a time; what lies beyond a sequence arrives as zeros."""
        operand = task.operand(role)
        assert isinstance(operand, View)
        sizes = (HEAD, rows, dims.heads, dims.batch)
        strides = (operand.ld, HEAD, rows * operand.ld)
        return TensorMap(operand, sizes, strides, (HEAD, box_rows, 1, 1), "bf16")

    maps = (
        tensor_map("q", rows, QUERIES),
        tensor_map("k", dims.seq, BOX_KEYS),
        tensor_map("v", dims.seq, BOX_KEYS),
    )
    grid = (ceil(rows / QUERIES), dims.heads, dims.batch)
    args = (*maps, *arguments(task, dims, None))
    return (Launch(ENTRY, grid, (THREADS, 1, 1), args, smem_bytes=SMEM_BYTES, pdl=True),)


def _limits(task: Task, plan: Plan, dims: Dims) -> str | None:
    if dims.d_head != HEAD:
        return f"it takes a d_head of {HEAD}, and it is {dims.d_head}"
    return None


def _shapes(tasks: tuple[Task, ...], plan: Plan, dims: Dims) -> tuple[LaunchShape, ...]:
    return tuple(TILE.shape(launch, tasks[0], dims) for launch in _launches(tasks, plan, dims))


KERNELS = (
    Kernel(
        name=ENTRY,
        backend="cuda",
        idea="Flash attention in bf16: tiles by bulk copies, eight warps share the keys, one block an SM.",
        covers=("attention",),
        entries=(ENTRY,),
        source="attention/29_bf16_flash.cu",
        maths=("bf16",),
        min_arch=90,
        limits=_limits,
        launches=_launches,
        shapes=_shapes,
    ),
)
