// A row of a times 32 columns of w by one block: its warps divide the inner axis, each lane one column, so
// that a load instruction reads 128 consecutive bytes. Warps' sums are added in order through shared memory.
#pragma once
#include "args.cuh"

// Sums inner indices [begin, end) of the block's row and this lane's `column`; the result is warp 0's.
// `sums` is shared memory of the block: [WARPS][32]. A lane beyond the columns gives garbage.
template <int WARPS, int UNROLL>
__device__ __forceinline__ float one_row_sum(const GemmArgs& args, int row, int column, int begin, int end,
                                             float (*sums)[32]) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const float* a = args.a + static_cast<long long>(row) * args.lda;
    const float* w = args.w + (column < args.columns ? column : 0);
    float sum = 0.0f;
#pragma unroll UNROLL
    for (int k = begin + warp; k < end; k += WARPS) sum += a[k] * w[static_cast<long long>(k) * args.ldw];
    sums[warp][lane] = sum;
    __syncthreads();
    float total = 0.0f;
    if (warp == 0) {
#pragma unroll
        for (int i = 0; i < WARPS; ++i) total += sums[i][lane];
    }
    return total;
}
