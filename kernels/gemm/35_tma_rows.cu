// Rung 35's w2 and wo: paced tiles of 128 rows, whose warpgroups divide rows.
// Against 22_tma's paced tiles, two changes:
//   - A warpgroup has 64 rows and all of the block's K. There, both have the same 64 rows and half of K each, and exchange
//     their sums through shared memory before the cluster exchanges them again.
//   - Weights are copied once for 128 rows, and parts of other blocks have memory of their own.
// Should be faster where K is long, as at w2: L2 delivers a third less of weights, and the end of a block has one exchange
// and one meeting less. Activations are read as often as there are tiles side by side.
// Shapes: any rows, 128 a tile; inner a multiple of 32; columns and leading dimensions of 4. Row layout. Deterministic:
// parts are added in order. The hardware drops the bits below TF32.
// Roles of the warps, rings and clusters: drawn in include/tma_rows.cuh.
// arch: 90a
#include "tma_rows.cuh"

#define TMA_ROWS(name, columns, splits, a_slots, w_slots, early)                                                      \
    extern "C" __global__ void __launch_bounds__(tma_rows::THREADS, 1)                                                \
        name(const __grid_constant__ TmaGemmArgs<float> args) {                                                       \
        extern __shared__ __align__(SWIZZLE_ATOM_BYTES) unsigned char shared[];                                       \
        using Gemm = TmaRows<columns, splits, a_slots, w_slots, early>;                                               \
        Gemm(args, *reinterpret_cast<Gemm::Shared*>(shared)).run();                                                   \
    }

TMA_ROWS(gemm_tma_rows_32_4, 32, 4, 6, 6, 4)
TMA_ROWS(gemm_tma_rows_56_8, 56, 8, 6, 10, 4)
