// Rung 9's head and, from rung 10 on, the other one-row sites that pruning leaves of the last layer: a GEMV.
// Against the tiled GEMMs: there is no tile to fill. A block owns 32 columns; its 32 warps divide the inner axis,
// each lane has one column, and all of the weight is in flight at once.
// Should be faster when rows are few (1 to about 8): the weight is read once and nothing else matters.
// Shapes: all; edges checked. Transposed weights. Deterministic: the warps' sums are added in order.
//
//   block (x, y) owns row y and columns 32x.. to 32x + 31 of c: lane l has column 32x + l, warp w the inner indices
//   w, w + 32, w + 64, ... (one_row.cuh)
#include "epilogue.cuh"
#include "one_row.cuh"

constexpr int WARPS = 32, UNROLL = 8;

extern "C" __global__ void __launch_bounds__(32 * WARPS) gemm_one_row(const __grid_constant__ GemmArgs args) {
    __shared__ float warp_sums[WARPS][32];
    const int column = blockIdx.x * 32 + (threadIdx.x & 31), row = blockIdx.y;
    const float acc = one_row_sum<WARPS, UNROLL>(args, row, column, 0, args.inner, warp_sums);
    if (threadIdx.x < 32 && column < args.columns) store(args, acc, row, column);
}
