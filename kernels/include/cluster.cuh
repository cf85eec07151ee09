// Thread block clusters (sm_90 and up): blocks that write into each other's shared memory, and tell of it by a
// barrier there that counts the bytes which have come.
#pragma once

__device__ __forceinline__ unsigned shared_address(const void* local) {
    return static_cast<unsigned>(__cvta_generic_to_shared(local));
}

// The same place in the shared memory of block `rank` of this cluster.
__device__ __forceinline__ unsigned address_in_block(unsigned address, int rank) {
    unsigned theirs;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(theirs) : "r"(address), "r"(rank));
    return theirs;
}

// By one thread, before the cluster's blocks have met: the barrier opens once `bytes` have come.
__device__ __forceinline__ void expect_bytes(unsigned barrier, int bytes) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Blocks meet to know that each other's barriers exist: no other writes are seen by it.
__device__ __forceinline__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }

__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }

// 16 bytes into another block's shared memory, counted by its barrier there.
__device__ __forceinline__ void send_16(unsigned to, float4 value, unsigned barrier) {
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(to),
        "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w), "r"(barrier)
        : "memory");
}

// Until all the expected bytes have come, which are then seen.
__device__ __forceinline__ void wait_for_bytes(unsigned barrier) {
    unsigned open = 0;
    while (!open)
        asm volatile(
            "{\n\t.reg .pred p;\n\t"
            "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0;\n\t"
            "selp.u32 %0, 1, 0, p;\n\t}"
            : "=r"(open)
            : "r"(barrier)
            : "memory");
}
