// Rung 4, register tiling: 32x64 tiles, 128 threads, a 4x4 block of accumulators each.
// Against 03_tiled: 8 shared-memory loads feed 16 multiply-adds instead of 2 feeding 1.
// Should be faster on wide outputs; narrow ones get few blocks (128x768: 48), so SMs stand idle.
// For every shape; edges checked. Transposed weights.
#include "register_tile.cuh"

using Tile = RegisterTile<32, 64, 16, 4>;

extern "C" __global__ void __launch_bounds__(Tile::THREADS)
    gemm_register_tiled(const __grid_constant__ GemmArgs args) {
    Tile tile;
    tile.accumulate(args, 0, args.inner);
    tile.each(args, [&](int row, int column, float sum) { store(args, sum, row, column); });
}
