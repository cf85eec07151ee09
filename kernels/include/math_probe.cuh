// What the probes of the math pipes (kernels/measure/) share: their arguments, and random operands.
#pragma once

struct MathArgs {
    float* out;           // written only if the result equals a magic number: keeps the compiler from removing the loop
    long long* elapsed;   // cycles, ns
    int loops;            // iterations of a warp
    float x;              // factor and addend of the fp32 probe
};

// Returns 32 random bits for a seed.
__device__ __forceinline__ unsigned noise(unsigned seed) {
    seed = (seed ^ 61u) ^ (seed >> 16);
    seed *= 9u;
    seed ^= seed >> 4;
    seed *= 0x27d4eb2du;
    return seed ^ (seed >> 15);
}
