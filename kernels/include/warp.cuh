// Warp-wide reductions by shuffle tree: the same order on every run.
#pragma once

// -FLT_MAX: below every score, and finite, so that exp(LOWEST - LOWEST) is 1 and not NaN.
constexpr float LOWEST = -3.402823466e+38f;

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_xor_sync(0xffffffffu, value, offset);
    return value;
}

__device__ __forceinline__ float warp_max(float value) {
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1)
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
    return value;
}
