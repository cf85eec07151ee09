// Rung 29's products over many rows: 22_tma and 23_tma_layernorm with weights and activations in bf16.
// Against them, one change: an element is two bytes. A piece of 256 bytes holds 128 indices of K, a wgmma takes 16 of
// them, and a block needs half the copies and half the products for the same tile.
//   - All of K = 768 fits in shared memory beside a narrow tile, which then needs no other block: no exchange of sums.
//   - A layernorm's sums over rows are read beside the products, whose operands both come from shared memory: tensor
//     cores add them up, where TF32 needs the rows in registers.
//   - Sums stay fp32, and so do bias, activation and residual. What is stored is rounded once, to nearest.
//   - Weights are paced (tma_gemm.cuh): two pieces early, the others with the activations.
// Should be faster by half of what L2 and DRAM deliver and half of what the tensor cores issue; the waits between
// launches stay.
// Shapes: any rows, 64 a tile; inner a multiple of 64; columns and leading dimensions of 8. Row layout. Those that
// compute the layernorm on the way need the folded weights (`fold=on`). Deterministic.
// Tiles, roles of the warps, rings and clusters: drawn in include/tma_gemm.cuh.
// arch: 90a
#include "tma_gemm.cuh"

#define TMA_BF16(name, columns, splits, a_slots, w_slots, early, normalise)                                      \
    extern "C" __global__ void __launch_bounds__(tma_gemm::THREADS, 1)                                           \
        name(const __grid_constant__ TmaGemmArgs<Bf16> args) {                                                   \
        run_tma_gemm<TmaGemm<Bf16, columns, splits, 1, 1, a_slots, w_slots, early, normalise>>(args);            \
    }

TMA_BF16(gemm_bf16_16_1_paced, 16, 1, 6, 6, 2, false)
TMA_BF16(gemm_bf16_56_4_paced, 56, 4, 6, 6, 2, false)
TMA_BF16(gemm_bf16_112_8_paced, 112, 8, 4, 4, 2, false)
TMA_BF16(gemm_bf16_layernorm_40_1_paced, 40, 1, 6, 6, 2, true)
TMA_BF16(gemm_bf16_layernorm_48_1_paced, 48, 1, 6, 6, 2, true)
TMA_BF16(gemm_bf16_layernorm_72_2_paced, 72, 2, 4, 4, 2, true)
TMA_BF16(gemm_bf16_layernorm_96_2_paced, 96, 2, 4, 4, 2, true)
