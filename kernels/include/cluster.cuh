// Thread block clusters (sm_90 and up): a block's place, a barrier for all blocks of one, and reads of each other's
// shared memory.
#pragma once

// This block's place in its cluster, and the cluster's along x.
__device__ __forceinline__ int cluster_rank() {
    int rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
__device__ __forceinline__ int cluster_number() {
    int number;
    asm("mov.u32 %0, %%clusterid.x;" : "=r"(number));
    return number;
}

// To all blocks' threads: what this one wrote to shared memory is seen by whoever has waited.
__device__ __forceinline__ void cluster_show() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }

// The same where nothing written needs to be seen: only that this thread has come this far.
__device__ __forceinline__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }

__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

// 16 bytes of block `rank`'s shared memory, at the place that `local` has in one's own.
__device__ __forceinline__ float4 load_from_block(const float* local, int rank) {
    const unsigned mine = static_cast<unsigned>(__cvta_generic_to_shared(local));
    unsigned theirs;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(theirs) : "r"(mine), "r"(rank));
    float4 value;
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
                 : "r"(theirs));
    return value;
}
