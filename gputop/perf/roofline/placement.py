"""Which SM has most to do: blocks of a grid on the busiest SM, alone and beside the launch before."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from gputop.perf.gpu_specs import SmLimits


@dataclass(frozen=True, slots=True)
class Placement:
    """Blocks of one launch on the SM that has most of them."""

    blocks: int
    """In all."""
    resident: int
    """At once."""
    active_sms: int
    """SMs that have a block at all."""

    @property
    def waves(self) -> int:
        """Times that the SM is filled anew."""
        return ceil(self.blocks / self.resident)


@dataclass(frozen=True, slots=True)
class Footprint:
    """What one block takes of an SM while it is there."""

    threads: int
    registers: int
    """Of a thread."""
    smem_bytes: int


def place(blocks: int, blocks_per_sm: int, sm_count: int, clustered: int | None = None) -> Placement:
    """Blocks go to whichever SM has room, so that the busiest has the mean, rounded up.

    `clustered`: blocks of all the clusters that the device holds at once. A cluster lies in one GPC, so that
    these may be fewer than it would hold of single blocks; the rest then come in further waves.
    """
    most = max(1, ceil(blocks / sm_count))
    if clustered and blocks > clustered:
        resident = max(1, min(ceil(clustered / sm_count), blocks_per_sm))
        return Placement(max(most, ceil(blocks / clustered) * resident), resident, min(clustered, sm_count))
    return Placement(most, min(most, max(1, blocks_per_sm)), min(blocks, sm_count))


def place_beside(
    blocks: int, own: Footprint, before: Footprint, blocks_before: int, sm: SmLimits, sm_count: int
) -> Placement:
    """Blocks of a launch that may start while the one before it still has its blocks on the SMs.

    Those that fit beside start at once. Where the blocks before leave some SMs free and no room on the
    others, the free SMs are filled to what they hold, and the rest wait for blocks to end.
    """
    alone = fits(own, sm)
    before_per_sm = max(1, ceil(blocks_before / sm_count))
    busy_sms = min(sm_count, ceil(blocks_before / before_per_sm))
    beside = fits(own, sm, before, before_per_sm)
    free_sms = sm_count - busy_sms
    plain = place(blocks, alone, sm_count)
    if beside or not free_sms:
        return plain
    packed = min(alone, ceil(blocks / free_sms))
    return Placement(max(plain.blocks, packed), max(plain.resident, packed), plain.active_sms)


def fits(own: Footprint, sm: SmLimits, before: Footprint | None = None, count: int = 0) -> int:
    """Blocks that an SM holds beside `count` blocks of `before`; 0: none."""
    threads, registers, smem = _needs(own, sm)
    taken = _needs(before, sm) if before else (0, 0, 0)
    left_threads = sm.warps_per_sm * sm.warp_size - count * taken[0]
    left_registers = sm.registers_per_sm - count * taken[1]
    left_smem = sm.smem_per_sm_bytes - count * taken[2]
    room = [left_threads // threads, left_smem // smem, sm.blocks_per_sm - count]
    if registers:
        room.append(left_registers // registers)
    return max(0, min(room))


def _needs(block: Footprint, sm: SmLimits) -> tuple[int, int, int]:
    warps = ceil(block.threads / sm.warp_size)
    registers = warps * ceil(block.registers * sm.warp_size / sm.register_unit) * sm.register_unit
    smem = ceil((block.smem_bytes + sm.smem_reserved_bytes) / sm.smem_unit_bytes) * sm.smem_unit_bytes
    return warps * sm.warp_size, registers, smem
