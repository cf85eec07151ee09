// Barriers of some of a block's warps (bar, sm_80 and up). Each function is named after the PTX instruction that it
// issues. Barrier 0 is __syncthreads()'s; 1 to 15 are free.
#pragma once

// Waits until THREADS threads have come to barrier `id`, by bar_sync or by bar_arrive.
template <int THREADS>
__device__ __forceinline__ void bar_sync(int id) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(THREADS) : "memory");
}

// Comes to barrier `id` without waiting for the others.
template <int THREADS>
__device__ __forceinline__ void bar_arrive(int id) {
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(THREADS) : "memory");
}
