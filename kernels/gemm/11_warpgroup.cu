// Rung 11's candidate on Hopper's own instructions, and every wide product of rung 20; weights stored
// [columns, inner].
// Against 11_k_major: there, mma.sync reads its operands through registers and three stages hide what latency
// they can; here wgmma reads them from shared memory, and a block's whole share of both operands is sent for
// at once: a ring only turns where the share is larger than shared memory. The inner axis is divided among the
// blocks of a cluster, which read each other's parts from shared memory: no trip through L2, no tickets.
// Should be faster where 128 rows leave the library's tiles few and its parts to a second launch: all GEMMs of
// a batch of 1, wo and w2 most. With more rows the library's larger tiles read less.
// For up to 128 rows, inner a multiple of 32, columns and leading dimensions of 4; clusters of 2, 4, 8 or 16.
// Row layout. Deterministic: parts are added in order. Operands go in as stored: the hardware drops the bits
// below TF32.
// arch: 90a
#include "cp_async.cuh"
#include "cluster.cuh"
#include "dependent_launch.cuh"
#include "split_k.cuh"
#include "wgmma.cuh"

constexpr int ROWS = 128, WARPGROUPS = ROWS / 64, THREADS = 128 * WARPGROUPS;
constexpr int DEPTH = 32;           // floats of a swizzled row
constexpr int CHUNKS = DEPTH / 4;   // of 16 bytes in it
constexpr int SWEEP = THREADS / CHUNKS;  // rows that one sweep of copies covers: whole atoms

template <int COLUMNS>
struct Stage {
    float a[ROWS * DEPTH];
    float w[COLUMNS * DEPTH];
};

// DEPTH columns of rows [first, first + TILE_ROWS) into a swizzled tile, zeros beyond `count` rows.
template <int TILE_ROWS>
__device__ __forceinline__ void copy_tile(float* tile, const float* from, int ld, int first, int count) {
    const int tile_row = threadIdx.x / CHUNKS, chunk = threadIdx.x % CHUNKS;
    float* const to = tile + swizzle_128b(tile_row, chunk) / 4;
#pragma unroll
    for (int i = 0; i < TILE_ROWS; i += SWEEP) {
        const int row = first + tile_row + i;
        const bool inside = row < count;
        if (i + SWEEP <= TILE_ROWS || tile_row + i < TILE_ROWS)
            cp_async_16_zfill(to + i * DEPTH, from + static_cast<long long>(inside ? row : 0) * ld + chunk * 4,
                                  inside);
    }
}

template <int COLUMNS, int STAGES>
__device__ __forceinline__ void warpgroup_gemm(const GemmArgs& args) {
    extern __shared__ __align__(SWIZZLE_ATOM_BYTES) unsigned char shared[];
    Stage<COLUMNS>* const stages = reinterpret_cast<Stage<COLUMNS>*>(shared);

    const int rank = blockIdx.x % args.splits;
    const int block_column = blockIdx.x / args.splits * COLUMNS;
    const int begin = split_begin(args, rank, DEPTH);
    const int steps = (split_begin(args, rank + 1, DEPTH) - begin) / DEPTH;

    auto fetch_w = [&](int step, int stage) {
        copy_tile<COLUMNS>(stages[stage].w, args.w + begin + step * DEPTH, args.ldw, block_column, args.columns);
    };
    auto fetch_a = [&](int step, int stage) {
        copy_tile<ROWS>(stages[stage].a, args.a + begin + step * DEPTH, args.lda, 0, args.rows);
    };

    // Weights are of no earlier kernel's making: they are on their way while it still runs.
#pragma unroll 1
    for (int step = 0; step < min(steps, STAGES); ++step) fetch_w(step, step);
    griddep_wait();
#pragma unroll 1
    for (int step = 0; step < STAGES; ++step) {
        if (step < steps) fetch_a(step, step);
        cp_async_commit_group();
    }
    griddep_launch_dependents();

    float sum[COLUMNS / 2] = {};
    const unsigned long long a_tile = wgmma_descriptor(stages[0].a + threadIdx.x / 128 * 64 * DEPTH);
    const unsigned long long w_tile = wgmma_descriptor(stages[0].w);
    int stage = 0;
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        cp_async_wait_group<STAGES - 1>();
        fence_proxy_async();
        __syncthreads();
        const unsigned long long at = stage * sizeof(Stage<COLUMNS>) >> 4;
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < DEPTH / 8; ++k) wgmma_tf32<COLUMNS>(sum, a_tile + at + 2 * k, w_tile + at + 2 * k);
        wgmma_commit_group();
        if (step + STAGES < steps) {
            wgmma_wait_group<0>();
            __syncthreads();
            fetch_w(step + STAGES, stage);
            fetch_a(step + STAGES, stage);
        }
        cp_async_commit_group();
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }
    wgmma_wait_group<0>();
    wgmma_fence_operand(sum);

    // The sums lie over the stages, rows 8 or 24 banks apart: a quarter-warp's four rows meet no bank twice.
    constexpr int PART_LD = COLUMNS % 16 == 8 ? COLUMNS : COLUMNS + 8;
    float* const part = reinterpret_cast<float*>(shared);
    __syncthreads();
    const int lane = threadIdx.x & 31;
    float* const to = part + (threadIdx.x / 32 * 16 + lane / 4) * PART_LD + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < COLUMNS / 8; ++j) {
        *reinterpret_cast<float2*>(to + j * 8) = make_float2(sum[4 * j], sum[4 * j + 1]);
        *reinterpret_cast<float2*>(to + 8 * PART_LD + j * 8) = make_float2(sum[4 * j + 2], sum[4 * j + 3]);
    }
    cluster_arrive_release();

    // Each block of the cluster finishes a share of the tile's rows, four columns a thread and turn.
    constexpr int ACROSS = COLUMNS / 4;
    const int first_row = ROWS / args.splits * rank, elements = ROWS / args.splits * ACROSS;
    int row, tile_column, column;
    bool inside;
    EpilogueOperands terms;
    auto turn_to = [&](int i) {
        row = first_row + i / ACROSS;
        tile_column = i % ACROSS * 4, column = block_column + tile_column;
        inside = i < elements && row < args.rows && column < args.columns;
        if (inside) terms = load_epilogue_operands(args, row, column);
    };
    turn_to(threadIdx.x);
    cluster_wait_acquire();
    for (int i = threadIdx.x; i < elements; i += THREADS) {
        float4 total = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 8
        for (int other = 0; other < args.splits; ++other) {
            const float4 value = ld_shared_cluster_float4(part + row * PART_LD + tile_column, other);
            total = make_float4(total.x + value.x, total.y + value.y, total.z + value.z, total.w + value.w);
        }
        if (inside) store_float4(args, total, terms, row, column);
        turn_to(i + THREADS);
    }
    // No block leaves while another may still read its shared memory.
    cluster_arrive_relaxed();
    cluster_wait_acquire();
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) gemm_warpgroup_56(const __grid_constant__ GemmArgs args) {
    warpgroup_gemm<56, 9>(args);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) gemm_warpgroup_80(const __grid_constant__ GemmArgs args) {
    warpgroup_gemm<80, 8>(args);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) gemm_warpgroup_96(const __grid_constant__ GemmArgs args) {
    warpgroup_gemm<96, 8>(args);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) gemm_warpgroup_104(const __grid_constant__ GemmArgs args) {
    warpgroup_gemm<104, 7>(args);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) gemm_warpgroup_112(const __grid_constant__ GemmArgs args) {
    warpgroup_gemm<112, 7>(args);
}
