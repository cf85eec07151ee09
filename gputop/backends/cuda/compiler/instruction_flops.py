"""What one instruction of machine code multiplies and adds."""

from __future__ import annotations

import re
from collections.abc import Mapping

WARP_FLOPS: Mapping[str, int] = {
    "FFMA": 64,
    "HMMA.1684.": 1024,
    "HMMA.1688.": 2048,
    "HMMA.16816.": 4096,
}
"""Of one instruction of a warp, by the beginning of its opcode: two for each multiply-add."""
WARPGROUP_PRODUCT = re.compile(r"HGMMA\.(\d+)x(\d+)x(\d+)")
WARPGROUP_WARPS = 4


def warp_flops(opcode: str) -> float:
    """Return the flops of one instruction of a warp, two for each multiply-add; 0 of what is none."""
    group = WARPGROUP_PRODUCT.match(opcode)
    if group:
        rows, columns, inner = map(int, group.groups())
        return 2.0 * rows * columns * inner / WARPGROUP_WARPS
    return next((flops for start, flops in WARP_FLOPS.items() if f"{opcode}.".startswith(start)), 0)
