// Rung 6, split-K: the inner axis is divided among `splits` blocks a tile; a second launch adds the parts.
// Against 04_register_tiled: `splits` times the warps in flight on the same output, for splits x rows x
// columns floats of partial sums written and read once more.
// Should be faster where the output plane has fewer tiles than the device has SMs (narrow GEMMs).
// For every shape; edges checked. Transposed weights. Deterministic: parts are added in order.
#include "register_tile.cuh"
#include "split_k.cuh"

constexpr int DEPTH = 16;
using Tile = RegisterTile<32, 64, DEPTH, 4>;

extern "C" __global__ void __launch_bounds__(Tile::THREADS)
    gemm_split_k(const __grid_constant__ GemmArgs args) {
    const int split = blockIdx.z;
    float* partial = partial_tile(args, split);
    Tile tile;
    tile.accumulate(args, split_begin(args, split, DEPTH), split_begin(args, split + 1, DEPTH));
    tile.each(args, [&](int row, int column, float sum) {
        partial[static_cast<long long>(row) * args.columns + column] = sum;
    });
}

extern "C" __global__ void gemm_split_k_reduce(const __grid_constant__ GemmArgs args) { reduce_splits(args); }
