// Layernorm of one row by one warp, lanes on consecutive columns: mean, then squared deviations, then the output.
#pragma once
#include "args.cuh"
#include "warp.cuh"

__device__ __forceinline__ void layernorm_row(const LayernormArgs& args, int row) {
    const int lane = threadIdx.x & 31;
    const float* x = args.x + static_cast<long long>(row) * args.ldx;
    float* out = args.out + static_cast<long long>(row) * args.ldo;
    float sum = 0.0f;
    for (int i = lane; i < args.columns; i += 32) sum += x[i];
    const float mean = warp_sum(sum) / args.columns;
    float squares = 0.0f;
    for (int i = lane; i < args.columns; i += 32) squares += (x[i] - mean) * (x[i] - mean);
    const float scale = rsqrtf(warp_sum(squares) / args.columns + args.eps);
    for (int i = lane; i < args.columns; i += 32) {
        float value = (x[i] - mean) * scale;
        if (args.gain) value *= args.gain[i];
        if (args.shift) value += args.shift[i];
        out[i] = value;
    }
}
