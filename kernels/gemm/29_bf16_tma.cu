// Rung 29's products over many rows: 22_tma and 23_tma_layernorm with weights and activations in bf16.
// Against them, one change: an element is two bytes. A piece of 256 bytes holds 128 indices of K, a wgmma takes 16 of
// them, and a block needs half the copies and half the products for the same tile.
//   - All of K = 768 fits in shared memory beside a narrow tile, which then needs no other block: no exchange of sums.
//   - Sums stay fp32, and so do bias, activation and residual. What is stored is rounded once, to nearest.
// Should be faster by half of what L2 and DRAM deliver and half of what the tensor cores issue; the waits between
// launches stay.
// Shapes: any rows, 64 a tile; inner a multiple of 64; columns and leading dimensions of 8. Row layout. Those that
// compute the layernorm on the way need the folded weights (`fold=on`). Deterministic.
// Tiles, roles of the warps, rings and clusters: drawn in include/tma_gemm.cuh.
// arch: 90a
#include "tma_gemm.cuh"

#define TMA_BF16(name, columns, splits, row_blocks, column_blocks, a_slots, w_slots, normalise)                       \
    extern "C" __global__ void __launch_bounds__(tma_gemm::THREADS, 1)                                                \
        name(const __grid_constant__ TmaGemmArgs<Bf16> args) {                                                        \
        run_tma_gemm<                                                                                                 \
            TmaGemm<Bf16, columns, splits, row_blocks, column_blocks, a_slots, w_slots, w_slots, normalise>>(args);   \
    }

TMA_BF16(gemm_bf16_16_1, 16, 1, 1, 1, 6, 6, false)
TMA_BF16(gemm_bf16_24_2, 24, 2, 1, 1, 4, 4, false)
TMA_BF16(gemm_bf16_56_4, 56, 4, 1, 1, 6, 6, false)
TMA_BF16(gemm_bf16_112_8, 112, 8, 1, 1, 4, 4, false)
TMA_BF16(gemm_bf16_layernorm_40_1, 40, 1, 1, 1, 6, 6, true)
TMA_BF16(gemm_bf16_layernorm_48_1, 48, 1, 1, 1, 6, 6, true)
TMA_BF16(gemm_bf16_layernorm_48_1_2x1, 48, 1, 2, 1, 6, 6, true)
TMA_BF16(gemm_bf16_layernorm_72_2, 72, 2, 1, 1, 4, 4, true)
TMA_BF16(gemm_bf16_layernorm_96_2, 96, 2, 1, 1, 4, 4, true)
