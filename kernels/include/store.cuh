// The GEMM's store: bias, then ReLU, then residual, in that fixed order, each only where asked for.
#pragma once
#include "args.cuh"

__device__ __forceinline__ float finish(const GemmArgs& args, float sum, int row, int column) {
    if (args.bias) sum += args.bias[column];
    if (args.relu) sum = fmaxf(sum, 0.0f);
    if (args.residual) sum += args.residual[static_cast<long long>(row) * args.ldr + column];
    return sum;
}

__device__ __forceinline__ void store(const GemmArgs& args, float sum, int row, int column) {
    args.c[static_cast<long long>(row) * args.ldc + column] = finish(args, sum, row, column);
}
