"""What the launches of the cuda backend's GEMMs ask of the chip, by their tiles."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from typing import Protocol

from gputop.plan.launch_shape import Exchange, LaunchShape, Serial
from gputop.plan.types import WORD_BYTES, Launch, Task

STORE = "pointwise_store"
"""The entry that stores bias, activation and residual behind a product that does not."""
SUMMED_AT_ONCE = 16
"""Parts whose loads go out together where a launch of its own adds them (kernels/include/split_k.cuh)."""


class Asks(Protocol):
    """How one kind of product is divided among blocks."""

    def shape(self, launch: Launch, task: Task) -> LaunchShape:
        """Of a launch for `task`, whose output is that of this one product."""
        ...


@dataclass(frozen=True, slots=True)
class Tiles:
    """A block computes a tile of the output over its share of the inner axis, step by step."""

    tile: tuple[int, int, int]
    """Rows and columns of output, and inner indices of a step."""
    stages: int
    """As of `LaunchShape`."""
    pipe: str = "fp32"
    warp_tile: tuple[float, float] | None = None
    """Rows and columns of operands that one warp (of wgmma: a warpgroup) reads from shared memory for an
    inner index; None: it reads no operand from there.
    """
    readers: int | None = None
    """Such warps that share each inner index; None: all of a block."""
    working_warps: int | None = None
    """As of `LaunchShape`."""
    row_a_warp: bool = False
    """A warp has one row and leaves where there is none, so that padding costs nothing."""
    lines_per_load: float = 1.0
    """Of a thread that loads into its registers (`stages` 0)."""
    a_shared_by: int = 1
    """Blocks of a cluster that get one copy of their activations."""
    w_shared_by: int = 1
    early: bool = False
    """Weights set out for shared memory before the launch ahead has ended."""
    early_steps: int | None = None
    """Those of so many steps, where it is not all that shared memory holds."""
    prefetches: bool = False
    """They set out for L2 then, all of a block's."""
    exchange: Exchange = "none"
    parts_at_once: float = 1.0
    """With `exchange` in memory: parts that the block which comes last waits for together."""
    extra_shared_bytes: float = 0.0
    """Through shared memory besides: what a block's warps tell each other at its end."""
    element_bytes: int = WORD_BYTES
    """Of activations and weights, as they are stored; parts of sums are words."""

    def shape(self, launch: Launch, task: Task) -> LaunchShape:
        """See `Asks`. Of columns and rows beyond the output nothing is read, but all are multiplied."""
        rows, columns, inner = task.output.rows, task.output.columns, task.site.inner
        tile_rows, tile_columns, depth = self.tile
        threads = _threads(launch)
        part_inner = ceil(inner / task.splits)
        steps = ceil(part_inner / depth)
        a_bytes = self.element_bytes * min(tile_rows, rows) * part_inner
        w_bytes = self.element_bytes * min(tile_columns, columns) * part_inner
        # A launch is of whole tiles; a cluster that shares copies may hold some that have no output.
        down, across = ceil(rows / tile_rows), ceil(columns / tile_columns)
        multiplied_rows = rows if self.row_a_warp else down * tile_rows
        warps = min(rows, threads // 32) if self.row_a_warp else threads // 32
        shared_bytes = self._shared_bytes(a_bytes + w_bytes, part_inner, threads // 32)
        read_w_bytes = w_bytes / self.w_shared_by
        held = min(1.0, self.stages / steps)
        early = held if self.early_steps is None else min(held, self.early_steps / steps)
        in_memory = task.splits > 1 and self.exchange != "cluster"
        in_cluster = task.splits > 1 and self.exchange == "cluster"
        return LaunchShape(
            blocks=_blocks(launch),
            threads=threads,
            working_warps=warps if self.row_a_warp else self.working_warps,
            smem_bytes=launch.smem_bytes,
            cluster=launch.cluster,
            tile=(1, tile_columns, depth) if self.row_a_warp else self.tile,
            splits=task.splits,
            steps=steps,
            stages=self.stages,
            step_loads=self._step_loads(threads),
            pipe=self.pipe,
            flops=2.0 * multiplied_rows * across * tile_columns * inner,
            read_bytes=a_bytes / self.a_shared_by + read_w_bytes,
            early_bytes=read_w_bytes * early if self.early else 0.0,
            prefetched_bytes=read_w_bytes if self.prefetches else 0.0,
            distinct_bytes=float(self.element_bytes * (rows + columns) * inner),
            written_bytes=float(WORD_BYTES * task.splits if in_memory else self.element_bytes)
            * rows
            * columns,
            from_dram=True,
            weight_share=tile_columns / (tile_rows + tile_columns) if self.stages == 1 else 1.0,
            shared_bytes=shared_bytes,
            lines_per_load=self.lines_per_load,
            lookups=2.0 * part_inner * warps if self.stages == 0 else 0.0,
            exchange=self.exchange if task.splits > 1 else "none",
            exchange_bytes=float(WORD_BYTES * tile_rows * tile_columns) if in_cluster else 0.0,
            exchange_turns=self._turns(task.splits, threads),
            pdl=launch.pdl,
        )

    def _shared_bytes(self, copied_bytes: float, inner: int, warps: int) -> float:
        if self.stages == 0:
            return 0.0
        readers = warps if self.readers is None else self.readers
        read = self.element_bytes * sum(self.warp_tile) * inner * readers if self.warp_tile else 0.0
        return copied_bytes + read + self.extra_shared_bytes

    def _step_loads(self, threads: int) -> float:
        rows, columns, depth = self.tile
        return {0: 2.0 * depth, 1: (rows + columns) * depth / threads}.get(self.stages, 0.0)

    def _turns(self, splits: int, threads: int) -> int:
        if self.exchange == "memory":
            return ceil(splits / self.parts_at_once)
        rows, columns, _ = self.tile
        return ceil(rows / splits * columns / 4 / threads)


@dataclass(frozen=True, slots=True)
class RowByColumns:
    """One row of activations; a block's warps share the inner axis of 32 columns, a lane's each."""

    at_once: int = 8
    """Inner indices of a warp whose loads go out together."""

    def shape(self, launch: Launch, task: Task) -> LaunchShape:
        """See `Asks`."""
        rows, columns = task.output.rows, task.output.columns
        threads, inner = _threads(launch), ceil(task.site.inner / task.splits)
        return LaunchShape(
            blocks=_blocks(launch),
            threads=threads,
            tile=(1, 32, 1),
            splits=task.splits,
            steps=inner / (threads // 32) / self.at_once,
            step_loads=2.0 * self.at_once,
            pipe="fp32",
            flops=2.0 * rows * ceil(columns / 32) * 32 * task.site.inner,
            read_bytes=float(WORD_BYTES * 33 * inner),
            distinct_bytes=float(WORD_BYTES * (rows + columns) * task.site.inner),
            written_bytes=float(WORD_BYTES * rows * columns),
            from_dram=True,
            weight_share=1.0,
            serial=Serial(barriers=1),
            pdl=launch.pdl,
        )


@dataclass(frozen=True, slots=True)
class RowByWarps:
    """One row of activations; so many warps of a block share a column, along the inner axis."""

    warps: int
    """That share a column."""
    sums: int = 1
    """Over a warp, one after the other."""
    lane_elements: int = 24
    """Of a lane's loads of 16 bytes, which go out together."""
    element_bytes: int = WORD_BYTES

    def shape(self, launch: Launch, task: Task) -> LaunchShape:
        """See `Asks`. The weights of the first turn set out before the launch ahead has ended."""
        rows, columns, inner = task.output.rows, task.output.columns, task.site.inner
        threads = _threads(launch)
        across = threads // 32 // self.warps
        turn = 32 * self.lane_elements * self.warps
        turns = ceil(inner / turn)
        weight_bytes = float(self.element_bytes * inner * across)
        return LaunchShape(
            blocks=_blocks(launch),
            threads=threads,
            tile=(1, across, 4),
            steps=turns,
            pipe="fp32",
            flops=2.0 * rows * columns * inner,
            read_bytes=weight_bytes + self.element_bytes * inner,
            early_bytes=weight_bytes * min(1.0, turn / inner) if launch.pdl else 0.0,
            distinct_bytes=float(self.element_bytes * (rows + columns) * inner),
            written_bytes=float(self.element_bytes * rows * columns),
            from_dram=True,
            serial=Serial(dram_trips=turns - 1, shuffles=5 * self.sums, barriers=1 if self.warps > 1 else 0),
            has_main_loop=False,
            pdl=launch.pdl,
        )


def shapes(
    launches: Iterable[Launch], task: Task, product: str, asks: Asks, *, fused: bool
) -> tuple[LaunchShape, ...]:
    """Of each launch of a task: of the entry `product`, which `asks`; a sum of parts, or the store.

    `task` is one product; a store apart takes the results of all.
    """
    return tuple(
        asks.shape(launch, task)
        if launch.entry == product
        else store_shape(_blocks(launch), _threads(launch), pdl=launch.pdl)
        if launch.entry == STORE
        else _sum_shape(launch, task, fused)
        for launch in launches
    )


def _sum_shape(launch: Launch, task: Task, fused: bool) -> LaunchShape:
    """Adds the parts of an output that each thread has one element of."""
    threads, outputs = _threads(launch), task.output.rows * task.output.columns
    added = min(threads, task.output.columns) * (task.splits + (2 if fused else 0))
    return LaunchShape(
        blocks=_blocks(launch),
        threads=threads,
        read_bytes=float(WORD_BYTES * added),
        written_bytes=float(WORD_BYTES * outputs),
        serial=Serial(l2_trips=ceil(task.splits / SUMMED_AT_ONCE) - 1),
        has_main_loop=False,
        pdl=launch.pdl,
    )


def store_shape(blocks: int, threads: int, *, pdl: bool = False) -> LaunchShape:
    """Bias, activation and residual, an element a thread: its three loads go out together."""
    return LaunchShape(
        blocks=blocks,
        threads=threads,
        read_bytes=float(3 * WORD_BYTES * threads),
        written_bytes=float(WORD_BYTES * threads * blocks),
        has_main_loop=False,
        pdl=pdl,
    )


def _threads(launch: Launch) -> int:
    x, y, z = launch.block
    return x * y * z


def _blocks(launch: Launch) -> int:
    x, y, z = launch.grid
    return x * y * z
