"""Theoretical occupancy: how many blocks of a launch one SM can hold, and which limits say so.

The arithmetic is that of NVIDIA's occupancy calculator (`cuda_occupancy.h`); a test compiles that
header and compares. It assumes the default split of L1 and shared memory and that a kernel has
opted in to the shared memory it asks for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gputop.perf.gpu_specs import SmLimits, limits
from gputop.util.errors import UsageError


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Blocks and warps of one launch that an SM can hold at once."""

    blocks_per_sm: int
    """0: the launch does not fit at all."""
    warps_per_sm: int
    limiters: tuple[str, ...]
    """Every limit that permits no more than `blocks_per_sm`: `warps`, `blocks`, `registers`,
    `shared memory`, `barriers`, or `block size` for a block larger than any SM takes."""


def theoretical(
    arch: str | int,
    block_threads: int,
    registers: int,
    static_smem_bytes: int = 0,
    dynamic_smem_bytes: int = 0,
    *,
    barriers: int = 0,
    cluster: int = 1,
) -> Occupancy:
    """Occupancy of blocks of `block_threads` threads with `registers` each.

    Shared memory is what the source declares, without the driver's share.
    `barriers` are named barriers of one block (`ptxas -v` prints them); they limit from sm_90 on. With a
    `cluster` the answer is an upper bound, since a cluster's blocks must also find room on neighbouring SMs.

    UsageError: unknown architecture, sizes out of range, or a cluster that the architecture lacks.
    """
    sm = limits(arch)
    _check(sm, block_threads, registers, static_smem_bytes, dynamic_smem_bytes, barriers, cluster)
    allowed = _blocks_by_limit(sm, block_threads, registers, static_smem_bytes + dynamic_smem_bytes, barriers)
    blocks = min(allowed.values())
    return Occupancy(
        blocks_per_sm=blocks,
        warps_per_sm=blocks * math.ceil(block_threads / sm.warp_size),
        limiters=tuple(name for name, limit in allowed.items() if limit == blocks),
    )


def blocks_by_limit(
    arch: str | int, block_threads: int, registers: int, smem_bytes: int, *, barriers: int = 0
) -> dict[str, int]:
    """Return how many blocks an SM could hold by each limit alone (names as in `Occupancy.limiters`).

    Arguments and errors as of `theoretical`, shared memory as a whole.
    """
    sm = limits(arch)
    _check(sm, block_threads, registers, 0, smem_bytes, barriers, 1)
    return _blocks_by_limit(sm, block_threads, registers, smem_bytes, barriers)


def waves(grid_blocks: int, blocks_per_sm: int, sm_count: int, clustered: int | None = None) -> float:
    """Grid over the blocks that the whole device holds at once; below 1 some of it has no work.

    `clustered`: blocks of all the clusters that are resident at once, as the driver says. A cluster lies in
    one GPC, so that these are fewer than SMs times blocks an SM.

    UsageError where no block fits on an SM, or no cluster on the device.
    """
    return grid_blocks / _resident(blocks_per_sm, sm_count, clustered)


def warps_in_flight(
    grid_blocks: int, block_threads: int, blocks_per_sm: int, sm_count: int, clustered: int | None = None
) -> int:
    """Warps on the whole device at once: a full wave of them, or the grid's where it is smaller.

    `clustered` as in `waves`. UsageError where no block fits on an SM, or no cluster on the device.
    """
    resident = min(grid_blocks, _resident(blocks_per_sm, sm_count, clustered))
    return resident * math.ceil(block_threads / 32)


def _resident(blocks_per_sm: int, sm_count: int, clustered: int | None) -> int:
    if blocks_per_sm < 1 or sm_count < 1 or clustered == 0:
        raise UsageError(
            f"No block of this launch is resident: {blocks_per_sm} blocks an SM on {sm_count} SMs."
            " Fewer registers, less shared memory or a smaller block would make it fit."
        )
    return blocks_per_sm * sm_count if clustered is None else clustered


def _check(
    sm: SmLimits,
    block_threads: int,
    registers: int,
    static_smem_bytes: int,
    dynamic_smem_bytes: int,
    barriers: int,
    cluster: int,
) -> None:
    if block_threads < 1:
        raise UsageError(f"A block needs at least 1 thread, got {block_threads}.")
    for what, value in (
        ("registers", registers),
        ("static shared memory", static_smem_bytes),
        ("dynamic shared memory", dynamic_smem_bytes),
        ("barriers", barriers),
    ):
        if value < 0:
            raise UsageError(f"Occupancy: {what} can't be negative, got {value}.")
    if not 1 <= cluster <= sm.max_cluster:
        raise UsageError(f"{sm.arch} takes clusters of 1 to {sm.max_cluster} blocks, got {cluster}.")


def _blocks_by_limit(
    sm: SmLimits, block_threads: int, registers: int, smem_bytes: int, barriers: int
) -> dict[str, int]:
    block_warps = math.ceil(block_threads / sm.warp_size)
    return {
        **_by_threads(sm, block_threads, block_warps),
        "blocks": sm.blocks_per_sm,
        **_by_registers(sm, block_warps, registers),
        "shared memory": _by_smem(sm, smem_bytes),
        **_by_barriers(sm, barriers),
    }


def _by_threads(sm: SmLimits, block_threads: int, block_warps: int) -> dict[str, int]:
    if block_threads > sm.threads_per_block:
        return {"block size": 0}
    return {"warps": sm.warps_per_sm // block_warps}


def _by_registers(sm: SmLimits, block_warps: int, registers: int) -> dict[str, int]:
    """Registers are handed out a warp at a time, from the partition that the warp runs on."""
    if registers == 0:
        return {}
    warp_registers = _round_up(registers * sm.warp_size, sm.register_unit)
    most = _round_up(sm.registers_per_thread * sm.warp_size, sm.register_unit)
    checked = warp_registers * _round_up(block_warps, sm.warp_unit)
    if warp_registers > most or checked > sm.registers_per_block:
        return {"registers": 0}
    partition_warps = sm.registers_per_sm // sm.schedulers // warp_registers
    return {"registers": partition_warps * sm.schedulers // block_warps}


def _by_smem(sm: SmLimits, declared_bytes: int) -> int:
    block_bytes = _round_up(declared_bytes + sm.smem_reserved_bytes, sm.smem_unit_bytes)
    if block_bytes > sm.smem_per_block_optin_bytes + sm.smem_reserved_bytes:
        return 0
    return sm.smem_per_sm_bytes // block_bytes


def _by_barriers(sm: SmLimits, barriers: int) -> dict[str, int]:
    if barriers == 0 or sm.barriers_per_sm is None:
        return {}
    return {"barriers": sm.barriers_per_sm // barriers}


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
