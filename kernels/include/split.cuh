// Split-K: which part of the inner axis is whose, and the fixed-order sum of the parts.
#pragma once
#include "store.cuh"

// Start of part `split`, a multiple of `depth`; part `split` ends where the next begins.
__device__ __forceinline__ int split_begin(const GemmArgs& args, int split, int depth) {
    const int steps = (args.inner + depth - 1) / depth;
    return min(args.inner, static_cast<int>(static_cast<long long>(steps) * split / args.splits) * depth);
}

__device__ __forceinline__ float* partial_tile(const GemmArgs& args, int split) {
    return args.partial + static_cast<long long>(split) * args.rows * args.columns;
}

// One thread an element: parts are added in the order of their number, so the sum is the same each run.
__device__ __forceinline__ void reduce_splits(const GemmArgs& args) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y;
    if (column >= args.columns) return;
    const long long element = static_cast<long long>(row) * args.columns + column;
    float sum = 0.0f;
    for (int split = 0; split < args.splits; ++split) sum += partial_tile(args, split)[element];
    store(args, sum, row, column);
}
