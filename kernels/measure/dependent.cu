// Measures the cost of a launch that depends on the one before it: each thread reads what a thread of another block
// of the launch before wrote. dependent_pdl does the same with programmatic dependent launch: it lets the next grid
// start at once and waits for the grid before it only when it reads. Below sm_90 both entries are the same.
#include "dependent_launch.cuh"

struct DependentArgs {
    const float* in;   // [threads of the grid]
    float* out;        // [threads of the grid]
    int count;
};

__device__ __forceinline__ void step(const DependentArgs& args) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int other = i + blockDim.x;
    args.out[i] = args.in[other < args.count ? other : other - args.count] + 1.0f;
}

extern "C" __global__ void dependent(const __grid_constant__ DependentArgs args) { step(args); }

extern "C" __global__ void dependent_pdl(const __grid_constant__ DependentArgs args) {
    griddep_launch_dependents();
    griddep_wait();
    step(args);
}
