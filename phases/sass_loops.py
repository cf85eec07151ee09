"""Loops of our kernels as their machine code for sm_90 has them, and what they make of a block's time.

Where versions of NVRTC differ the least stands here, so that no term is too high: 13.0 lets four loads go out
together where 13.5 lets one in gemm_small_tiles, the other way round in gemm_split_k.
`gputop list loops` shows such figures; tests/compile/test_turns.py holds this table to what NVRTC compiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gputop.plan.traffic import CriticalPath


@dataclass(frozen=True, slots=True)
class LoopBody:
    """One turn of a loop, as one warp issues it."""

    instructions: int
    cycles: int
    """That a warp alone takes with memory that answers at once."""
    waits: int = 0
    """How often it stands still until loads have come; loads that go out together are one wait."""

    def chain(self, turns: float, l2_waits: float = 0.0, dram_waits: float = 0.0) -> CriticalPath:
        """Of `turns` turns in a row, of whose waits so many each are for L2 and for DRAM, the rest for L1."""
        near = max(0.0, self.waits - l2_waits - dram_waits)
        return CriticalPath(self.cycles + near * L1_CYCLES, l2_waits, dram_waits).times(turns)


L1_CYCLES = 33
"""From a load's issue to its use when this SM's own cache has the line, as microbenchmarks publish it."""

UNCOALESCED_CYCLES = 32
"""Of one load or store whose 32 lanes lie in 32 lines: L1 looks up one at a time."""

LOOP_BODIES: Mapping[str, LoopBody] = {
    "gemm_naive": LoopBody(58, 167, 3),
    "gemm_coalesced": LoopBody(87, 185, 3),
    "gemm_tiled": LoopBody(66, 257, 1),
    "gemm_register_tiled": LoopBody(624, 1729, 3),
    "gemm_small_tiles": LoopBody(751, 2323, 4),
    "gemm_split_k": LoopBody(645, 1945, 3),
    "gemm_sass_fp32_wide": LoopBody(1140, 1243),
    "gemm_sass_fp32_narrow": LoopBody(1148, 1240),
    "gemm_sass_fp32_square": LoopBody(1200, 1330),
    "gemm_wmma_tall": LoopBody(234, 727),
    "gemm_wmma_short": LoopBody(263, 694),
    "gemm_w2_assault_tall": LoopBody(423, 1390),
    "gemm_w2_assault_short": LoopBody(437, 1120),
    "gemm_one_row": LoopBody(40, 95, 2),
    "gemm_k_major_tall": LoopBody(99, 358),
    "gemm_k_major_short": LoopBody(103, 362),
    "gemm_fp32_k_major_8x4": LoopBody(1155, 1252),
    "gemm_fp32_k_major_8x8": LoopBody(1126, 1282),
    "gemm_fp32_k_major_half": LoopBody(593, 688),
    "gemm_fp32_cluster_8x8": LoopBody(597, 722),
    "gemm_fp32_cluster_8x6": LoopBody(470, 601),
    "gemm_fp32_cluster_8x4": LoopBody(330, 407),
    "gemm_fp32_slices_24": LoopBody(488, 606),
    "gemm_fp32_slices_36": LoopBody(691, 807),
    "gemm_fp32_slices_40": LoopBody(756, 874),
    "gemm_fp32_slices_48": LoopBody(890, 1019),
    "gemm_fp32_slices_52": LoopBody(959, 1067),
    "gemm_one_row_k_major": LoopBody(112, 192, 1),
    "gemm_warpgroup_56": LoopBody(107, 215),
    "gemm_warpgroup_80": LoopBody(94, 242),
    "gemm_warpgroup_96": LoopBody(90, 226),
    "gemm_warpgroup_104": LoopBody(100, 250),
    "gemm_warpgroup_112": LoopBody(100, 250),
    "gemm_tma_16_1": LoopBody(104, 588),
    "gemm_tma_24_2": LoopBody(121, 331),
    "gemm_tma_32_2_2x2": LoopBody(129, 339),
    "gemm_tma_72_2": LoopBody(121, 334),
    "gemm_tma_80_2_2x2": LoopBody(129, 331),
    "gemm_tma_96_2": LoopBody(109, 571),
    "gemm_tma_104_2_2x2": LoopBody(146, 673),
    "gemm_tma_56_4": LoopBody(108, 565),
    "gemm_tma_112_8": LoopBody(111, 590),
    "gemm_tma_112_8_2x1": LoopBody(107, 588),
    "gemm_tma_layernorm_40_1_2x2": LoopBody(358, 739),
    "gemm_tma_layernorm_72_2": LoopBody(337, 757),
    "gemm_tma_layernorm_80_2_2x1": LoopBody(351, 763),
    "gemm_tma_layernorm_80_2_2x2": LoopBody(369, 797),
    "gemm_tma_layernorm_96_2": LoopBody(342, 728),
    "gemm_tma_layernorm_104_2_2x1": LoopBody(356, 737),
    "gemm_tma_layernorm_104_2_2x2": LoopBody(374, 753),
    "gemm_one_row_layernorm": LoopBody(164, 243, 2),
    "megakernel products": LoopBody(492, 1231),
    "megakernel rows": LoopBody(79, 228),
    "attention_naive_scores": LoopBody(92, 219, 4),
    "attention_naive_softmax peak": LoopBody(38, 117, 2),
    "attention_naive_softmax sum": LoopBody(58, 117, 1),
    "attention_naive_softmax divide": LoopBody(73, 291, 4),
    "attention_naive_values": LoopBody(89, 183, 6),
    "attention_parallel dots": LoopBody(72, 370, 2),
    "attention_parallel values": LoopBody(75, 302, 5),
    "attention_flash_64": LoopBody(607, 1259),
    "attention_flash_128": LoopBody(1035, 1899),
    "attention_flash_warps": LoopBody(1761, 2530),
    "attention_flash_head": LoopBody(1159, 2966),
    "attention_flash_tensor": LoopBody(782, 1152),
    "attention_flash_tma": LoopBody(548, 1333),
    "layernorm_thread_per_row mean": LoopBody(38, 144, 1),
    "layernorm_thread_per_row squares": LoopBody(54, 149, 1),
    "layernorm_thread_per_row output": LoopBody(49, 153, 4),
    "layernorm_thread_per_row folded": LoopBody(75, 269, 16),
    "layernorm_warp_per_row mean": LoopBody(37, 126, 2),
    "layernorm_warp_per_row squares": LoopBody(53, 131, 2),
    "layernorm_warp_per_row output": LoopBody(46, 148, 4),
    "layernorm_warp_per_row folded": LoopBody(75, 271, 16),
}
"""By entry, and where it has several loops by what they do."""
