// Rung 4, register tiling: tiles of 32x64, 128 threads, 4x4 accumulators in each thread's registers.
// Against 03_tiled: 8 shared-memory loads feed 16 multiply-adds; there, 2 loads feed 1.
// Should be faster for wide outputs. Narrow outputs get few blocks (128x768: 48), so SMs stay idle.
// Shapes: all; edges checked. Transposed weights.
//
// Tile, threads and accumulators:
//
//   block (x, y) owns rows 32y.. and columns 64x.. of c    thread (tx, ty), tx = thread % 16, ty = thread / 16
//
//             64 columns                                             4 columns, from 4 tx
//        +----+----+- ... -+----+                                   +---------------------+
//        |t0  |t1  |       |t15 |                                   | acc[0][0] .. [0][3] |
//     32 |t16 |t17 |       |t31 |            4 rows, from 4 ty      | acc[1][0] .. [1][3] |
//   rows |    ...               |                                   | acc[2][0] .. [2][3] |
//        |t112|t113|       |t127|                                   | acc[3][0] .. [3][3] |
//        +----+----+- ... -+----+                                   +---------------------+
//
//   K: steps of 16. Each step: all 128 threads stage a[32][16] (transposed) and w[16][64] in shared memory, barrier,
//   16 times 4 + 4 loads and 16 multiply-adds a thread, barrier.
#include "register_tile.cuh"

using Tile = RegisterTile<32, 64, 16, 4>;

extern "C" __global__ void __launch_bounds__(Tile::THREADS)
    gemm_register_tiled(const __grid_constant__ GemmArgs args) {
    Tile tile;
    tile.accumulate(args, 0, args.inner);
    tile.for_each(args, [&](int row, int column, float acc) { store(args, acc, row, column); });
}
