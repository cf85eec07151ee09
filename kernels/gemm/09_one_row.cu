// Rung 10, the one-row sites: a GEMV for what pruning leaves of the last layer, and the head.
// Against the tiled GEMMs: no tile to fill. A block owns 32 columns; its 32 warps divide the inner axis,
// each lane one column, so a load instruction reads 128 consecutive bytes and all of the weight is in
// flight at once. Warps' sums are added in order through shared memory.
// Should be faster where rows are few (1 to about 8): the weight is read once and nothing else matters.
// For every shape; edges checked. Transposed weights. Deterministic.
#include "one_row.cuh"
#include "epilogue.cuh"

constexpr int WARPS = 32, UNROLL = 8;

extern "C" __global__ void __launch_bounds__(32 * WARPS) gemm_one_row(const __grid_constant__ GemmArgs args) {
    __shared__ float sums[WARPS][32];
    const int column = blockIdx.x * 32 + (threadIdx.x & 31), row = blockIdx.y;
    const float total = one_row_sum<WARPS, UNROLL>(args, row, column, 0, args.inner, sums);
    if (threadIdx.x < 32 && column < args.columns) store(args, total, row, column);
}
