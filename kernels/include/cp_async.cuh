// cp.async (sm_80 and up): 16-byte copies from global to shared memory that bypass registers, and prefetch to L2.
// Each function is named after the PTX instruction that it issues.
#pragma once

__device__ __forceinline__ void cp_async_16(float* shared, const float* global) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(address), "l"(global));
}

// Copies if `inside`, else writes 16 zero bytes. `global` must be a valid address in both cases.
__device__ __forceinline__ void cp_async_16_zfill(float* shared, const float* global, bool inside) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(address), "l"(global), "r"(inside ? 16 : 0));
}

__device__ __forceinline__ void cp_async_commit_group() { asm volatile("cp.async.commit_group;\n"); }

// Waits until at most PENDING of this thread's newest committed groups are still in flight.
template <int PENDING>
__device__ __forceinline__ void cp_async_wait_group() {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(PENDING));
}

// Starts to load the cache line at `global` into L2. Nothing waits for it.
__device__ __forceinline__ void prefetch_global_l2(const void* global) {
    asm volatile("prefetch.global.L2 [%0];\n" ::"l"(global));
}
