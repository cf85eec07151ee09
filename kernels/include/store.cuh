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

// What is added to four consecutive columns, zeros where absent: sent for before the sum is at hand.
struct StoreTerms {
    float4 bias, residual;
};

// For columns and ldr multiples of 4.
__device__ __forceinline__ StoreTerms store_terms(const GemmArgs& args, int row, int column) {
    StoreTerms terms = {};
    if (args.bias) terms.bias = *reinterpret_cast<const float4*>(args.bias + column);
    if (args.residual)
        terms.residual =
            *reinterpret_cast<const float4*>(args.residual + static_cast<long long>(row) * args.ldr + column);
    return terms;
}

__device__ __forceinline__ float finish(float sum, float bias, bool relu, float residual) {
    sum += bias;
    return (relu ? fmaxf(sum, 0.0f) : sum) + residual;
}

// Four columns at once; for ldc a multiple of 4.
__device__ __forceinline__ void store_4(const GemmArgs& args, float4 sum, const StoreTerms& terms, int row,
                                        int column) {
    *reinterpret_cast<float4*>(args.c + static_cast<long long>(row) * args.ldc + column) =
        make_float4(finish(sum.x, terms.bias.x, args.relu, terms.residual.x),
                    finish(sum.y, terms.bias.y, args.relu, terms.residual.y),
                    finish(sum.z, terms.bias.z, args.relu, terms.residual.z),
                    finish(sum.w, terms.bias.w, args.relu, terms.residual.w));
}
