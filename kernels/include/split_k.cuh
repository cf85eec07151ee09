// Split-K: the range of K (the inner axis) that each split takes, and the sum of the partial results in fixed order.
#pragma once
#include "epilogue.cuh"

// First index of split `split`, a multiple of `depth`. A split ends where the next one begins.
__device__ __forceinline__ int split_begin(const GemmArgs& args, int split, int depth) {
    const int steps = (args.inner + depth - 1) / depth;
    return min(args.inner, static_cast<int>(static_cast<long long>(steps) * split / args.splits) * depth);
}

// The [rows, columns] partial result of split `split`.
__device__ __forceinline__ float* partial_tile(const GemmArgs& args, int split) {
    return args.partial + static_cast<long long>(split) * args.rows * args.columns;
}

// One thread an element. Adds the partial results in the order of their splits, so that each run gives the same bits.
__device__ __forceinline__ void reduce_splits(const GemmArgs& args) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y;
    if (column >= args.columns) return;
    const long long element = static_cast<long long>(row) * args.columns + column;
    float acc = 0.0f;
    for (int split = 0; split < args.splits; ++split) acc += partial_tile(args, split)[element];
    store(args, acc, row, column);
}
