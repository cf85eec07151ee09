"""What the cuda backend's GEMMs ask of the chip: from their tiles, their main loops and what ends them."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from gputop.phases.sass_loops import LoopBody
from gputop.plan.traffic import CriticalPath, Traffic
from gputop.plan.types import WORD_BYTES, Task


@dataclass(frozen=True, slots=True)
class GemmLoop:
    """A GEMM's main loop."""

    turn: LoopBody
    inner: int
    """Inner indices that a block gets through in one turn of its warps."""
    wavefronts: float
    """Of L1 and shared memory, of one warp in a turn: bank conflicts and lines apart counted."""
    l2_waits: float = 0.0
    """Of a turn's waits, those that L2 answers, and those that fetch weights from DRAM; the rest L1 does."""
    dram_waits: float = 0.0
    ahead: int = 0
    """Turns whose operands are on their way while one is multiplied. 0: each turn waits for its own."""
    prefetched: bool = False
    """All of a block's weights set out for L2 before its first turn."""
    around: int = 0
    """Cycles of what stands before and after the loop."""
    replays: int = 0
    """Cycles of a turn in which L1 looks up further lines for loads whose lanes lie in several."""
    row_a_warp: bool = False
    """A warp has one row and leaves where there is none, so that padding costs nothing."""

    def chains(self, turns: int) -> tuple[CriticalPath, ...]:
        """Through one block: with copies ahead one through the arithmetic and one from copy to copy."""
        arithmetic = self.turn.chain(turns, self.l2_waits, self.dram_waits)
        arithmetic += CriticalPath(cycles=self.around + self.replays * turns)
        if not self.ahead:
            return (arithmetic,)
        copies = ceil(turns / self.ahead)
        if self.prefetched:
            return arithmetic + CriticalPath(dram_waits=1), CriticalPath(
                self.around, l2_waits=copies - 1, dram_waits=1
            )
        return arithmetic + CriticalPath(dram_waits=1), CriticalPath(self.around, dram_waits=copies)

    @property
    def turns_asked_at_once(self) -> float:
        """Turns' worth of operands that a block has asked for when it waits."""
        return self.ahead or 1 / (self.l2_waits + self.dram_waits)


