// Along one row of a K-major operand, 16 bytes a lane: UNROLL loads in flight together.
#pragma once
#include "args.cuh"

constexpr int UNROLL = 6;

// Loads UNROLL times 16 bytes, `step` floats apart; zeros beyond `end`.
__device__ __forceinline__ void load_row(float4 (&values)[UNROLL], const float* row, int k, int step, int end) {
#pragma unroll
    for (int i = 0; i < UNROLL; ++i, k += step) {
        values[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (k < end) values[i] = *reinterpret_cast<const float4*>(row + k);
    }
}
