// Measures what thread block clusters cost: to launch (clustered, in a chain of launches), to wait for each other
// (cluster_barriers), and to read each other's shared memory (dsmem_read).
//
// dsmem_read does what a reduction inside a cluster does: block r of a cluster of n reads the r-th n-th of a tile in
// the shared memory of all n blocks, 16 bytes a thread and eight loads in flight, and adds them up.
// arch: 90
#include "cluster.cuh"
#include "stamp.cuh"

struct ClusterArgs {
    float* out;           // written only if a sum equals a magic number: keeps the compiler from removing the loads
    long long* elapsed;   // cycles, ns
    int repeats;
    int float4s;          // of the tile in each block's shared memory
    int blocks;           // of a cluster
};

constexpr int IN_FLIGHT = 8;

extern "C" __global__ void clustered(const __grid_constant__ ClusterArgs args) {}

extern "C" __global__ void __launch_bounds__(256, 1) cluster_barriers(const __grid_constant__ ClusterArgs args) {
#pragma unroll 1
    for (int i = 0; i < args.repeats; ++i) {
        cluster_arrive_release();
        cluster_wait_acquire();
    }
}

extern "C" __global__ void __launch_bounds__(256, 1) dsmem_read(const __grid_constant__ ClusterArgs args) {
    extern __shared__ __align__(16) float tile[];
    const Stamp begin = now();
    for (int i = threadIdx.x; i < args.float4s * 4; i += blockDim.x) tile[i] = static_cast<float>(i);
    const int rank = cluster_ctarank();
    const int share = args.float4s / args.blocks;
    float4 acc = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    cluster_arrive_release();
    cluster_wait_acquire();
#pragma unroll 1
    for (int repeat = 0; repeat < args.repeats; ++repeat) {
        for (int i = threadIdx.x; i < share; i += blockDim.x) {
            const float* own = tile + (rank * share + i) * 4;
#pragma unroll IN_FLIGHT
            for (int other = 0; other < args.blocks; ++other) {
                const float4 value = ld_shared_cluster_float4(own, other);
                acc = make_float4(acc.x + value.x, acc.y + value.y, acc.z + value.z, acc.w + value.w);
            }
        }
    }
    if (acc.x + acc.y + acc.z + acc.w == 1.2345e38f) args.out[0] = acc.x;
    // No block may leave while another one may still read its shared memory.
    cluster_arrive_relaxed();
    cluster_wait_acquire();
    report(begin, args.elapsed);
}
