// Ceiling of the fp32 pipe: fused multiply-adds on registers alone, 16 independent chains a thread.
#include "math_probe.cuh"
#include "stamp.cuh"

constexpr int CHAINS = 16;
constexpr int UNROLL = 32;

extern "C" __global__ void __launch_bounds__(512) ffma_loop(const __grid_constant__ MathArgs args) {
    const Stamp begin = now();
    float sum[CHAINS];
#pragma unroll
    for (int i = 0; i < CHAINS; ++i) sum[i] = threadIdx.x * 0.001f + i;
    // Two distinct registers an instruction, so that no operand waits for a register bank.
    const float x = args.x + threadIdx.x * 1e-6f;
#pragma unroll 1
    for (int loop = 0; loop < args.loops; ++loop) {
#pragma unroll
        for (int step = 0; step < UNROLL; ++step) {
#pragma unroll
            for (int i = 0; i < CHAINS; ++i) sum[i] = __fmaf_rn(sum[i], x, x);
        }
    }
    float total = 0.0f;
#pragma unroll
    for (int i = 0; i < CHAINS; ++i) total += sum[i];
    if (total == 1.2345e38f) args.out[0] = total;
    report(begin, args.elapsed);
}
