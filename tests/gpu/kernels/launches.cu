// What a launch can ask for besides a grid: clusters, a grid barrier, dependent launch, shared memory.
// arch: 90
#include <cooperative_groups.h>

struct Args {
    int* out;
    int* counter;
    int count;
};

extern "C" __global__ void rank_in_cluster(const __grid_constant__ Args args) {
    unsigned rank, size;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    if (threadIdx.x == 0) args.out[blockIdx.x] = rank + 100 * size;
}

// Every block counts itself, and after the barrier sees all of them.
extern "C" __global__ void meet(const __grid_constant__ Args args) {
    if (threadIdx.x == 0) atomicAdd(args.counter, 1);
    cooperative_groups::this_grid().sync();
    if (threadIdx.x == 0) args.out[blockIdx.x] = *static_cast<volatile int*>(args.counter);
}

// Adds one to each element; a chain of these is right only if each waits for the one before.
extern "C" __global__ void increment_after(const __grid_constant__ Args args) {
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < args.count) args.out[i] += 1;
}

extern "C" __global__ void through_shared(const __grid_constant__ Args args) {
    extern __shared__ int words[];
    for (int i = threadIdx.x; i < args.count; i += blockDim.x) words[i] = i;
    __syncthreads();
    for (int i = threadIdx.x; i < args.count; i += blockDim.x) args.out[i] = words[args.count - 1 - i];
}
