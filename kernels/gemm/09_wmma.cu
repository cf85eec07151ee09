// Rung 9, tensor cores by hand: warp-level WMMA fragments in TF32 in place of 08's register micro-tiles.
// Against 08_sass_fp32: one instruction does 4,096 FLOPs of a 16x16x8 product, so issue slots no longer
// bind; the staging by cp.async, the two buffers and split-K are the same. Operands are rounded to
// nearest TF32 as fragments are loaded, sums stay fp32.
// Should be faster than the library where its tiles are too few: the narrow outputs (wo, w2).
// For rows a multiple of 128 or 64, columns of 64, inner of 32, leading dimensions of 4.
// Transposed weights. Deterministic: parts are added in order.
#include <mma.h>

#include "split.cuh"
#include "staged_tile.cuh"

using namespace nvcuda;

constexpr int COLUMNS = 64, DEPTH = 32, M = 16, N = 16, K = 8;
constexpr int WARP_ROWS = 32, WARP_COLUMNS = 32;

template <class Fragment>
__device__ __forceinline__ void round_to_tf32(Fragment& fragment) {
#pragma unroll
    for (int i = 0; i < fragment.num_elements; ++i) fragment.x[i] = wmma::__float_to_tf32(fragment.x[i]);
}

template <int ROWS>
__device__ __forceinline__ void wmma_tile(const GemmArgs& args) {
    constexpr int WARPS_X = COLUMNS / WARP_COLUMNS;
    constexpr int THREADS = 32 * WARPS_X * (ROWS / WARP_ROWS);
    constexpr int ACROSS = WARP_COLUMNS / N, DOWN = WARP_ROWS / M;
    using Stage = StagedTile<ROWS, COLUMNS, DEPTH, THREADS, 4, 8>;
    extern __shared__ float4 shared4[];
    float* shared = reinterpret_cast<float*>(shared4);

    const int block_row = blockIdx.y * ROWS, block_column = blockIdx.x * COLUMNS;
    const int warp = threadIdx.x >> 5;
    const int warp_row = warp / WARPS_X * WARP_ROWS, warp_column = warp % WARPS_X * WARP_COLUMNS;
    const int begin = split_begin(args, blockIdx.z, DEPTH), end = split_begin(args, blockIdx.z + 1, DEPTH);

    wmma::fragment<wmma::accumulator, M, N, K, float> sum[DOWN][ACROSS];
#pragma unroll
    for (int i = 0; i < DOWN; ++i)
#pragma unroll
        for (int j = 0; j < ACROSS; ++j) wmma::fill_fragment(sum[i][j], 0.0f);

    Stage::fetch(args, shared, block_row, block_column, begin);
    copy_async_commit();
    int buffer = 0;
    for (int k0 = begin; k0 < end; k0 += DEPTH) {
        copy_async_wait<0>();
        __syncthreads();
        if (k0 + DEPTH < end)
            Stage::fetch(args, shared + (buffer ^ 1) * Stage::FLOATS, block_row, block_column, k0 + DEPTH);
        copy_async_commit();
        const float* a_tile = Stage::a_tile(shared + buffer * Stage::FLOATS) + warp_row * Stage::A_LD;
        const float* w_tile = Stage::w_tile(shared + buffer * Stage::FLOATS) + warp_column;
#pragma unroll
        for (int k = 0; k < DEPTH; k += K) {
            wmma::fragment<wmma::matrix_a, M, N, K, wmma::precision::tf32, wmma::row_major> a[DOWN];
            wmma::fragment<wmma::matrix_b, M, N, K, wmma::precision::tf32, wmma::row_major> w[ACROSS];
#pragma unroll
            for (int i = 0; i < DOWN; ++i) {
                wmma::load_matrix_sync(a[i], a_tile + i * M * Stage::A_LD + k, Stage::A_LD);
                round_to_tf32(a[i]);
            }
#pragma unroll
            for (int j = 0; j < ACROSS; ++j) {
                wmma::load_matrix_sync(w[j], w_tile + k * Stage::W_LD + j * N, Stage::W_LD);
                round_to_tf32(w[j]);
            }
#pragma unroll
            for (int i = 0; i < DOWN; ++i)
#pragma unroll
                for (int j = 0; j < ACROSS; ++j) wmma::mma_sync(sum[i][j], a[i], w[j], sum[i][j]);
        }
        buffer ^= 1;
    }
    copy_async_wait<0>();
    __syncthreads();

    // Fragments do not say which element is whose: they go through shared memory, a tile a warp.
    constexpr int LD = WARP_COLUMNS + 4;
    float* tile = shared + warp * WARP_ROWS * LD;
#pragma unroll
    for (int i = 0; i < DOWN; ++i)
#pragma unroll
        for (int j = 0; j < ACROSS; ++j)
            wmma::store_matrix_sync(tile + i * M * LD + j * N, sum[i][j], LD, wmma::mem_row_major);
    __syncwarp();
    const int lane = threadIdx.x & 31;
    const int column = block_column + warp_column + lane;
#pragma unroll 8
    for (int i = 0; i < WARP_ROWS; ++i) {
        const int row = block_row + warp_row + i;
        const float value = tile[i * LD + lane];
        if (args.splits > 1)
            partial_tile(args, blockIdx.z)[static_cast<long long>(row) * args.columns + column] = value;
        else
            store(args, value, row, column);
    }
}

extern "C" __global__ void __launch_bounds__(256) gemm_wmma_tall(const __grid_constant__ GemmArgs args) {
    wmma_tile<128>(args);
}

extern "C" __global__ void __launch_bounds__(128) gemm_wmma_short(const __grid_constant__ GemmArgs args) {
    wmma_tile<64>(args);
}

extern "C" __global__ void gemm_wmma_reduce(const __grid_constant__ GemmArgs args) { reduce_splits(args); }
