"""What a phase asks for and what a kernel declares of the chip: counts, from which times are forecast."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Work:
    """What one instance of a phase asks of any machine: FLOPs and compulsory bytes."""

    flops: float
    weight_bytes: float
    in_bytes: float
    out_bytes: float

    def __add__(self, other: Work) -> Work:
        return Work(
            self.flops + other.flops,
            self.weight_bytes + other.weight_bytes,
            self.in_bytes + other.in_bytes,
            self.out_bytes + other.out_bytes,
        )

    def times(self, count: int) -> Work:
        return Work(
            self.flops * count,
            self.weight_bytes * count,
            self.in_bytes * count,
            self.out_bytes * count,
        )


NOTHING = Work(0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """What one block does of which nothing can begin before the thing ahead of it has ended.

    Other blocks beside it make it no shorter. A wait is one round trip: however many loads go out together,
    they are waited for once.
    """

    cycles: float = 0.0
    """Of arithmetic, shared memory and barriers, in SM cycles."""
    l2_waits: float = 0.0
    """Round trips to L2."""
    dram_waits: float = 0.0
    """Round trips to DRAM."""
    grid_barriers: float = 0.0
    """Waits for all blocks of the launch."""

    def __add__(self, other: CriticalPath) -> CriticalPath:
        return CriticalPath(
            self.cycles + other.cycles,
            self.l2_waits + other.l2_waits,
            self.dram_waits + other.dram_waits,
            self.grid_barriers + other.grid_barriers,
        )

    def times(self, count: float) -> CriticalPath:
        return CriticalPath(
            self.cycles * count,
            self.l2_waits * count,
            self.dram_waits * count,
            self.grid_barriers * count,
        )


@dataclass(frozen=True, slots=True)
class Traffic:
    """What one instance of a kernel asks of the chip, as declared by its author; None is unknown."""

    flops: float | None = None
    """As launched, padding and masked work included."""
    dram_bytes: float | None = None
    l2_bytes: float | None = None
    """32-byte sectors asked of L2, in bytes."""
    l1_wavefronts: float | None = None
    warp_instructions: float | None = None
    chains: tuple[CriticalPath, ...] = ()
    """Chains through one block of the launch that does the work, of which the longest counts: where copies
    run ahead of arithmetic, one through each. Launches of one kind in a row are added. Empty: unknown."""
    after: CriticalPath = CriticalPath()
    """Through one block of each launch that follows, added."""
    bytes_in_flight_per_warp: float | None = None
    """Of those that `l2_bytes` counts, how many a warp asks for before it waits."""
    pipe: str | None = None
    """The ceiling that the math uses: `fp32`, `tf32_mma`, `tf32_wgmma`, `bf16_mma`, ..."""
    tile: tuple[int, int, int] | None = None
    """Output tile rows, columns and depth, for the shape factor."""
