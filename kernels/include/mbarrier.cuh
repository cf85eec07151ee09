// mbarrier (sm_90): a barrier in shared memory that also counts the bytes of asynchronous copies. Each function is
// named after the PTX instruction that it issues.
//
// A barrier goes through phases 0, 1, 2, ... A phase completes when as many threads have arrived as mbarrier_init said
// and all bytes that they announced have come. A waiter names the parity of the phase that it waits for, so it may be
// at most one phase behind: whoever waits for a later phase must know that the one before it has completed.
#pragma once

using Mbarrier = unsigned long long;

__device__ __forceinline__ unsigned shared_address(const void* shared) {
    return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}

// One thread initialises; then fence_mbarrier_init() by it, and a barrier before any other thread uses it.
__device__ __forceinline__ void mbarrier_init(Mbarrier* barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}

// Makes initialised barriers visible to the copy engine and to the other blocks of the cluster.
__device__ __forceinline__ void fence_mbarrier_init() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void mbarrier_arrive(Mbarrier* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// Arrives at the barrier that block `rank` of the cluster has at this place.
__device__ __forceinline__ void mbarrier_arrive_cluster(Mbarrier* barrier, int rank) {
    asm volatile(
        "{\n\t.reg .b32 address;\n\tmapa.shared::cluster.u32 address, %0, %1;\n\t"
        "mbarrier.arrive.shared::cluster.b64 _, [address];\n\t}" ::"r"(shared_address(barrier)),
        "r"(rank)
        : "memory");
}

// Arrives, and announces `bytes` that copies will bring in this phase.
__device__ __forceinline__ void mbarrier_arrive_expect_tx(Mbarrier* barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ bool mbarrier_try_wait_parity(const Mbarrier* barrier, unsigned parity) {
    unsigned done;
    asm volatile(
        "{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
        "selp.u32 %0, 1, 0, p;\n\t}"
        : "=r"(done)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
    return done != 0;
}

// Waits for the phase of this parity. What copies and other blocks wrote before it completed is then visible.
__device__ __forceinline__ void mbarrier_wait_parity(const Mbarrier* barrier, unsigned parity) {
    while (!mbarrier_try_wait_parity(barrier, parity)) {}
}
