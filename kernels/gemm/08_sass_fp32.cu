// Rung 8, written against the SASS of 06_split_k: the inner loop there issues about as many address and
// bounds instructions as multiply-adds.
// Against 06_split_k: shapes are exact multiples of the tile, so the loop carries no predicate; tiles are
// staged 16 bytes at a time by cp.async into one of two buffers while the other is used; a thread holds an
// 8x8 (or 8x4) block of accumulators and reads shared memory as float4, 4 loads for 64 multiply-adds.
// Should be faster wherever issue slots were short: every GEMM with 64 or more rows.
// For rows a multiple of 128 (square: 64), columns of 128 (wide) or 64, inner of 16 (square: 32), leading
// dimensions of 4.
// Transposed weights. Deterministic: parts are added in order.
#include "split_k.cuh"
#include "staged_tile.cuh"

constexpr int MICRO_ROWS = 8;

template <int ROWS, int COLUMNS, int MICRO_COLUMNS, int DEPTH>
__device__ __forceinline__ void sass_fp32(const GemmArgs& args) {
    constexpr int ACROSS = COLUMNS / MICRO_COLUMNS, DOWN = ROWS / MICRO_ROWS;  // threads
    constexpr int THREADS = ACROSS * DOWN;
    constexpr int WARPS_X = ACROSS / 8;
    constexpr int GROUPS = MICRO_COLUMNS / 4;  // a thread's columns lie in groups of 4, GROUP_STEP apart
    constexpr int GROUP_STEP = ACROSS * 4;
    using Stage = StagedTile<ROWS, COLUMNS, DEPTH, THREADS, 4, 0>;
    extern __shared__ float4 shared4[];
    float* shared = reinterpret_cast<float*>(shared4);

    const int block_row = blockIdx.y * ROWS, block_column = blockIdx.x * COLUMNS;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int tx = warp % WARPS_X * 8 + (lane & 7);   // columns tx*4 .. +3 of each group
    const int ty = warp / WARPS_X * 4 + (lane >> 3);  // rows ty, ty + DOWN, ty + 2 DOWN, ...
    const int begin = split_begin(args, blockIdx.z, DEPTH), end = split_begin(args, blockIdx.z + 1, DEPTH);

    float sum[MICRO_ROWS][MICRO_COLUMNS] = {};
    Stage::fetch(args, shared, block_row, block_column, begin);
    cp_async_commit_group();
    int buffer = 0;
    for (int k0 = begin; k0 < end; k0 += DEPTH) {
        cp_async_wait_group<0>();
        __syncthreads();
        if (k0 + DEPTH < end)
            Stage::fetch(args, shared + (buffer ^ 1) * Stage::FLOATS, block_row, block_column, k0 + DEPTH);
        cp_async_commit_group();
        const float* a_tile = Stage::a_tile(shared + buffer * Stage::FLOATS) + ty * Stage::A_LD;
        const float* w_tile = Stage::w_tile(shared + buffer * Stage::FLOATS) + tx * 4;
#pragma unroll
        for (int k4 = 0; k4 < DEPTH; k4 += 4) {
            float4 a[MICRO_ROWS];
#pragma unroll
            for (int i = 0; i < MICRO_ROWS; ++i)
                a[i] = *reinterpret_cast<const float4*>(a_tile + i * DOWN * Stage::A_LD + k4);
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                float w[MICRO_COLUMNS];
#pragma unroll
                for (int group = 0; group < GROUPS; ++group)
                    *reinterpret_cast<float4*>(w + group * 4) = *reinterpret_cast<const float4*>(
                        w_tile + (k4 + k) * Stage::W_LD + group * GROUP_STEP);
#pragma unroll
                for (int i = 0; i < MICRO_ROWS; ++i) {
                    const float value = k == 0 ? a[i].x : k == 1 ? a[i].y : k == 2 ? a[i].z : a[i].w;
#pragma unroll
                    for (int j = 0; j < MICRO_COLUMNS; ++j) sum[i][j] += value * w[j];
                }
            }
        }
        buffer ^= 1;
    }

#pragma unroll
    for (int i = 0; i < MICRO_ROWS; ++i) {
#pragma unroll
        for (int group = 0; group < GROUPS; ++group) {
            const int row = block_row + ty + i * DOWN, column = block_column + tx * 4 + group * GROUP_STEP;
            if (args.splits > 1) {
                float* partial = partial_tile(args, blockIdx.z) + static_cast<long long>(row) * args.columns + column;
                *reinterpret_cast<float4*>(partial) = make_float4(sum[i][group * 4], sum[i][group * 4 + 1],
                                                                  sum[i][group * 4 + 2], sum[i][group * 4 + 3]);
            } else {
#pragma unroll
                for (int j = 0; j < 4; ++j) store(args, sum[i][group * 4 + j], row, column + j);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(256, 1) gemm_sass_fp32_wide(const __grid_constant__ GemmArgs args) {
    sass_fp32<128, 128, 8, 16>(args);
}

extern "C" __global__ void __launch_bounds__(128, 2) gemm_sass_fp32_narrow(const __grid_constant__ GemmArgs args) {
    sass_fp32<128, 64, 8, 16>(args);
}

extern "C" __global__ void __launch_bounds__(128, 3) gemm_sass_fp32_square(const __grid_constant__ GemmArgs args) {
    sass_fp32<64, 64, 4, 32>(args);
}

extern "C" __global__ void gemm_sass_fp32_reduce(const __grid_constant__ GemmArgs args) { reduce_splits(args); }
