// Rung 5, smaller tiles: 32x32 tiles, 64 threads, the micro-tile kept at 4x4.
// Against 04_register_tiled: twice the blocks for the narrow shapes, but half the warps in each, so the
// warps in flight stay the same and each staged element is used less. Tests whether blocks were short.
// For every shape; edges checked. Transposed weights.
#include "register_tile.cuh"

using Tile = RegisterTile<32, 32, 16, 4>;

extern "C" __global__ void __launch_bounds__(Tile::THREADS)
    gemm_small_tiles(const __grid_constant__ GemmArgs args) {
    Tile tile;
    tile.accumulate(args, 0, args.inner);
    tile.each(args, [&](int row, int column, float sum) { store(args, sum, row, column); });
}
