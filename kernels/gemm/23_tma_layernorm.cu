// Rung 23
// arch: 90a
#include "tma_gemm.cuh"

#define TMA_LAYERNORM(name, columns, splits, a_slots, w_slots)                                            \
    extern "C" __global__ void __launch_bounds__(tma_gemm::THREADS, 1)                           \
        name(const __grid_constant__ TmaGemmArgs args) {                \
        run_tma_gemm<TmaGemm<columns, splits, a_slots, w_slots, true>>(args);                   \
    }

TMA_LAYERNORM(gemm_tma_layernorm_40_1, 40, 1, 6, 10)
TMA_LAYERNORM(gemm_tma_layernorm_48_1, 48, 1, 6, 10)
TMA_LAYERNORM(gemm_tma_layernorm_48_2, 48, 2, 6, 6)
TMA_LAYERNORM(gemm_tma_layernorm_72_2, 72, 2, 6, 6)
TMA_LAYERNORM(gemm_tma_layernorm_96_2, 96, 2, 4, 6)
