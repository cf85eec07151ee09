// Rung 12, the assault on w2: three standard remedies for a loop that waits, applied together.
// Against 09_wmma:
//   - addresses: pointers that advance by a constant replace products;
//   - depth: each stage has twice as many inner indices, so there are half as many barriers;
//   - stages: a ring of three keeps two copies in flight instead of one.
// Should be faster if the instruction stream or the latency of the copies sets w2's time. If the three together
// change nothing, the shape sets it.
// Shapes: rows a multiple of 128 (tall) or 64 (short), columns of 64, inner of 32, leading dimensions of 4.
// Transposed weights. Deterministic: partial results are added in order.
// The ladder uses `tall`; `short` is a further choice in this rung's menu.
//
// Tile and warps: as in 09_wmma.
//
//   block (x, y, z) owns rows 128y.. (short: 64y..) and columns 64x.., and of K only split z; 4x2 (short: 2x2) warps
//   own 32x32 each.
//
//   K: steps of 32 through a ring of 3 stages. At step s:
//
//        stage s % 3          stage (s + 1) % 3      stage (s + 2) % 3
//        multiplied now       copy in flight         copy started now, after the barrier
#include "cp_async.cuh"
#include "wmma_tile.cuh"

constexpr int COLUMNS = 64, DEPTH = 32, STAGES = 3;
constexpr int A_LD = DEPTH + 4, W_LD = COLUMNS + 8;

template <int ROWS>
__device__ __forceinline__ void assault(const GemmArgs& args) {
    constexpr int WARPS_X = COLUMNS / WarpTile::COLUMNS;
    constexpr int THREADS = 32 * WARPS_X * (ROWS / WarpTile::ROWS);
    constexpr int FLOATS = ROWS * A_LD + DEPTH * W_LD;  // of a stage
    // Rows that all threads together copy at once, 16 bytes a thread.
    constexpr int A_ROWS = THREADS / (DEPTH / 4), W_ROWS = THREADS / (COLUMNS / 4);
    extern __shared__ float4 shared4[];
    float* shared = reinterpret_cast<float*>(shared4);

    const int block_row = blockIdx.y * ROWS, block_column = blockIdx.x * COLUMNS;
    const int warp = threadIdx.x >> 5;
    const int warp_row = warp / WARPS_X * WarpTile::ROWS, warp_column = warp % WARPS_X * WarpTile::COLUMNS;
    const int begin = split_begin(args, blockIdx.z, DEPTH), end = split_begin(args, blockIdx.z + 1, DEPTH);
    const int steps = (end - begin) / DEPTH;

    const int a_row = threadIdx.x / (DEPTH / 4), a_k = threadIdx.x % (DEPTH / 4) * 4;
    const int w_k = threadIdx.x / (COLUMNS / 4), w_column = threadIdx.x % (COLUMNS / 4) * 4;
    const float* a_global = args.a + static_cast<long long>(block_row + a_row) * args.lda + begin + a_k;
    const float* w_global = args.w + static_cast<long long>(begin + w_k) * args.ldw + block_column + w_column;
    const long long a_rows_stride = static_cast<long long>(A_ROWS) * args.lda;
    const long long w_rows_stride = static_cast<long long>(W_ROWS) * args.ldw;
    const long long w_step_stride = static_cast<long long>(DEPTH) * args.ldw;
    float* const a_shared = shared + a_row * A_LD + a_k;
    float* const w_shared = shared + ROWS * A_LD + w_k * W_LD + w_column;

    auto fetch = [&](int stage) {
        const float* a = a_global;
        const float* w = w_global;
#pragma unroll
        for (int i = 0; i < ROWS / A_ROWS; ++i, a += a_rows_stride)
            cp_async_16(a_shared + stage * FLOATS + i * A_ROWS * A_LD, a);
#pragma unroll
        for (int i = 0; i < DEPTH / W_ROWS; ++i, w += w_rows_stride)
            cp_async_16(w_shared + stage * FLOATS + i * W_ROWS * W_LD, w);
        a_global += DEPTH;
        w_global += w_step_stride;
    };

    WarpTile tile;
    tile.clear();
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; ++stage) {
        if (stage < steps) fetch(stage);
        cp_async_commit_group();
    }
    int stage = 0, fetch_stage = STAGES - 1;
    for (int step = 0; step < steps; ++step) {
        cp_async_wait_group<STAGES - 2>();
        __syncthreads();
        if (step + STAGES - 1 < steps) fetch(fetch_stage);
        cp_async_commit_group();
        const float* a_tile = shared + stage * FLOATS + warp_row * A_LD;
        const float* w_tile = shared + stage * FLOATS + ROWS * A_LD + warp_column;
        tile.mma<DEPTH, A_LD, W_LD>(a_tile, w_tile);
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        fetch_stage = fetch_stage + 1 == STAGES ? 0 : fetch_stage + 1;
    }
    __syncthreads();
    tile.store_tile(args, blockIdx.z, shared + warp * WarpTile::STORE_FLOATS, block_row + warp_row,
                    block_column + warp_column);
}

extern "C" __global__ void __launch_bounds__(256) gemm_w2_assault_tall(const __grid_constant__ GemmArgs args) {
    assault<128>(args);
}

extern "C" __global__ void __launch_bounds__(128) gemm_w2_assault_short(const __grid_constant__ GemmArgs args) {
    assault<64>(args);
}

extern "C" __global__ void gemm_w2_assault_reduce(const __grid_constant__ GemmArgs args) { reduce_splits(args); }
