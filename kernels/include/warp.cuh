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

// Maximum and sum over the four lanes that share a row of a fragment of mma.sync.
__device__ __forceinline__ float quad_max(float value) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 1));
    return fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 2));
}

__device__ __forceinline__ float quad_sum(float value) {
    value += __shfl_xor_sync(0xffffffffu, value, 1);
    return value + __shfl_xor_sync(0xffffffffu, value, 2);
}

// 2 to the power of `exponent`, by the hardware's approximation; 0 where that is below the normal numbers.
__device__ __forceinline__ float ex2_approx_ftz(float exponent) {
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(exponent));
    return power;
}
