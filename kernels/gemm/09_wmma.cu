// Rung 9, tensor cores by hand: warp-level WMMA fragments in TF32 in place of 08's register micro-tiles.
// Against 08_sass_fp32: one instruction does 4,096 FLOPs of a 16x16x8 product, so issue slots no longer
// bind; the staging by cp.async, the two buffers and split-K are the same. Operands are rounded to
// nearest TF32 as fragments are loaded, sums stay fp32.
// Should be faster than the library where its tiles are too few: the narrow outputs (wo, w2).
// For rows a multiple of 128 or 64, columns of 64, inner of 16, leading dimensions of 4.
// Transposed weights. Deterministic: parts are added in order.
#include "staged_tile.cuh"
#include "wmma_tile.cuh"

constexpr int COLUMNS = 64, DEPTH = 16;

template <int ROWS>
__device__ __forceinline__ void wmma_gemm(const GemmArgs& args) {
    constexpr int WARPS_X = COLUMNS / WarpTile::COLUMNS;
    constexpr int THREADS = 32 * WARPS_X * (ROWS / WarpTile::ROWS);
    using Stage = StagedTile<ROWS, COLUMNS, DEPTH, THREADS, 4, 8>;
    extern __shared__ float4 shared4[];
    float* shared = reinterpret_cast<float*>(shared4);

    const int block_row = blockIdx.y * ROWS, block_column = blockIdx.x * COLUMNS;
    const int warp = threadIdx.x >> 5;
    const int warp_row = warp / WARPS_X * WarpTile::ROWS, warp_column = warp % WARPS_X * WarpTile::COLUMNS;
    const int begin = split_begin(args, blockIdx.z, DEPTH), end = split_begin(args, blockIdx.z + 1, DEPTH);

    WarpTile tile;
    tile.clear();
    Stage::fetch(args, shared, block_row, block_column, begin);
    cp_async_commit_group();
    int buffer = 0;
    for (int k0 = begin; k0 < end; k0 += DEPTH) {
        cp_async_wait_group<0>();
        __syncthreads();
        if (k0 + DEPTH < end)
            Stage::fetch(args, shared + (buffer ^ 1) * Stage::FLOATS, block_row, block_column, k0 + DEPTH);
        cp_async_commit_group();
        float* stage = shared + buffer * Stage::FLOATS;
        tile.multiply<DEPTH, Stage::A_LD, Stage::W_LD>(Stage::a_tile(stage) + warp_row * Stage::A_LD,
                                                       Stage::w_tile(stage) + warp_column);
        buffer ^= 1;
    }
    __syncthreads();
    tile.put(args, blockIdx.z, shared + warp * WarpTile::STORE_FLOATS, block_row + warp_row,
             block_column + warp_column);
}

extern "C" __global__ void __launch_bounds__(256) gemm_wmma_tall(const __grid_constant__ GemmArgs args) {
    wmma_gemm<128>(args);
}

extern "C" __global__ void __launch_bounds__(128) gemm_wmma_short(const __grid_constant__ GemmArgs args) {
    wmma_gemm<64>(args);
}

extern "C" __global__ void gemm_wmma_reduce(const __grid_constant__ GemmArgs args) { reduce_splits(args); }
