// Rung 8, written against the SASS of 06_split_k: the inner loop there issues about as many address and
// bounds instructions as multiply-adds.
// Against 06_split_k: shapes are exact multiples of the tile, so the loop carries no predicate; tiles are
// staged 16 bytes at a time by cp.async into one of two buffers while the other is used; a thread holds an
// 8x8 block of accumulators and reads shared memory as float4, 4 loads for 64 multiply-adds.
// Should be faster wherever issue slots were short: every GEMM with 128 or more rows.
// For rows a multiple of 128, columns of 128 or 64, inner of 16, leading dimensions of 4.
// Transposed weights. Deterministic: parts are added in order.
#include "split.cuh"
#include "staged_tile.cuh"

constexpr int ROWS = 128, DEPTH = 16, MICRO = 8;

template <int COLUMNS>
__device__ __forceinline__ void sass_fp32(const GemmArgs& args) {
    constexpr int THREADS = ROWS * COLUMNS / (MICRO * MICRO);
    constexpr int WARPS_X = COLUMNS / 64;
    constexpr int GROUP = COLUMNS / 2;  // a thread's columns lie in two groups of 4, GROUP apart
    using Stage = StagedTile<ROWS, COLUMNS, DEPTH, THREADS, 4, 0>;
    extern __shared__ float4 shared4[];
    float* shared = reinterpret_cast<float*>(shared4);

    const int block_row = blockIdx.y * ROWS, block_column = blockIdx.x * COLUMNS;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int tx = warp % WARPS_X * 8 + (lane & 7);   // columns tx*4 .. +3 and GROUP further
    const int ty = warp / WARPS_X * 4 + (lane >> 3);  // rows ty, ty+16, ty+32, ...
    const int begin = split_begin(args, blockIdx.z, DEPTH), end = split_begin(args, blockIdx.z + 1, DEPTH);

    float sum[MICRO][MICRO] = {};
    Stage::fetch(args, shared, block_row, block_column, begin);
    copy_async_commit();
    int buffer = 0;
    for (int k0 = begin; k0 < end; k0 += DEPTH) {
        copy_async_wait<0>();
        __syncthreads();
        if (k0 + DEPTH < end)
            Stage::fetch(args, shared + (buffer ^ 1) * Stage::FLOATS, block_row, block_column, k0 + DEPTH);
        copy_async_commit();
        const float* a_tile = Stage::a_tile(shared + buffer * Stage::FLOATS) + ty * Stage::A_LD;
        const float* w_tile = Stage::w_tile(shared + buffer * Stage::FLOATS) + tx * 4;
#pragma unroll
        for (int k4 = 0; k4 < DEPTH; k4 += 4) {
            float4 a[MICRO];
#pragma unroll
            for (int i = 0; i < MICRO; ++i)
                a[i] = *reinterpret_cast<const float4*>(a_tile + i * 16 * Stage::A_LD + k4);
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                const float4 low = *reinterpret_cast<const float4*>(w_tile + (k4 + k) * Stage::W_LD);
                const float4 high = *reinterpret_cast<const float4*>(w_tile + (k4 + k) * Stage::W_LD + GROUP);
                const float w[MICRO] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
                for (int i = 0; i < MICRO; ++i) {
                    const float value = k == 0 ? a[i].x : k == 1 ? a[i].y : k == 2 ? a[i].z : a[i].w;
#pragma unroll
                    for (int j = 0; j < MICRO; ++j) sum[i][j] += value * w[j];
                }
            }
        }
        buffer ^= 1;
    }

#pragma unroll
    for (int i = 0; i < MICRO; ++i) {
#pragma unroll
        for (int group = 0; group < 2; ++group) {
            const int row = block_row + ty + i * 16, column = block_column + tx * 4 + group * GROUP;
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
    sass_fp32<128>(args);
}

extern "C" __global__ void __launch_bounds__(128, 2) gemm_sass_fp32_narrow(const __grid_constant__ GemmArgs args) {
    sass_fp32<64>(args);
}

extern "C" __global__ void gemm_sass_fp32_reduce(const __grid_constant__ GemmArgs args) { reduce_splits(args); }
