// In rung 1's menu, no rung uses it: the naive port of a layernorm, for comparison with 01_warp_per_row. One thread a
// row makes three passes over it (mean, variance, output), as the CPU code does.
// Why it is slow: the threads of a warp read addresses `ldx` floats apart, and only `rows` threads work.
// Shapes: all. Gain and shift may be absent (folded into the next weights).
#include "args.cuh"

extern "C" __global__ void layernorm_thread_per_row(const __grid_constant__ LayernormArgs args) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= args.rows) return;
    const float* x = args.x + static_cast<long long>(row) * args.ldx;
    float* out = args.out + static_cast<long long>(row) * args.ldo;
    float row_sum = 0.0f;
    for (int i = 0; i < args.columns; ++i) row_sum += x[i];
    const float mean = row_sum / args.columns;
    float square_sum = 0.0f;
    for (int i = 0; i < args.columns; ++i) square_sum += (x[i] - mean) * (x[i] - mean);
    const float scale = rsqrtf(square_sum / args.columns + args.eps);
    for (int i = 0; i < args.columns; ++i) {
        float value = (x[i] - mean) * scale;
        if (args.gain) value *= args.gain[i];
        if (args.shift) value += args.shift[i];
        out[i] = value;
    }
}
