// Rung 22's products: tiles brought by the copy engine, both operands of wgmma in shared memory.
// arch: 90a
#include "tma_gemm.cuh"

#define TMA_GEMM(name, columns, splits, row_blocks, column_blocks, a_slots, w_slots)                        \
    extern "C" __global__ void __launch_bounds__(tma_gemm::THREADS, 1)                                      \
        name(const __grid_constant__ TmaGemmArgs args) {                                                    \
        run_tma_gemm<TmaGemm<columns, splits, row_blocks, column_blocks, a_slots, w_slots, false>>(args);   \
    }

TMA_GEMM(gemm_tma_16_1, 16, 1, 1, 1, 6, 10)
TMA_GEMM(gemm_tma_24_2, 24, 2, 1, 1, 6, 6)
TMA_GEMM(gemm_tma_32_2_2x2, 32, 2, 2, 2, 6, 6)
TMA_GEMM(gemm_tma_72_2, 72, 2, 1, 1, 6, 6)
TMA_GEMM(gemm_tma_80_2_2x2, 80, 2, 2, 2, 6, 6)
TMA_GEMM(gemm_tma_96_2, 96, 2, 1, 1, 4, 6)
TMA_GEMM(gemm_tma_104_2_2x2, 104, 2, 2, 2, 4, 6)
TMA_GEMM(gemm_tma_56_4, 56, 4, 1, 1, 6, 8)
TMA_GEMM(gemm_tma_112_8, 112, 8, 1, 1, 6, 4)
TMA_GEMM(gemm_tma_112_8_2x1, 112, 8, 2, 1, 6, 4)
