// Rung 5, smaller tiles: tiles of 32x32, 64 threads, still 4x4 accumulators a thread.
// Against 04_register_tiled: narrow shapes get twice the blocks, but each has half the warps, so the number of warps
// in flight stays the same and each staged element is used less.
// Should be faster only if the number of blocks was the limit: this rung tests that.
// Shapes: all; edges checked. Transposed weights.
//
// Tile, threads and accumulators:
//
//   block (x, y) owns rows 32y.. and columns 32x.. of c; thread (tx, ty), tx = thread % 8, ty = thread / 8, owns the
//   4x4 elements from row 4 ty and column 4 tx.
//
//            32 columns
//        +----+- ... -+----+
//        |t0  |       |t7  |     K: steps of 16. Each step: all 64 threads stage a[32][16] (transposed) and
//     32 |t8  |       |t15 |     w[16][32] in shared memory, barrier, 16 times 4 + 4 loads and 16 multiply-adds a
//   rows |    ...          |     thread, barrier.
//        |t56 |       |t63 |
//        +----+- ... -+----+
#include "register_tile.cuh"

using Tile = RegisterTile<32, 32, 16, 4>;

extern "C" __global__ void __launch_bounds__(Tile::THREADS)
    gemm_small_tiles(const __grid_constant__ GemmArgs args) {
    Tile tile;
    tile.accumulate(args, 0, args.inner);
    tile.for_each(args, [&](int row, int column, float acc) { store(args, acc, row, column); });
}
