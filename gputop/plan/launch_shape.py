"""What a kernel's record declares of each launch: its tile, its steps, its bytes. No time and no cycle
stands here.

The model (`gputop.perf.roofline`) makes times of these by ceilings that are measured. Counts are of the
source, not of the machine code. A fact that nobody declares is 0, None or empty, and its term is then left
out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Exchange = Literal["none", "cluster", "memory"]
"""How the parts of a product that is divided along its inner axis meet inside its own launch."""


@dataclass(frozen=True, slots=True)
class Serial:
    """What one warp does one thing after the other, none of which another warp can do for it."""

    l2_trips: float = 0.0
    """Round trips to L2: loads that go out together are one."""
    dram_trips: float = 0.0
    l1_trips: float = 0.0
    """Waits for what this SM's own cache has."""
    shuffles: float = 0.0
    specials: float = 0.0
    """Divisions, exponentials and roots."""
    barriers: float = 0.0
    """Of the block."""


@dataclass(frozen=True, slots=True)
class WeightAhead:
    """A weight that a launch prefetches for a later one."""

    tensor: str
    size_bytes: float


@dataclass(frozen=True, slots=True)
class LaunchShape:
    """One launch as declared; sizes are of the busiest block unless said otherwise."""

    blocks: int
    threads: int
    """Of a block."""
    working_warps: int | None = None
    """Of a block, that multiply; None: all."""
    smem_bytes: int = 0
    """Dynamic shared memory of a block."""
    cluster: int = 1
    tile: tuple[int, int, int] | None = None
    """Rows and columns of output that a block computes, and inner indices of a step."""
    splits: int = 1
    """Blocks that divide the inner axis of one tile."""
    steps: float = 1.0
    """That a block takes: its share of the inner axis over the tile's depth."""
    stages: int = 0
    """Steps that shared memory holds: 1 waits for its own copies, n has n - 1 on their way meanwhile. 0: each
    thread loads into its registers, and waits by itself."""
    step_loads: float = 0.0
    """Loads of a thread in a step that the step itself waits for (`stages` 0 and 1)."""
    pipe: str | None = None
    """The ceiling of its arithmetic."""
    flops: float = 0.0
    """Of the launch, padding included."""
    read_bytes: float = 0.0
    """That a block asks L2 for."""
    early_bytes: float = 0.0
    """Of those, weights that a dependent launch takes in before it waits for the launch before it."""
    prefetched_bytes: float = 0.0
    """Of those, weights that it has L2 fetch before it waits, to take them in later."""
    distinct_bytes: float | None = None
    """That all blocks together ask for, each byte once. None: no two blocks read the same."""
    written_bytes: float = 0.0
    """Of the launch, its results and its parts."""
    from_dram: bool = False
    """Whether its first loads are of weights."""
    weight_share: float = 0.0
    """Of its later waits, those for weights."""
    shared_bytes: float = 0.0
    """Through shared memory: copied in, and read again for the products."""
    lines_per_load: float = 1.0
    """Lines that the lanes of one load lie in, on average: L1 looks up one in a cycle."""
    lookups: float = 0.0
    """Loads of all warps of a block whose lanes lie in several lines."""
    exchange: Exchange = "none"
    exchange_bytes: float = 0.0
    """Of a block's partial tile."""
    exchange_turns: int = 1
    """Turns in which a thread reads the others' parts and its epilogue's operands."""
    serial: Serial = Serial()
    ahead: tuple[WeightAhead, ...] = ()
    """Weights of later launches that it has L2 fetch, and does not wait for."""
    has_main_loop: bool = True
    """Whether its machine code has one loop of products that takes `steps`, and nothing else that takes
    long.
    """
    pdl: bool = False
    """May start before the launch ahead of it has ended."""
    inside: bool = False
    """A task of a kernel that holds the SMs for several: it begins behind a barrier of the grid, and is no
    launch of its own.
    """
    library: str = ""
    """The family of a library's kernel: nothing of it is ours."""

    @property
    def warps(self) -> int:
        """Of a block, that multiply."""
        return max(1, self.threads // 32) if self.working_warps is None else self.working_warps

    @property
    def l2_bytes(self) -> float:
        """Asked of L2 by all blocks, and written."""
        return self.blocks * self.read_bytes + self.written_bytes


def call_shape(flops: float, pipe: str) -> LaunchShape:
    """A function call on the host, at the ceiling `pipe`."""
    return LaunchShape(blocks=1, threads=1, pipe=pipe, flops=flops)


@dataclass(frozen=True, slots=True)
class CodeFacts:
    """What machine code says of one kernel, whatever its sizes; by `gputop.backends.cuda.compiler`."""

    code_bytes: int
    loop_flops: float = 0.0
    """Of one warp in one turn of its main loop, the loop with most multiply-adds; 0: it has none."""
    loop_instructions: int = 0
    loop_cycles: int = 0
    """That a warp alone takes for a turn, with memory that answers at once."""
    loads_per_wait: float = 1.0
    """Loads of a thread that go out together before it waits for them."""
    outside_cycles: int = 0
    """That a warp alone takes for everything but its main loop, each instruction once."""


@dataclass(frozen=True, slots=True)
class LaunchFacts:
    """One launch as it is on this device; None is unknown."""

    name: str = ""
    """As the driver gives it."""
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    registers: int | None = None
    smem_bytes: int | None = None
    """Static and dynamic."""
    blocks_per_sm: int | None = None
    """That an SM holds at once."""
    clustered_blocks: int | None = None
    """Of all clusters that the device holds at once; None without clusters."""
    code: CodeFacts | None = None


@dataclass(frozen=True, slots=True)
class LaunchInfo:
    """What is known of a site's kernel on this device before it is timed; None is unknown."""

    site: str
    kernel: str
    launches: int
    """In one pass, all instances."""
    library_kernel: str | None = None
    grid: str | None = None
    block: str | None = None
    registers: int | None = None
    smem_bytes: int | None = None
    spill_bytes: int | None = None
    occupancy_theoretical: float | None = None
    """With blocks enough."""
    occupancy_grid: float | None = None
    """That this grid gives an SM."""
    occupancy_limiters: tuple[str, ...] = ()
    waves: float | None = None
    warps_in_flight: float | None = None
    cubin: str | None = None
    blocks: int | None = None
    """Thread blocks of the launch that does the work (its grid as a number)."""
    blocks_per_sm: int | None = None
    """Blocks of that launch that an SM holds at once."""
    each: tuple[LaunchFacts, ...] = ()
    """Every launch of one instance, in order."""
