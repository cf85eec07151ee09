// Bulk copies of boxes by the copy engine, TMA (sm_90): one thread asks for a box of a tensor in global memory, and an
// mbarrier learns when its bytes have come. Each function is named after the PTX instruction that it issues.
//
// The host encodes tensor and box in a tensor map (cuTensorMapEncodeTiled), which is passed by value in a kernel's
// parameter struct, before all else in it. All maps here have these things in common:
//   - Elements are float, and are rounded to the nearest TF32 value on their way.
//   - The innermost dimension is 32 floats of K, and the third counts such chunks, so that a box of [rows, chunks]
//     arrives as one swizzled tile for each chunk, [chunk][row][32], as wgmma.cuh wants it.
//   - What lies outside the tensor arrives as zeros, and its bytes count as come.
#pragma once
#include "mbarrier.cuh"

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

// Fetches the map itself, so that the first copy need not wait for it.
__device__ __forceinline__ void prefetch_tensormap(const TensorMap& map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// Orders what ordinary stores have made visible in global memory before the copies that this thread starts next.
__device__ __forceinline__ void fence_proxy_async_global() { asm volatile("fence.proxy.async.global;" ::: "memory"); }

// Starts the copy of the box at (0, row, chunk).
__device__ __forceinline__ void cp_async_bulk_tensor_3d(void* shared, const TensorMap& map, int row, int chunk,
                                                        Mbarrier* barrier) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(shared_address(shared)),
        "l"(&map), "r"(0), "r"(row), "r"(chunk), "r"(shared_address(barrier))
        : "memory");
}

// The same into the shared memory of all blocks of the cluster whose bits are set in `ranks`, and for the barrier of each.
__device__ __forceinline__ void cp_async_bulk_tensor_3d_multicast(void* shared, const TensorMap& map, int row, int chunk,
                                                                  Mbarrier* barrier, unsigned ranks) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(shared_address(shared)),
        "l"(&map), "r"(0), "r"(row), "r"(chunk), "r"(shared_address(barrier)), "h"(static_cast<unsigned short>(ranks))
        : "memory");
}

// To this block alone, in a tensor of several matrices: the box at (0, row, chunk, matrix).
__device__ __forceinline__ void cp_async_bulk_tensor_4d(void* shared, const TensorMap& map, int row, int chunk,
                                                        int matrix, Mbarrier* barrier) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(shared_address(shared)),
        "l"(&map), "r"(0), "r"(row), "r"(chunk), "r"(matrix), "r"(shared_address(barrier))
        : "memory");
}
