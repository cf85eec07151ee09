"""Main loops that the findings speak of, as NVRTC compiles them for sm_90: `gputop list loops` shows them.

Kept here, since a page is written where there may be no compiler; tests/compile holds them to the kernels.
"""

from __future__ import annotations

from dataclasses import dataclass

FLOPS = {"HMMA.1684.F32.TF32": 1024, "HMMA.1688.F32.TF32": 2048}
"""Of one instruction, all lanes of a warp."""


@dataclass(frozen=True, slots=True)
class MainLoop:
    """What one warp issues in one turn."""

    source: str
    entry: str
    instructions: int
    math: str
    """Opcode that multiplies."""
    math_count: int
    word_loads: int
    """Loads of one word a lane, which do not know that they read shared memory."""
    rounding: int
    """Instructions that round operands to TF32."""

    @property
    def flops_per_instruction(self) -> float:
        return self.math_count * FLOPS[self.math] / self.instructions


WMMA = MainLoop("gemm/09_wmma.cu", "gemm_wmma_tall", 234, "HMMA.1684.F32.TF32", 32, 32, 64)
K_MAJOR = MainLoop("gemm/11_k_major.cu", "gemm_k_major_tall", 99, "HMMA.1688.F32.TF32", 32, 0, 0)
