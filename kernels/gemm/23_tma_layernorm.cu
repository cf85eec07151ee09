// Rung 23
// arch: 90a
#include "tma_gemm.cuh"

#define TMA_LAYERNORM(name, columns, splits, row_blocks, column_blocks, a_slots, w_slots)                  \
    extern "C" __global__ void __launch_bounds__(tma_gemm::THREADS, 1)                                     \
        name(const __grid_constant__ TmaGemmArgs args) {                                                   \
        run_tma_gemm<TmaGemm<columns, splits, row_blocks, column_blocks, a_slots, w_slots, true>>(args);   \
    }

TMA_LAYERNORM(gemm_tma_layernorm_40_1_2x2, 40, 1, 2, 2, 6, 10)
TMA_LAYERNORM(gemm_tma_layernorm_72_2, 72, 2, 1, 1, 6, 6)
TMA_LAYERNORM(gemm_tma_layernorm_80_2_2x1, 80, 2, 2, 1, 6, 6)
TMA_LAYERNORM(gemm_tma_layernorm_80_2_2x2, 80, 2, 2, 2, 6, 6)
TMA_LAYERNORM(gemm_tma_layernorm_96_2, 96, 2, 1, 1, 4, 6)
TMA_LAYERNORM(gemm_tma_layernorm_104_2_2x1, 104, 2, 2, 1, 4, 6)
TMA_LAYERNORM(gemm_tma_layernorm_104_2_2x2, 104, 2, 2, 2, 4, 6)
