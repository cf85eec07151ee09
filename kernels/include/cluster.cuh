// Thread block clusters (sm_90 and up): a block's rank, the cluster's barrier, and distributed shared memory.
// Each function is named after the PTX instruction or special register that it uses.
#pragma once
#include "mbarrier.cuh"

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

// Address in the shared memory of block `rank` that `local` has in this block's own.
__device__ __forceinline__ unsigned mapa_shared_cluster(const void* local, int rank) {
    unsigned address;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared_address(local)), "r"(rank));
    return address;
}

// Loads 16 bytes from the shared memory of block `rank`, at the offset that `local` has in this block's own.
__device__ __forceinline__ float4 ld_shared_cluster_float4(const float* local, int rank) {
    float4 value;
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
                 : "r"(mapa_shared_cluster(local, rank)));
    return value;
}

// Starts a store of 16 bytes into the shared memory of block `rank`. Its barrier there learns when they have come;
// both offsets are as in this block's own.
__device__ __forceinline__ void st_async_float4(float4* local, float4 value, Mbarrier* local_barrier, int rank) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
                     mapa_shared_cluster(local, rank)),
                 "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w), "r"(mapa_shared_cluster(local_barrier, rank))
                 : "memory");
}
