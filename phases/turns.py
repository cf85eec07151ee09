"""Loops of our kernels as their machine code for sm_90 has them, and what they make of a block's time.

Where versions of NVRTC differ the least stands here, so that no term is too high: 13.0 lets four loads go out
together where 13.5 lets one in gemm_small_tiles, the other way round in gemm_split_k.
`gputop list loops` shows such figures; tests/compile/test_turns.py holds this table to what NVRTC compiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gputop.declared import Chain


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a loop, as one warp issues it."""

    instructions: int
    cycles: int
    """That a warp alone takes with memory that answers at once."""
    waits: int = 0
    """How often it stands still until loads have come; loads that go out together are one wait."""

    def chain(self, turns: float, l2_waits: float = 0.0, dram_waits: float = 0.0) -> Chain:
        """Of `turns` turns in a row, of whose waits so many each are for L2 and for DRAM, the rest for L1."""
        near = max(0.0, self.waits - l2_waits - dram_waits)
        return Chain(self.cycles + near * L1_CYCLES, l2_waits, dram_waits).times(turns)


L1_CYCLES = 33
"""From a load's issue to its use when this SM's own cache has the line, as microbenchmarks publish it."""

UNCOALESCED_CYCLES = 32
"""Of one load or store whose 32 lanes lie in 32 lines: L1 looks up one at a time."""

TURNS: Mapping[str, Turn] = {
    "gemm_naive": Turn(58, 167, 3),
    "gemm_coalesced": Turn(87, 185, 3),
    "gemm_tiled": Turn(66, 257, 1),
    "gemm_register_tiled": Turn(624, 1729, 3),
    "gemm_small_tiles": Turn(751, 2323, 4),
    "gemm_split_k": Turn(645, 1945, 3),
    "gemm_sass_fp32_wide": Turn(1140, 1243),
    "gemm_sass_fp32_narrow": Turn(1148, 1240),
    "gemm_sass_fp32_square": Turn(1200, 1330),
    "gemm_wmma_tall": Turn(234, 727),
    "gemm_wmma_short": Turn(263, 694),
    "gemm_w2_assault_tall": Turn(423, 1390),
    "gemm_w2_assault_short": Turn(437, 1120),
    "gemm_one_row": Turn(40, 95, 2),
    "gemm_k_major_tall": Turn(99, 358),
    "gemm_k_major_short": Turn(103, 362),
    "gemm_fp32_k_major_8x4": Turn(1155, 1252),
    "gemm_fp32_k_major_8x8": Turn(1126, 1282),
    "gemm_fp32_k_major_half": Turn(593, 688),
    "gemm_fp32_cluster_8x8": Turn(597, 722),
    "gemm_fp32_cluster_8x6": Turn(470, 601),
    "gemm_fp32_cluster_8x4": Turn(330, 407),
    "gemm_one_row_k_major": Turn(112, 192, 1),
    "gemm_warpgroup_56": Turn(107, 215),
    "gemm_warpgroup_80": Turn(94, 242),
    "gemm_warpgroup_96": Turn(90, 226),
    "gemm_warpgroup_104": Turn(100, 250),
    "gemm_warpgroup_112": Turn(100, 250),
    "megakernel products": Turn(492, 1231),
    "megakernel rows": Turn(79, 228),
    "attention_naive_scores": Turn(92, 219, 4),
    "attention_naive_softmax peak": Turn(38, 117, 2),
    "attention_naive_softmax sum": Turn(58, 117, 1),
    "attention_naive_softmax divide": Turn(73, 291, 4),
    "attention_naive_values": Turn(89, 183, 6),
    "attention_parallel dots": Turn(72, 370, 2),
    "attention_parallel values": Turn(75, 302, 5),
    "attention_flash_64": Turn(607, 1259),
    "attention_flash_128": Turn(1035, 1899),
    "attention_flash_warps": Turn(1761, 2530),
    "attention_flash_tensor": Turn(782, 1152),
    "layernorm_thread_per_row mean": Turn(38, 144, 1),
    "layernorm_thread_per_row squares": Turn(54, 149, 1),
    "layernorm_thread_per_row output": Turn(49, 153, 4),
    "layernorm_thread_per_row folded": Turn(75, 269, 16),
    "layernorm_warp_per_row mean": Turn(37, 126, 2),
    "layernorm_warp_per_row squares": Turn(53, 131, 2),
    "layernorm_warp_per_row output": Turn(46, 148, 4),
    "layernorm_warp_per_row folded": Turn(75, 271, 16),
}
"""By entry, and where it has several loops by what they do."""
