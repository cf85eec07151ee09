"""What a library's kernel is, by the names that cuBLAS and cuBLASLt have on an H200."""

from __future__ import annotations

import pytest

from gputop.perf.library_kernels import LibraryTile, adds_parts, family, tile

HOPPER = (
    "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x64x32_warpgroupsize1x1x1_execute_segment_k_off_kernel"
)
CUTLASS = "_ZN7cutlass7Kernel2I51cutlass_80_tensorop_s1688gemm_64x128_32x6_nn_align4EEvNT_6ParamsE"
SIMT = "_ZN7cutlass7Kernel2I42cutlass_80_simt_sgemm_128x64_8x5_nn_align1EEvNT_6ParamsE"
FFMA = "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_execute_kernel__5x"
FFMA_PARTS = FFMA.replace("execute_kernel", "execute_split_k_kernel")
PARTS = "_ZN8cublasLt19splitKreduce_kernelILi32ELi16EiffffLb0EfffLb1EEEvNS_18cublasSplitKParams"
GEMV = "_ZN8internal5gemvx6kernelIiiffffLb0ELb1ELb0ELb0ELi7ELb0E18cublasGemvParamsEx"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (HOPPER, LibraryTile(rows=64, columns=128, depth=32, stages=None, pipe="tf32_wgmma")),
        (CUTLASS, LibraryTile(rows=128, columns=64, depth=32, stages=6, pipe="tf32_mma")),
        (SIMT, LibraryTile(rows=64, columns=128, depth=8, stages=5, pipe="fp32")),
        (FFMA, LibraryTile(rows=64, columns=64, depth=8, stages=3, pipe="fp32")),
        (FFMA_PARTS, None),
        (PARTS, None),
        (GEMV, None),
        ("some_kernel", None),
    ],
)
def test_tiles_are_read_from_names(name: str, expected: LibraryTile | None) -> None:
    assert tile(name) == expected


def test_families_and_kernels_that_add_parts() -> None:
    assert [family(name) for name in (HOPPER, CUTLASS, SIMT, FFMA)] == ["sm90", "sm80", "sm80", "sm80"]
    assert [adds_parts(name) for name in (HOPPER, CUTLASS, FFMA, FFMA_PARTS, PARTS)] == [
        False, False, False, True, True,
    ]  # fmt: skip
