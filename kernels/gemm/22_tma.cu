// Rung 22: wide products whose tiles the copy engine brings.
// Against 11_warpgroup, two changes:
//   - One thread asks for a box of 64 rows by 64 indices of K, 16 KB, and the copy engine places it in shared memory,
//     swizzled. There, all 256 threads issue copies of 16 bytes, and compute an address for each.
//   - The two warpgroups take pieces of K in turn, each with a sum of its own. There, both wait for every stage.
// Should be faster because threads that issue no copies only multiply, and weights are on their way before the launch
// ahead has ended: a pass at batch 1 waits for its first loads more than for anything else.
// `paced`: of the weights, only two pieces come before the launch ahead has ended. More of them would come before the
// activations and hold them up, since all blocks ask L2 at once; and they would hold up the launch ahead, which reads L2
// too. The next product's weights are prefetched into L2 when the last piece has come.
// `2x2` and `2x1` name blocks that share copies by multicast (tma_gemm.cuh): L2 is then read less.
// Shapes: any rows, 64 a tile; inner a multiple of 32; columns and leading dimensions of 4. Row layout. With more than
// 128 rows the library's larger tiles read less. Deterministic: parts are added in order. The hardware drops the bits
// below TF32.
// Tiles, roles of the warps, rings and clusters: drawn in include/tma_gemm.cuh.
// arch: 90a
#include "tma_gemm.cuh"

#define TMA_GEMM(name, columns, splits, row_blocks, column_blocks, a_slots, w_slots, early)                           \
    extern "C" __global__ void __launch_bounds__(tma_gemm::THREADS, 1)                                                \
        name(const __grid_constant__ TmaGemmArgs<float> args) {                                                       \
        run_tma_gemm<                                                                                                 \
            TmaGemm<float, columns, splits, row_blocks, column_blocks, a_slots, w_slots, early, false>>(args);        \
    }

TMA_GEMM(gemm_tma_16_1, 16, 1, 1, 1, 6, 10, 10)
TMA_GEMM(gemm_tma_24_2, 24, 2, 1, 1, 6, 6, 6)
TMA_GEMM(gemm_tma_32_2_2x2, 32, 2, 2, 2, 6, 6, 6)
TMA_GEMM(gemm_tma_72_2, 72, 2, 1, 1, 6, 6, 6)
TMA_GEMM(gemm_tma_80_2_2x2, 80, 2, 2, 2, 6, 6, 6)
TMA_GEMM(gemm_tma_96_2, 96, 2, 1, 1, 4, 6, 6)
TMA_GEMM(gemm_tma_104_2_2x2, 104, 2, 2, 2, 4, 6, 6)
TMA_GEMM(gemm_tma_56_4, 56, 4, 1, 1, 6, 8, 8)
TMA_GEMM(gemm_tma_112_8, 112, 8, 1, 1, 6, 4, 4)
TMA_GEMM(gemm_tma_112_8_2x1, 112, 8, 2, 1, 6, 4, 4)
TMA_GEMM(gemm_tma_24_2_paced, 24, 2, 1, 1, 6, 6, 2)
TMA_GEMM(gemm_tma_112_8_paced, 112, 8, 1, 1, 6, 4, 2)
