// Rung 23: the layernorm before qkv and w1 is computed in the product itself.
// Against 22_tma, one change: activations come in as they are, before layernorm.
//   - The folded weights W' hold layernorm's factor and have their mean over K taken out, so that x W' = (x - mean) W'.
//   - What is left is the row's scale, 1 / sqrt(variance + eps), which can be applied to sums as well as to x. Each
//     warpgroup adds up x and x^2 of the rows that it multiplies; the block that finishes a row adds those moments in
//     order, and scales.
// Should be faster because a launch less stands in the chain twice a layer, 1.6 to 2 us each; what it costs are two
// additions for each element of x that a thread sees, beside products that wait for L2.
// `paced`: as there.
// Shapes: those of 22_tma, with at most two splits. Needs the folded weights (`fold=on`). Deterministic.
// Tiles, roles of the warps, rings and clusters: drawn in include/tma_gemm.cuh.
// arch: 90a
#include "tma_gemm.cuh"

#define TMA_LAYERNORM(name, columns, splits, row_blocks, column_blocks, a_slots, w_slots, early)                      \
    extern "C" __global__ void __launch_bounds__(tma_gemm::THREADS, 1)                                                \
        name(const __grid_constant__ TmaGemmArgs<float> args) {                                                       \
        run_tma_gemm<                                                                                                 \
            TmaGemm<float, columns, splits, row_blocks, column_blocks, a_slots, w_slots, early, true>>(args);         \
    }

TMA_LAYERNORM(gemm_tma_layernorm_40_1_2x2, 40, 1, 2, 2, 6, 10, 10)
TMA_LAYERNORM(gemm_tma_layernorm_72_2, 72, 2, 1, 1, 6, 6, 6)
TMA_LAYERNORM(gemm_tma_layernorm_80_2_2x1, 80, 2, 2, 1, 6, 6, 6)
TMA_LAYERNORM(gemm_tma_layernorm_80_2_2x2, 80, 2, 2, 2, 6, 6, 6)
TMA_LAYERNORM(gemm_tma_layernorm_96_2, 96, 2, 1, 1, 4, 6, 6)
TMA_LAYERNORM(gemm_tma_layernorm_104_2_2x1, 104, 2, 2, 1, 4, 6, 6)
TMA_LAYERNORM(gemm_tma_layernorm_104_2_2x2, 104, 2, 2, 2, 4, 6, 6)
TMA_LAYERNORM(gemm_tma_layernorm_72_2_paced, 72, 2, 1, 1, 6, 6, 2)
TMA_LAYERNORM(gemm_tma_layernorm_96_2_paced, 96, 2, 1, 1, 4, 6, 2)