@dataclass(frozen=True, slots=True)
class Blocking:
    """How a GEMM is divided among blocks."""

    tile: tuple[int, int, int]
    warps: int
    """Of a block."""
    splits: int
    reduces: bool = False
    """Parts are added in a launch of their own."""
    part_waits: float | None = None
    """Round trips to L2 for each part that the block which comes last adds itself."""
    in_cluster: bool = False
    """Parts stay in shared memory, from where the blocks of a cluster add them."""
    stores: int | None = None
    """Outputs of a thread whose residual it waits for one after the other; None: all that it has."""
    beyond: int = 0
    """Columns' worth of words that lanes beyond the last column load, where they load the first one's. The
    others load nothing."""

    @property
    def outputs(self) -> int:
        """Of a thread, in its own store."""
        if self.stores is not None:
            return self.stores
        return max(1, self.tile[0] * self.tile[1] // (32 * self.warps))

    def down(self, task: Task) -> int:
        """Tiles from the first row to the last."""
        return ceil(task.site.rows / self.tile[0])

    def across(self, task: Task, products: int) -> int:
        """Tiles from the first column of each product to its last, of all of them together."""
        return products * ceil(task.site.columns // products / self.tile[1])

    def panel_bytes(self, task: Task, products: int) -> int:
        """Of both operands at one inner index, what all tiles ask for: no more than there is at the edges."""
        across = self.across(task, products)
        at_edge = across > products and task.site.columns // products % self.tile[1]
        columns = task.site.columns + (self.beyond * products if at_edge else 0)
        return WORD_BYTES * (task.site.rows * across + columns * self.down(task))


WAVEFRONTS_PER_LOAD = 2
"""Of 16-byte loads from shared memory where neighbouring lanes share an address."""
SUM_INSTRUCTIONS, SUM_INSTRUCTIONS_A_PART = 70, 69 / 16
"""Of a warp that adds parts (kernels/include/split_k.cuh), by its machine code."""
SUM_CYCLES = 200
STORE_INSTRUCTIONS, STORE_CYCLES = 45, 150
"""Of a warp of kernels/pointwise/01_store.cu."""
CLUSTER_CYCLES = 180
"""Between two SMs of a cluster, as microbenchmarks publish it for Hopper."""
TICKET = CriticalPath(l2_waits=2)
"""A fence until a block's part is seen, then the counter that says who came last."""


def traffic(loop: GemmLoop, blocking: Blocking, pipe: str, task: Task, products: int, fused: bool) -> Traffic:
    """Of one task, which is `products` of them in a row; `fused` stores write bias, activation and residual.

    L2 bytes assume that L1 serves a block's repeated words. Of the product's own launch only the main loop's
    instructions and wavefronts count.
    """
    site = task.site
    rows, columns, depth = blocking.tile
    across = blocking.across(task, products)
    tiles = blocking.down(task) * across
    part_inner = ceil(site.inner / blocking.splits)
    turns = ceil(part_inner / loop.inner)
    asked_inner = min(part_inner, loop.inner * loop.turns_asked_at_once)
    padded_rows = site.rows if loop.row_a_warp else blocking.down(task) * rows
    warps = site.rows * across if loop.row_a_warp else tiles * blocking.splits * blocking.warps
    warp_turns = warps * turns
    panel_bytes = blocking.panel_bytes(task, products)
    end = _own_end(blocking, task, fused)
    return Traffic(
        flops=2.0 * padded_rows * across * columns * site.inner,
        l2_bytes=panel_bytes * site.inner + l2_bytes_after(blocking, task, fused),
        l1_wavefronts=warp_turns * loop.wavefronts,
        warp_instructions=warp_turns * loop.turn.instructions + instructions_after(blocking, task, fused),
        chains=tuple((chain + end).times(products) for chain in loop.chains(turns)),
        after=launches_after(blocking, task, products, fused),
        bytes_in_flight_per_warp=panel_bytes / tiles * asked_inner / blocking.warps,
        pipe=pipe,
        tile=(1, columns, depth) if loop.row_a_warp else blocking.tile,
    )


def _own_end(blocking: Blocking, task: Task, fused: bool) -> CriticalPath:
    """Parts added by the block that comes last, and the kernel's own store."""
    end = CriticalPath()
    if blocking.in_cluster:
        # Parts are there, they are read all at once, and none leaves before all have read.
        end = CriticalPath(3 * CLUSTER_CYCLES)
    elif blocking.splits > 1:
        if blocking.part_waits is None:
            return end
        end = TICKET + CriticalPath(l2_waits=ceil(blocking.part_waits * blocking.splits))
    return end + finish(task, blocking.outputs) if fused else end


def finish(task: Task, outputs: int = 1) -> CriticalPath:
    """Bias, a weight that DRAM has, and the residual of so many outputs in turn; 0 where sent for early."""
    return CriticalPath(
        l2_waits=outputs if task.operand("residual") else 0,
        dram_waits=1 if outputs and task.operand("bias") else 0,
    )


def launches_after(blocking: Blocking, task: Task, products: int, fused: bool) -> CriticalPath:
    """Behind the products: the sum of each one's parts, and one store of all where it is not fused."""
    after = CriticalPath()
    if blocking.reduces:
        after += CriticalPath(SUM_CYCLES, sum_waits(blocking.splits)) + (
            finish(task) if fused else CriticalPath()
        )
    after = after.times(products)
    return after + store_chain(task) if not fused and stores_apart(task) else after


def instructions_after(blocking: Blocking, task: Task, fused: bool) -> float:
    """Of the warps of the launches that follow."""
    of_32_outputs = SUM_INSTRUCTIONS + SUM_INSTRUCTIONS_A_PART * blocking.splits if blocking.reduces else 0.0
    if not fused and stores_apart(task):
        of_32_outputs += STORE_INSTRUCTIONS
    return task.site.rows * task.site.columns / 32 * of_32_outputs


def l2_bytes_after(blocking: Blocking, task: Task, fused: bool) -> float:
    """Of results: parts there and back, the result, what is added to it, and its way through a store apart.

    A bias is read by each block that stores its columns: in a launch of its own that is a block a row.
    """
    site = task.site
    apart = not fused and stores_apart(task)
    trips = 1
    if blocking.splits > 1 and not blocking.in_cluster:
        trips += 2 * blocking.splits
    if apart:
        trips += 2
    if task.operand("residual"):
        trips += 1
    if apart or blocking.reduces:
        blocks_down = site.rows
    else:
        # A cluster's blocks divide a tile's rows among them.
        blocks_a_tile = blocking.splits if blocking.in_cluster else 1
        blocks_down = ceil(site.rows * blocks_a_tile / blocking.tile[0])
    bias_words = blocks_down * site.columns if task.operand("bias") else 0
    return float(WORD_BYTES * (site.rows * site.columns * trips + bias_words))


def copy_wavefronts(rows: int, columns: int, depth: int, warps: int) -> float:
    """Of a warp in a turn: its share of the operands' tiles, 128 bytes at a time into shared memory."""
    return WORD_BYTES * (rows + columns) * depth / 128 / warps


def store_chain(task: Task) -> CriticalPath:
    """Of the launch that stores apart: its loads go out together, and the longest is waited for."""
    return CriticalPath(STORE_CYCLES) + (
        CriticalPath(dram_waits=1) if task.operand("bias") else CriticalPath(l2_waits=1)
    )


def stores_apart(task: Task) -> bool:
    """Whether bias, activation or residual are a launch of their own where they are not fused."""
    return task.activation is not None or any(task.operand(role) is not None for role in ("bias", "residual"))


def sum_waits(parts: int) -> int:
    """Of a thread that adds parts in order, its loop unrolled 16 times, then 8, 4 and 1."""
    sixteens, rest = divmod(parts, 16)
    return 2 * sixteens + rest // 8 + rest % 8 // 4 + rest % 4
