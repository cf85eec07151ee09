// Measures what launches cost that depend on the one before. Each entry is launched in a chain, as one graph or in a
// stream; differences between chains are the cost of what an entry does more:
//
//   chained    does nothing: the launch alone
//   loading    each thread loads a word and needs it: a launch and its first load
//   dependent  each thread loads what a thread of another block of the launch before wrote, and stores: a launch, a load
//              and a store that the next launch sees
//
// The entries *_pdl do the same with programmatic dependent launch: they let the next grid start at once and wait for
// the grid before them only when they read. Below sm_90 both entries are the same.
#include "dependent_launch.cuh"

struct DependentArgs {
    const float* in;   // [threads of the grid x spacing]
    float* out;        // [threads of the grid]; loading: written only if the loaded word equals a magic number
    int count;
    int spacing;       // loading: words from one thread's word to the next thread's
};

__device__ __forceinline__ int thread_of_another_block(const DependentArgs& args) {
    const int other = (blockIdx.x + 1) * blockDim.x + threadIdx.x;
    return other < args.count ? other : other - args.count;
}

__device__ __forceinline__ void step(const DependentArgs& args) {
    args.out[blockIdx.x * blockDim.x + threadIdx.x] = args.in[thread_of_another_block(args)] + 1.0f;
}

__device__ __forceinline__ void load(const DependentArgs& args) {
    const float value = args.in[static_cast<long long>(thread_of_another_block(args)) * args.spacing];
    if (value == 1.2345e38f) args.out[0] = value;
}

__device__ __forceinline__ void start_early() {
    griddep_launch_dependents();
    griddep_wait();
}

extern "C" __global__ void chained(const __grid_constant__ DependentArgs args) {}

extern "C" __global__ void chained_pdl(const __grid_constant__ DependentArgs args) { start_early(); }

extern "C" __global__ void loading(const __grid_constant__ DependentArgs args) { load(args); }

extern "C" __global__ void loading_pdl(const __grid_constant__ DependentArgs args) {
    start_early();
    load(args);
}

extern "C" __global__ void dependent(const __grid_constant__ DependentArgs args) { step(args); }

extern "C" __global__ void dependent_pdl(const __grid_constant__ DependentArgs args) {
    start_early();
    step(args);
}
