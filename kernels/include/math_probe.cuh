// What the probes of the math pipes share (kernels/measure/): their arguments, and words to multiply.
#pragma once

struct MathArgs {
    float* out;           // written only if a sum is its own poison
    long long* elapsed;   // cycles, ns
    int loops;            // turns of a warp
    float x;              // factor and addend of the fp32 probe
};

// A word of random bits from a seed.
__device__ __forceinline__ unsigned noise(unsigned seed) {
    seed = (seed ^ 61u) ^ (seed >> 16);
    seed *= 9u;
    seed ^= seed >> 4;
    seed *= 0x27d4eb2du;
    return seed ^ (seed >> 15);
}
