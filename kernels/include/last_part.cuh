// Parts of one result by several blocks: the one that finishes last adds them all, in the order of their
// number, so that the sum is the same whichever came last.
#pragma once
#include "split.cuh"

// Whether this block is the last of `parts` to come with this ticket; all of them must have written before.
// A ticket starts at 0 and is 0 again afterwards.
__device__ __forceinline__ bool last_part(unsigned* ticket, int parts) {
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicInc(ticket, parts - 1) == parts - 1;
        __threadfence();
    }
    __syncthreads();
    return last;
}

// Parts come from other SMs: they are read from L2, past an L1 that may hold what lay there before.
__device__ __forceinline__ float sum_parts(const GemmArgs& args, int row, int column) {
    const float* part = args.partial + static_cast<long long>(row) * args.columns + column;
    const long long stride = static_cast<long long>(args.rows) * args.columns;
    float sum = 0.0f;
#pragma unroll 8
    for (int split = 0; split < args.splits; ++split) sum += __ldcg(part + split * stride);
    return sum;
}

// The finished ROWS x COLUMNS tile by a block of THREADS threads, 4 columns each at a time, AHEAD parts
// of 4 rows under way.
template <int ROWS, int COLUMNS, int THREADS, int AHEAD = 2>
__device__ __forceinline__ void store_parts(const GemmArgs& args, int row0, int column0) {
    constexpr int ACROSS = COLUMNS / 4, DOWN = THREADS / ACROSS, EACH = ROWS / DOWN, AT_ONCE = 4;
    static_assert(THREADS % ACROSS == 0 && ROWS % DOWN == 0 && EACH % AT_ONCE == 0, "whole rows of threads");
    const int column = column0 + threadIdx.x % ACROSS * 4;
    const long long stride = static_cast<long long>(args.rows) * args.columns;
#pragma unroll 1
    for (int i = 0; i < EACH; i += AT_ONCE) {
        const int row = row0 + threadIdx.x / ACROSS + i * DOWN;
        const float* part = args.partial + static_cast<long long>(row) * args.columns + column;
        float4 sum[AT_ONCE] = {};
#pragma unroll AHEAD
        for (int split = 0; split < args.splits; ++split, part += stride) {
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) {
                const float* from = part + static_cast<long long>(j * DOWN) * args.columns;
                const float4 value = __ldcg(reinterpret_cast<const float4*>(from));
                sum[j].x += value.x;
                sum[j].y += value.y;
                sum[j].z += value.z;
                sum[j].w += value.w;
            }
        }
#pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) {
            store(args, sum[j].x, row + j * DOWN, column);
            store(args, sum[j].y, row + j * DOWN, column + 1);
            store(args, sum[j].z, row + j * DOWN, column + 2);
            store(args, sum[j].w, row + j * DOWN, column + 3);
        }
    }
}
