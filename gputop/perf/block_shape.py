"""What a kernel's blocks need of an SM, each need as a knob that can be turned, and its next cliff."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import ceil

from gputop.perf.gpu_specs import SmLimits, limits
from gputop.perf.occupancy import Occupancy, blocks_by_limit, theoretical
from gputop.util.errors import UsageError
from gputop.util.units import size_bytes

SMEM_STEP_BYTES = 1024
REGISTER_STEP = 8
WARP = 32
GRID_STEP = 4
MOST_BLOCKS = 1 << 20
CLIFF_STEPS: Mapping[str, int] = {"registers": 1, "smem_bytes": 256, "threads": WARP}
"""Knob -> step in which a cliff is looked for; the grid has no cliff."""


@dataclass(frozen=True, slots=True)
class BlockShape:
    """What decides how many blocks an SM holds, and how many SMs have one."""

    threads: int
    """Of a block."""
    registers: int
    """Of a thread."""
    smem_bytes: int
    """Of a block, static and dynamic."""
    blocks: int
    """Of the grid."""

    def occupancy(self, arch: str) -> Occupancy | None:
        """Return the occupancy; None if such a block fits on no SM."""
        try:
            found = theoretical(arch, self.threads, self.registers, 0, self.smem_bytes)
        except UsageError:
            return None
        return found if found.blocks_per_sm > 0 else None

    def allowed(self, arch: str) -> dict[str, int]:
        """Return how many blocks an SM could hold by each limit alone; empty for a block of no size."""
        try:
            return blocks_by_limit(arch, self.threads, self.registers, self.smem_bytes)
        except UsageError:
            return {}

    def warps_given(self, arch: str, sm_count: int) -> int:
        """Return the warps that the busiest SM has at once: what the grid gives it, up to what it holds."""
        found = self.occupancy(arch)
        held = found.blocks_per_sm if found else 0
        return min(held, ceil(self.blocks / max(1, sm_count))) * ceil(self.threads / WARP)


@dataclass(frozen=True, slots=True)
class Knob:
    """One field of the shape that can be turned."""

    field: str
    title: str
    limit: str
    """Name of the limit that it could lift, as in `Occupancy.limiters`; empty if it lifts none."""
    step: int
    write: Callable[[int], str]
    least: int
    most: Callable[[SmLimits], int]


KNOBS = (
    Knob(
        "registers", "registers a thread", "registers", REGISTER_STEP, str, 1,
        lambda sm: sm.registers_per_thread,
    ),
    Knob(
        "smem_bytes", "shared memory", "shared memory", SMEM_STEP_BYTES, size_bytes, 0,
        lambda sm: sm.smem_per_block_optin_bytes,
    ),
    Knob("threads", "threads a block", "warps", WARP, str, WARP, lambda sm: sm.threads_per_block),
    Knob("blocks", "blocks of the grid", "", GRID_STEP, str, 1, lambda sm: MOST_BLOCKS),
)  # fmt: skip


def turned(shape: BlockShape, knob: Knob, steps: int, arch: str) -> BlockShape:
    """Return the shape with a knob turned, within what the architecture allows."""
    value = getattr(shape, knob.field) + steps * knob.step
    bounded = max(knob.least, min(value, knob.most(limits(arch))))
    return replace(shape, **{knob.field: bounded})


def next_cliff(shape: BlockShape, field: str, arch: str) -> BlockShape | None:
    """Return the shape with a field lowered until an SM holds one more block, or None."""
    now, step = shape.occupancy(arch), CLIFF_STEPS.get(field)
    if now is None or step is None:
        return None
    for smaller in range(getattr(shape, field) - step, 0, -step):
        trial = replace(shape, **{field: smaller})
        found = trial.occupancy(arch)
        if found is not None and found.blocks_per_sm > now.blocks_per_sm:
            return trial
    return None


FIGURES = (
    "blocks an SM",
    "warps an SM",
    "limited by",
    "waves",
    "SMs without a block",
    "warps this grid gives",
)


def occupancy_figures(shape: BlockShape, arch: str, sm_count: int) -> dict[str, str]:
    """Return what a shape gives the SMs of a device, one text for each of `FIGURES`."""
    found = shape.occupancy(arch)
    if found is None:
        return dict.fromkeys(FIGURES, "does not fit")
    held = found.blocks_per_sm * sm_count
    texts = (
        str(found.blocks_per_sm),
        f"{found.warps_per_sm} of {limits(arch).warps_per_sm}",
        ", ".join(found.limiters) or "nothing",
        f"{shape.blocks / held:.2f}" if held else "unknown",
        str(max(0, sm_count - shape.blocks)),
        f"{shape.warps_given(arch, sm_count)} an SM",
    )
    return dict(zip(FIGURES, texts, strict=True))


def cliff_text(shape: BlockShape, knob: Knob, arch: str) -> str:
    """Return from which value of a knob on an SM holds one more block; nothing if there is none."""
    cliff = next_cliff(shape, knob.field, arch)
    found = cliff.occupancy(arch) if cliff else None
    if cliff is None or found is None:
        return ""
    return f"{found.blocks_per_sm} blocks an SM from {knob.write(getattr(cliff, knob.field))} down"
