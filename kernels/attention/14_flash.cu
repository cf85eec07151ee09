// Rung 14, flash attention: a block owns 8 queries of one head; keys and values stream through shared
// memory in tiles of 32 that serve all 8, and the softmax is computed online with a running maximum.
// Against 07_parallel: each key and value is read from L2 once for 8 queries instead of once for each;
// no score leaves its warp. Tiles wholly in the future are skipped.
// Should be faster from 8 queries on; a single query has nothing to share.
// For d_head of 64 or 128, any seq, leading dimensions of 4. Deterministic: tiles in order.
#include "dependent_launch.cuh"
#include "flash.cuh"

template <int D>
__device__ __forceinline__ void flash_block(const AttentionArgs& args) {
    extern __shared__ float4 shared4[];
    griddep_launch_dependents();
    griddep_wait();
    flash<D>(args, *reinterpret_cast<FlashTiles<D>*>(shared4), blockIdx.x, blockIdx.y, blockIdx.z);
}

extern "C" __global__ void __launch_bounds__(flash_shape::THREADS, 4)
    attention_flash_64(const __grid_constant__ AttentionArgs args) {
    flash_block<64>(args);
}

extern "C" __global__ void __launch_bounds__(flash_shape::THREADS, 4)
    attention_flash_128(const __grid_constant__ AttentionArgs args) {
    flash_block<128>(args);
}
