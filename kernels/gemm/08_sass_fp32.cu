// Rung 8, written against the SASS of 06_split_k, whose inner loop issues about as many address and bounds
// instructions as multiply-adds.
// Against 06_split_k: three changes, all to issue fewer instructions for a multiply-add.
//   - Shapes are exact multiples of the tile, so the loop has no predicates.
//   - cp.async stages tiles 16 bytes at a time into one of two buffers while the other is used.
//   - A thread has 8x8 (or 8x4) accumulators and reads shared memory as float4: 4 loads for 64 multiply-adds.
// Should be faster when issue slots bind: every GEMM with 64 rows or more.
// Shapes: rows a multiple of 128 (square: 64), columns of 128 (wide) or 64, inner of 16 (square: 32), leading
// dimensions of 4. Transposed weights. Deterministic: partial results are added in order.
// The ladder uses `square`; `wide` and `narrow` are further choices in this rung's menu.
//
// Tile, warps, lanes and accumulators (square: 64x64, 128 threads; THREADS_X = 16, THREADS_Y = 8):
//
//   block (x, y, z) owns rows 64y.. and columns 64x.., and of K only split z
//
//   threads of the tile, 16 across and 8 down: 2x2 warps    lanes of a warp, 8 across and 4 down
//
//              tx 0-7    tx 8-15                              +---+---+- ... -+---+
//             +---------+---------+                           | 0 | 1 |       | 7 |
//    ty 0-3   | warp 0  | warp 1  |                           | 8 | 9 |       |15 |
//    ty 4-7   | warp 2  | warp 3  |                           |16 |17 |       |23 |
//             +---------+---------+                           |24 |25 |       |31 |
//                                                             +---+---+- ... -+---+
//   thread (tx, ty) owns acc[i][j]:
//     row     ty + 8i  (i = 0..7)               the rows of one thread interleave with those of its neighbours
//     column  4 tx + j (j = 0..3)               wide and narrow, MICRO_COLUMNS = 8: columns 4 to 7 lie
//                                               4 THREADS_X further right
//   So a warp reads 4 different rows of a_tile (broadcast to 8 lanes) and 8 neighbouring float4 of w_tile.
//
//   K: steps of DEPTH. Each step: wait for the copy, barrier, start the next copy into the other buffer, then for
//   every 4 indices 8 float4 of a (4 indices of 8 rows) and, for each index, its float4 of w.
#include "split_k.cuh"
#include "staged_tile.cuh"

constexpr int MICRO_ROWS = 8;

template <int ROWS, int COLUMNS, int MICRO_COLUMNS, int DEPTH>
__device__ __forceinline__ void sass_fp32(const GemmArgs& args) {
    constexpr int THREADS_X = COLUMNS / MICRO_COLUMNS, THREADS_Y = ROWS / MICRO_ROWS;
    constexpr int THREADS = THREADS_X * THREADS_Y;
    constexpr int WARPS_X = THREADS_X / 8;
    constexpr int FLOAT4S = MICRO_COLUMNS / 4;    // of neighbouring columns that a thread owns
    constexpr int FLOAT4_STEP = THREADS_X * 4;    // columns from one of them to the next
    using Stage = StagedTile<ROWS, COLUMNS, DEPTH, THREADS, 4, 0>;
    extern __shared__ float4 shared4[];
    float* shared = reinterpret_cast<float*>(shared4);

    const int block_row = blockIdx.y * ROWS, block_column = blockIdx.x * COLUMNS;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int tx = warp % WARPS_X * 8 + (lane & 7);
    const int ty = warp / WARPS_X * 4 + (lane >> 3);
    const int begin = split_begin(args, blockIdx.z, DEPTH), end = split_begin(args, blockIdx.z + 1, DEPTH);

    float acc[MICRO_ROWS][MICRO_COLUMNS] = {};
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
                a[i] = *reinterpret_cast<const float4*>(a_tile + i * THREADS_Y * Stage::A_LD + k4);
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                float w[MICRO_COLUMNS];
#pragma unroll
                for (int j4 = 0; j4 < FLOAT4S; ++j4)
                    *reinterpret_cast<float4*>(w + j4 * 4) = *reinterpret_cast<const float4*>(
                        w_tile + (k4 + k) * Stage::W_LD + j4 * FLOAT4_STEP);
#pragma unroll
                for (int i = 0; i < MICRO_ROWS; ++i) {
                    const float a_k = k == 0 ? a[i].x : k == 1 ? a[i].y : k == 2 ? a[i].z : a[i].w;
#pragma unroll
                    for (int j = 0; j < MICRO_COLUMNS; ++j) acc[i][j] += a_k * w[j];
                }
            }
        }
        buffer ^= 1;
    }

#pragma unroll
    for (int i = 0; i < MICRO_ROWS; ++i) {
#pragma unroll
        for (int j4 = 0; j4 < FLOAT4S; ++j4) {
            const int row = block_row + ty + i * THREADS_Y, column = block_column + tx * 4 + j4 * FLOAT4_STEP;
            if (args.splits > 1) {
                float* partial = partial_tile(args, blockIdx.z) + static_cast<long long>(row) * args.columns + column;
                *reinterpret_cast<float4*>(partial) =
                    make_float4(acc[i][j4 * 4], acc[i][j4 * 4 + 1], acc[i][j4 * 4 + 2], acc[i][j4 * 4 + 3]);
            } else {
#pragma unroll
                for (int j = 0; j < 4; ++j) store(args, acc[i][j4 * 4 + j], row, column + j);
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
