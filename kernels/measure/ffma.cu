// Measures the peak of the fp32 pipe: fused multiply-adds on registers only, 16 independent chains a thread.
#include "math_probe.cuh"
#include "stamp.cuh"

constexpr int CHAINS = 16;
constexpr int UNROLL = 32;

extern "C" __global__ void __launch_bounds__(512) ffma_loop(const __grid_constant__ MathArgs args) {
    const Stamp begin = now();
    float acc[CHAINS];
#pragma unroll
    for (int i = 0; i < CHAINS; ++i) acc[i] = threadIdx.x * 0.001f + i;
    // Two distinct source registers an instruction, so that operands have no register bank conflicts.
    const float x = args.x + threadIdx.x * 1e-6f;
#pragma unroll 1
    for (int loop = 0; loop < args.loops; ++loop) {
#pragma unroll
        for (int step = 0; step < UNROLL; ++step) {
#pragma unroll
            for (int i = 0; i < CHAINS; ++i) acc[i] = __fmaf_rn(acc[i], x, x);
        }
    }
    float total = 0.0f;
#pragma unroll
    for (int i = 0; i < CHAINS; ++i) total += acc[i];
    if (total == 1.2345e38f) args.out[0] = total;
    report(begin, args.elapsed);
}
