// Rung 10, the one-row sites: a GEMV for what pruning leaves of the last layer, and the head.
// Against the tiled GEMMs: no tile to fill. A block owns 32 columns; its 32 warps divide the inner axis,
// each lane one column, so a load instruction reads 128 consecutive bytes and all of the weight is in
// flight at once. Warps' sums are added in order through shared memory.
// Should be faster where rows are few (1 to about 8): the weight is read once and nothing else matters.
// For every shape; edges checked. Transposed weights. Deterministic.
#include "store.cuh"

constexpr int WARPS = 32, UNROLL = 8;

extern "C" __global__ void __launch_bounds__(32 * WARPS) gemm_one_row(const __grid_constant__ GemmArgs args) {
    __shared__ float sums[WARPS][32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int column = blockIdx.x * 32 + lane, row = blockIdx.y;
    const bool inside = column < args.columns;
    const float* a = args.a + static_cast<long long>(row) * args.lda;
    const float* w = args.w + (inside ? column : 0);
    float sum = 0.0f;
#pragma unroll UNROLL
    for (int k = warp; k < args.inner; k += WARPS) sum += a[k] * w[static_cast<long long>(k) * args.ldw];
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp != 0 || !inside) return;
    float total = 0.0f;
#pragma unroll
    for (int i = 0; i < WARPS; ++i) total += sums[i][lane];
    store(args, total, row, column);
}
