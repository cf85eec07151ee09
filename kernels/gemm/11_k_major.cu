// Rung 11's own candidate on tensor cores: weights stored [columns, inner], so that both operands lie
// along the inner axis and ldmatrix hands out whole fragments.
// Against 12_w2_assault: a warp's 32x32x8 product takes 4 ldmatrix and 8 mma.sync instead of 16 loads, 32
// instructions of rounding and 16 half-depth products; weights are sent for all at once; the block that
// finishes a tile last adds its parts, so no second launch does. Operands go in as stored: the hardware drops
// the bits below TF32, which doubles the rounding error and stays within the gate.
// Should be faster wherever issue slots or the second launch were paid for: all GEMMs of 128 rows.
// For rows a multiple of 128 or 64, columns of 64, inner of 32, leading dimensions of 4; at most
// MOST_TILES tiles where split. Row layout. Deterministic: parts are added in order.
// One launch at a time for a loaded module: tickets are shared.
#include "cp_async.cuh"
#include "dependent_launch.cuh"
#include "last_block.cuh"
#include "mma_sync.cuh"

constexpr int COLUMNS = 64, DEPTH = 32, LD = DEPTH + 4;
constexpr int WARP_ROWS = 32, WARP_COLUMNS = 32, WARPS_X = COLUMNS / WARP_COLUMNS;
constexpr int MAX_TILES = 8192;

__device__ unsigned arrival_counters[MAX_TILES];

template <int ROWS>
__device__ __forceinline__ void k_major(const GemmArgs& args) {
    constexpr int STAGES = ROWS == 128 ? 3 : 4;  // what 99 KiB of shared memory, the least of sm_80 and up, can hold
    constexpr int THREADS = 32 * WARPS_X * (ROWS / WARP_ROWS);
    constexpr int SWEEP = THREADS / (DEPTH / 4);  // rows of a tile that one sweep of copies covers
    constexpr int FLOATS = (ROWS + COLUMNS) * LD;
    constexpr int DOWN = WARP_ROWS / 16, ACROSS = WARP_COLUMNS / 8;
    extern __shared__ float4 shared4[];
    griddep_launch_dependents();
    float* const shared = reinterpret_cast<float*>(shared4);

    const int block_row = blockIdx.y * ROWS, block_column = blockIdx.x * COLUMNS;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int warp_row = warp / WARPS_X * WARP_ROWS, warp_column = warp % WARPS_X * WARP_COLUMNS;
    const int begin = split_begin(args, blockIdx.z, DEPTH);
    const int steps = (split_begin(args, blockIdx.z + 1, DEPTH) - begin) / DEPTH;

    const int copy_row = threadIdx.x / (DEPTH / 4), copy_k = threadIdx.x % (DEPTH / 4) * 4;
    const float* a_from = args.a + static_cast<long long>(block_row + copy_row) * args.lda + begin + copy_k;
    const float* w_from = args.w + static_cast<long long>(block_column + copy_row) * args.ldw + begin + copy_k;
    float* const to = shared + copy_row * LD + copy_k;
    // This block's weights all set out for L2 at once, so that DRAM's latency is paid once and not a stage.
    constexpr int LINE = 32;  // floats
    const int lines = steps * DEPTH / LINE;
    for (int i = threadIdx.x; i < COLUMNS * lines; i += THREADS)
        prefetch_global_l2(args.w + static_cast<long long>(block_column + i / lines) * args.ldw + begin + i % lines * LINE);
    griddep_wait();

    auto fetch = [&](int stage) {
#pragma unroll
        for (int i = 0; i < ROWS / SWEEP; ++i)
            cp_async_16(to + stage * FLOATS + i * SWEEP * LD,
                          a_from + static_cast<long long>(i * SWEEP) * args.lda);
#pragma unroll
        for (int i = 0; i < COLUMNS / SWEEP; ++i)
            cp_async_16(to + stage * FLOATS + (ROWS + i * SWEEP) * LD,
                          w_from + static_cast<long long>(i * SWEEP) * args.ldw);
        a_from += DEPTH;
        w_from += DEPTH;
    };

#pragma unroll
    for (int stage = 0; stage < STAGES - 1; ++stage) {
        if (stage < steps) fetch(stage);
        cp_async_commit_group();
    }
    float sum[DOWN][ACROSS][4] = {};
    const float* const a_tile = shared + (warp_row + fragment_a_row(lane)) * LD + fragment_a_k(lane);
    const float* const w_tile = shared + (ROWS + warp_column + fragment_w_column(lane)) * LD + fragment_w_k(lane);
    int stage = 0, ahead = STAGES - 1;
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        cp_async_wait_group<STAGES - 2>();
        __syncthreads();
        if (step + STAGES - 1 < steps) fetch(ahead);
        cp_async_commit_group();
#pragma unroll
        for (int k = 0; k < DEPTH; k += 8) {
            unsigned a[DOWN][4], w[ACROSS / 2][4];
#pragma unroll
            for (int i = 0; i < DOWN; ++i) ldmatrix_x4(a[i], a_tile + stage * FLOATS + i * 16 * LD + k);
#pragma unroll
            for (int j = 0; j < ACROSS / 2; ++j) ldmatrix_x4(w[j], w_tile + stage * FLOATS + j * 16 * LD + k);
#pragma unroll
            for (int i = 0; i < DOWN; ++i)
#pragma unroll
                for (int j = 0; j < ACROSS; ++j) mma_m16n8k8_tf32(sum[i][j], a[i], w[j / 2] + j % 2 * 2);
        }
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        ahead = ahead + 1 == STAGES ? 0 : ahead + 1;
    }

#pragma unroll
    for (int i = 0; i < DOWN; ++i) {
#pragma unroll
        for (int j = 0; j < ACROSS; ++j) {
            const int column = block_column + warp_column + j * 8 + fragment_c_column(lane);
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int row = block_row + warp_row + i * 16 + half * 8 + fragment_c_row(lane);
                const float x = sum[i][j][half * 2], y = sum[i][j][half * 2 + 1];
                if (args.splits > 1) {
                    float* part = partial_tile(args, blockIdx.z) + static_cast<long long>(row) * args.columns + column;
                    *reinterpret_cast<float2*>(part) = make_float2(x, y);
                } else {
                    store(args, x, row, column);
                    store(args, y, row, column + 1);
                }
            }
        }
    }
    if (args.splits > 1 && is_last_block(&arrival_counters[blockIdx.y * gridDim.x + blockIdx.x], args.splits))
        reduce_and_store_tile<ROWS, COLUMNS, THREADS, 4>(args, block_row, block_column);
}

extern "C" __global__ void __launch_bounds__(256, 2) gemm_k_major_tall(const __grid_constant__ GemmArgs args) {
    k_major<128>(args);
}

extern "C" __global__ void __launch_bounds__(128, 3) gemm_k_major_short(const __grid_constant__ GemmArgs args) {
    k_major<64>(args);
}
