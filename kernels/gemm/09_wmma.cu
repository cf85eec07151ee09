// Rung 9, tensor cores by hand: warp-level WMMA fragments in TF32 replace 08's register micro-tiles.
// Against 08_sass_fp32: one instruction does the 4,096 FLOPs of a 16x16x8 product, so issue slots no longer bind.
// cp.async staging, two buffers and split-K stay the same. Operands are rounded to the nearest TF32 value when
// fragments are loaded; accumulators stay fp32.
// Should be faster than the library when its tiles are too few: the narrow outputs (wo, w2).
// Shapes: rows a multiple of 128 (tall) or 64 (short), columns of 64, inner of 16, leading dimensions of 4.
// Transposed weights. Deterministic: partial results are added in order.
//
// Tile and warps (tall: 128x64, 8 warps; short: 64x64, 4 warps):
//
//   block (x, y, z) owns rows 128y.. (short: 64y..) and columns 64x.., and of K only split z
//
//                 32 columns   32 columns
//               +------------+------------+
//    32 rows    |   warp 0   |   warp 1   |       A warp owns 32x32 as 2x2 accumulator fragments of 16x16
//    32 rows    |   warp 2   |   warp 3   |       (wmma_tile.cuh); WMMA hides which lane holds which element.
//    32 rows    |   warp 4   |   warp 5   | tall
//    32 rows    |   warp 6   |   warp 7   | tall
//               +------------+------------+
//
//   K: steps of 16, two wmma each of K = 8. Each step: wait for the copy, barrier, start the next copy into the
//   other buffer, multiply.
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
        tile.mma<DEPTH, Stage::A_LD, Stage::W_LD>(Stage::a_tile(stage) + warp_row * Stage::A_LD,
                                                  Stage::w_tile(stage) + warp_column);
        buffer ^= 1;
    }
    __syncthreads();
    tile.store_tile(args, blockIdx.z, shared + warp * WarpTile::STORE_FLOATS, block_row + warp_row,
                    block_column + warp_column);
}

extern "C" __global__ void __launch_bounds__(256) gemm_wmma_tall(const __grid_constant__ GemmArgs args) {
    wmma_gemm<128>(args);
}

extern "C" __global__ void __launch_bounds__(128) gemm_wmma_short(const __grid_constant__ GemmArgs args) {
    wmma_gemm<64>(args);
}

extern "C" __global__ void gemm_wmma_reduce(const __grid_constant__ GemmArgs args) { reduce_splits(args); }
