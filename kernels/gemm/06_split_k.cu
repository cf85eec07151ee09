// Rung 6, split-K: `splits` blocks divide the inner axis (K) of each tile; a second launch adds their partial results.
// Against 04_register_tiled: `splits` times the warps in flight for the same output. It costs
// splits x rows x columns floats, written once and read once.
// Should be faster when the output has fewer tiles than the device has SMs: narrow GEMMs.
// Shapes: all; edges checked. Transposed weights. Deterministic: partial results are added in order.
//
// Tile, threads and accumulators: as in 04_register_tiled, but the grid has a third axis:
//
//   block (x, y, z) owns rows 32y.. and columns 64x.., and of K only split z:
//
//        K  |  split 0  |  split 1  |  ...  |  split splits - 1  |     each a multiple of 16, in steps of 16
//               |            |                      |
//           partial[0]   partial[1]   ...   partial[splits - 1]        each [rows, columns]
//                \___________|______________________/
//                            | gemm_split_k_reduce: one thread an element, splits in order, then the epilogue
//                            c
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
    tile.for_each(args, [&](int row, int column, float acc) {
        partial[static_cast<long long>(row) * args.columns + column] = acc;
    });
}

extern "C" __global__ void gemm_split_k_reduce(const __grid_constant__ GemmArgs args) { reduce_splits(args); }
