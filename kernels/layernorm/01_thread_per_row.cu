// The naive port of a layernorm, which no rung uses: one thread a row, three walks over it (mean, variance,
// output), as the CPU code does. A candidate to hold 01_warp_per_row against.
// Why it is slow: a warp's threads stand `ldx` floats apart, and only `rows` threads work at all.
// For every shape. Gain and shift may be absent (folded into the next weights).
#include "args.cuh"

extern "C" __global__ void layernorm_thread_per_row(const __grid_constant__ LayernormArgs args) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= args.rows) return;
    const float* x = args.x + static_cast<long long>(row) * args.ldx;
    float* out = args.out + static_cast<long long>(row) * args.ldo;
    float sum = 0.0f;
    for (int i = 0; i < args.columns; ++i) sum += x[i];
    const float mean = sum / args.columns;
    float squares = 0.0f;
    for (int i = 0; i < args.columns; ++i) squares += (x[i] - mean) * (x[i] - mean);
    const float scale = rsqrtf(squares / args.columns + args.eps);
    for (int i = 0; i < args.columns; ++i) {
        float value = (x[i] - mean) * scale;
        if (args.gain) value *= args.gain[i];
        if (args.shift) value += args.shift[i];
        out[i] = value;
    }
}
