// Layernorm of one row by one warp, lanes on consecutive columns. Three passes over the row: mean, squared deviations,
// output.
#pragma once
#include "args.cuh"
#include "warp.cuh"

__device__ __forceinline__ void layernorm_row(const LayernormArgs& args, int row) {
    const int lane = threadIdx.x & 31;
    const float* x = args.x + static_cast<long long>(row) * args.ldx;
    float* out = args.out + static_cast<long long>(row) * args.ldo;
    float row_sum = 0.0f;
    for (int i = lane; i < args.columns; i += 32) row_sum += x[i];
    const float mean = warp_sum(row_sum) / args.columns;
    float square_sum = 0.0f;
    for (int i = lane; i < args.columns; i += 32) square_sum += (x[i] - mean) * (x[i] - mean);
    const float scale = rsqrtf(warp_sum(square_sum) / args.columns + args.eps);
    for (int i = lane; i < args.columns; i += 32) {
        float value = (x[i] - mean) * scale;
        if (args.gain) value *= args.gain[i];
        if (args.shift) value += args.shift[i];
        out[i] = value;
    }
}
