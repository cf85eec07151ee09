// GEMV: one row of a times 32 columns of w, stored [inner, columns], by one block. The block's warps divide the inner
// axis and each lane takes one column, so that a load instruction reads 128 consecutive bytes. The warps' sums are
// added in order through shared memory.
//
//              column 0 .. 31 (lane 0 .. 31)
//   k = 0      warp 0
//   k = 1      warp 1
//     ...
//   k = WARPS  warp 0
//     ...
#pragma once
#include "args.cuh"

// Returns in warp 0 the dot products of the block's row and each lane's `column` over inner indices [begin, end).
// `warp_sums` is shared memory of the block. A lane beyond the columns returns garbage.
template <int WARPS, int UNROLL>
__device__ __forceinline__ float one_row_sum(const GemmArgs& args, int row, int column, int begin, int end,
                                             float (*warp_sums)[32]) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const float* a = args.a + static_cast<long long>(row) * args.lda;
    const float* w = args.w + (column < args.columns ? column : 0);
    float acc = 0.0f;
#pragma unroll UNROLL
    for (int k = begin + warp; k < end; k += WARPS) acc += a[k] * w[static_cast<long long>(k) * args.ldw];
    warp_sums[warp][lane] = acc;
    __syncthreads();
    float column_sum = 0.0f;
    if (warp == 0) {
#pragma unroll
        for (int i = 0; i < WARPS; ++i) column_sum += warp_sums[i][lane];
    }
    return column_sum;
}
