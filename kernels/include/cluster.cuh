// Thread block clusters (sm_90 and up): a block's rank, the cluster's barrier, and distributed shared memory.
// Each function is named after the PTX instruction or special register that it uses.
#pragma once

// Rank of this block in its cluster.
__device__ __forceinline__ int cluster_ctarank() {
    int rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// Index of this cluster along the grid's x axis.
__device__ __forceinline__ int clusterid_x() {
    int index;
    asm("mov.u32 %0, %%clusterid.x;" : "=r"(index));
    return index;
}

// Arrives at the cluster's barrier. A thread that has waited sees what this thread wrote to shared memory before.
__device__ __forceinline__ void cluster_arrive_release() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

// Arrives without making any write visible.
__device__ __forceinline__ void cluster_arrive_relaxed() {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

// Waits until all threads of the cluster have arrived.
__device__ __forceinline__ void cluster_wait_acquire() {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Loads 16 bytes from the shared memory of block `rank`, at the offset that `local` has in this block's own.
__device__ __forceinline__ float4 ld_shared_cluster_float4(const float* local, int rank) {
    const unsigned own_address = static_cast<unsigned>(__cvta_generic_to_shared(local));
    unsigned address;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(own_address), "r"(rank));
    float4 value;
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
                 : "r"(address));
    return value;
}
