// Split-K without a second launch: the block that finishes a tile last adds the partial results of all blocks. It
// adds them in the order of their splits, so the bits are the same whichever block is last.
#pragma once
#include "split_k.cuh"

// Returns in all threads whether this block is the last of `blocks` to arrive at this counter. Every block calls it
// after it has written its partial result. A counter starts at 0 and is 0 again afterwards.
__device__ __forceinline__ bool is_last_block(unsigned* arrival_counter, int blocks) {
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicInc(arrival_counter, blocks - 1) == blocks - 1;
        __threadfence();
    }
    __syncthreads();
    return last;
}

// Sum of the partial results of one element. Other SMs wrote them, so they are read from L2 (ld.cg): this SM's L1
// may still hold older data of these addresses.
__device__ __forceinline__ float reduce_partials(const GemmArgs& args, int row, int column) {
    const float* partial = args.partial + static_cast<long long>(row) * args.columns + column;
    const long long stride = static_cast<long long>(args.rows) * args.columns;
    float acc = 0.0f;
#pragma unroll 8
    for (int split = 0; split < args.splits; ++split) acc += __ldcg(partial + split * stride);
    return acc;
}

// Adds the partial results of a ROWS x COLUMNS tile and stores it, by a block of THREADS threads. A thread has 4
// columns of ROWS_AT_ONCE rows, and the loads of UNROLL splits in flight.
template <int ROWS, int COLUMNS, int THREADS, int UNROLL = 2>
__device__ __forceinline__ void reduce_and_store_tile(const GemmArgs& args, int row0, int column0) {
    constexpr int THREADS_X = COLUMNS / 4, THREADS_Y = THREADS / THREADS_X;
    constexpr int ROWS_PER_THREAD = ROWS / THREADS_Y, ROWS_AT_ONCE = 4;
    static_assert(THREADS % THREADS_X == 0 && ROWS % THREADS_Y == 0 && ROWS_PER_THREAD % ROWS_AT_ONCE == 0,
                  "threads cover whole rows of the tile");
    const int column = column0 + threadIdx.x % THREADS_X * 4;
    const long long stride = static_cast<long long>(args.rows) * args.columns;
#pragma unroll 1
    for (int i = 0; i < ROWS_PER_THREAD; i += ROWS_AT_ONCE) {
        const int row = row0 + threadIdx.x / THREADS_X + i * THREADS_Y;
        const float* partial = args.partial + static_cast<long long>(row) * args.columns + column;
        float4 acc[ROWS_AT_ONCE] = {};
#pragma unroll UNROLL
        for (int split = 0; split < args.splits; ++split, partial += stride) {
#pragma unroll
            for (int j = 0; j < ROWS_AT_ONCE; ++j) {
                const float* from = partial + static_cast<long long>(j * THREADS_Y) * args.columns;
                const float4 value = __ldcg(reinterpret_cast<const float4*>(from));
                acc[j].x += value.x;
                acc[j].y += value.y;
                acc[j].z += value.z;
                acc[j].w += value.w;
            }
        }
#pragma unroll
        for (int j = 0; j < ROWS_AT_ONCE; ++j) {
            store(args, acc[j].x, row + j * THREADS_Y, column);
            store(args, acc[j].y, row + j * THREADS_Y, column + 1);
            store(args, acc[j].z, row + j * THREADS_Y, column + 2);
            store(args, acc[j].w, row + j * THREADS_Y, column + 3);
        }
    }
}
