// cp.async: 16 bytes from global to shared memory without passing through registers (sm_80 and up).
#pragma once

__device__ __forceinline__ void copy_async_16(float* shared, const float* global) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(address), "l"(global));
}

// Sends for the 128 bytes around `global` to come to L2; nothing waits for them.
__device__ __forceinline__ void prefetch_l2(const float* global) {
    asm volatile("prefetch.global.L2 [%0];\n" ::"l"(global));
}

// Copies, or fills with 16 zero bytes where `inside` is false; `global` must be a valid address either way.
__device__ __forceinline__ void copy_async_16_or_zero(float* shared, const float* global, bool inside) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(address), "l"(global), "r"(inside ? 16 : 0));
}

__device__ __forceinline__ void copy_async_commit() { asm volatile("cp.async.commit_group;\n"); }

// Waits until at most PENDING of the newest committed groups are still under way.
template <int PENDING>
__device__ __forceinline__ void copy_async_wait() {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(PENDING));
}
