// Rung 14 for a d_head of 128 (the other two flash kernels take 64 only): flash attention in fp32. A block owns 8
// queries of one head. Keys and values stream through shared memory in tiles of 32 that serve all 8 queries, and the
// softmax is computed online with a running maximum.
// Against 07_parallel: each key and value is read from L2 once for 8 queries instead of once for each. Scores stay in
// one warp. Tiles that lie wholly in the future are skipped.
// Should be faster from 8 queries on; a single query has nothing to share.
// Shapes: d_head of 64 or 128, any seq, leading dimensions of 4. Deterministic: tiles in order.
//
// Queries, keys and threads (flash.cuh):
//
//   block (x, y, z) owns queries 8x.. of head y of sequence z: 128 threads, 16 lanes a query
//
//                       keys  0..31  32..63  ...  tiles in order, two buffers
//   query 0   threads 0-15   |      |      |      scores: lane l of a query scores keys l and l + 16 of the tile
//   query 1   threads 16-31  |      |      |      values: lane l owns columns 4l.. (d_head 128: and 64 + 4l..)
//     ...
//   query 7   threads 112-127
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
