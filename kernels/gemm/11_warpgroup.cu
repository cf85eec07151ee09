// Rung 11's wo and w2 on Hopper's own tensor core instructions, and from rung 20 on every wide product; weights stored
// [columns, inner].
// Against 11_k_major, Hopper's remedies together:
//   - wgmma: operands are read from shared memory; mma.sync reads them through registers.
//   - Deep ring: 7 to 9 stages. If a block's share of K fits into them, all its copies start at once and the ring
//     never wraps; there, three stages hide what latency they can.
//   - Cluster reduction: the blocks of a cluster divide K and read each other's partial tiles from shared memory. No
//     partial result goes through L2, and there are no arrival counters.
//   - Programmatic dependent launch: weights start to load while the grid before still runs.
// Should be faster when 128 rows give the library few tiles and a second launch for its partial results: all GEMMs of
// a batch of 1, wo and w2 most. With more rows the library's larger tiles read less.
// Shapes: up to 128 rows, inner a multiple of 32, columns and leading dimensions of 4; clusters of 2, 4, 8 or 16
// blocks. Row layout. Deterministic: partial results are added in order. Operands are used as stored; the hardware
// drops the bits below TF32.
// The ladder uses 56 and 80 columns; the wider ones are further choices in this rung's menu.
//
// Tile, cluster, warpgroups and accumulators (COLUMNS = 56):
//
//   cluster x owns all 128 rows and columns 56x.. of c; its blocks divide K
//
//        K  | rank 0 | rank 1 | ... | rank splits - 1 |          each in steps of 32
//
//   every block:                                   lane l of warp w (0 to 3 of its warpgroup), r = 16w + l / 4:
//
//               56 columns
//             +--------------+                       acc[4j], acc[4j + 1]      row r,     columns 8j + l % 4 * 2, + 1
//   64 rows   | warpgroup 0  |                       acc[4j + 2], acc[4j + 3]  row r + 8, the same columns
//   64 rows   | warpgroup 1  |
//             +--------------+
//
//   afterwards the partial tile lies over the stages, and rank i adds and stores rows 128 / splits * i.. of all ranks'
//   partial tiles, float4 by float4.
//
//   A stage in shared memory: 128 rows of a, then COLUMNS rows of w, each of 32 floats of K: 128-byte rows with the
//   128-byte swizzle (wgmma.cuh).
//
//   K: steps of 32, four wgmma each of K = 8.
// arch: 90a
#include "cluster.cuh"
#include "cp_async.cuh"
#include "dependent_launch.cuh"
#include "split_k.cuh"
#include "wgmma.cuh"

constexpr int ROWS = 128, WARPGROUPS = ROWS / 64, THREADS = 128 * WARPGROUPS;
constexpr int DEPTH = 32;                    // floats of a swizzled row
constexpr int CHUNKS = DEPTH / 4;            // of 16 bytes in a swizzled row
constexpr int COPY_ROWS = THREADS / CHUNKS;  // rows that all threads copy at once: whole swizzle atoms

template <int COLUMNS>
struct Stage {
    float a[ROWS * DEPTH];
    float w[COLUMNS * DEPTH];
};

// Starts the copy of DEPTH columns of rows [first, first + TILE_ROWS) into a swizzled tile; zeros beyond `count` rows.
template <int TILE_ROWS>
__device__ __forceinline__ void copy_tile(float* tile, const float* global, int ld, int first, int count) {
    const int tile_row = threadIdx.x / CHUNKS, chunk = threadIdx.x % CHUNKS;
    float* const copy_to = tile + swizzle_128b(tile_row, chunk) / 4;
#pragma unroll
    for (int i = 0; i < TILE_ROWS; i += COPY_ROWS) {
        const int row = first + tile_row + i;
        const bool inside = row < count;
        if (i + COPY_ROWS <= TILE_ROWS || tile_row + i < TILE_ROWS)
            cp_async_16_zfill(copy_to + i * DEPTH, global + static_cast<long long>(inside ? row : 0) * ld + chunk * 4,
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

    // No earlier kernel writes weights, so their copies start while that kernel still runs.
#pragma unroll 1
    for (int step = 0; step < min(steps, STAGES); ++step) fetch_w(step, step);
    griddep_wait();
#pragma unroll 1
    for (int step = 0; step < STAGES; ++step) {
        if (step < steps) fetch_a(step, step);
        cp_async_commit_group();
    }
    griddep_launch_dependents();

    float acc[COLUMNS / 2] = {};
    const unsigned long long a_descriptor = wgmma_descriptor(stages[0].a + threadIdx.x / 128 * 64 * DEPTH);
    const unsigned long long w_descriptor = wgmma_descriptor(stages[0].w);
    int stage = 0;
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        cp_async_wait_group<STAGES - 1>();
        fence_proxy_async();
        __syncthreads();
        const unsigned long long stage_offset = stage * sizeof(Stage<COLUMNS>) >> 4;
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < DEPTH / 8; ++k)
            wgmma_tf32<COLUMNS>(acc, a_descriptor + stage_offset + 2 * k, w_descriptor + stage_offset + 2 * k);
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
    wgmma_fence_operand(acc);

    // The partial tile lies over the stages. Its rows are 8 or 24 banks apart, so that the four rows of a quarter-warp
    // share no bank.
    constexpr int PARTIAL_LD = COLUMNS % 16 == 8 ? COLUMNS : COLUMNS + 8;
    float* const partial = reinterpret_cast<float*>(shared);
    __syncthreads();
    const int lane = threadIdx.x & 31;
    float* const own = partial + (threadIdx.x / 32 * 16 + lane / 4) * PARTIAL_LD + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < COLUMNS / 8; ++j) {
        *reinterpret_cast<float2*>(own + j * 8) = make_float2(acc[4 * j], acc[4 * j + 1]);
        *reinterpret_cast<float2*>(own + 8 * PARTIAL_LD + j * 8) = make_float2(acc[4 * j + 2], acc[4 * j + 3]);
    }
    cluster_arrive_release();

    // Each block of the cluster finishes a share of the tile's rows, one float4 a thread in each iteration.
    constexpr int FLOAT4S_X = COLUMNS / 4;
    const int first_row = ROWS / args.splits * rank, float4s = ROWS / args.splits * FLOAT4S_X;
    int row, tile_column, column;
    bool inside;
    EpilogueOperands operands;
    auto prepare = [&](int i) {
        row = first_row + i / FLOAT4S_X;
        tile_column = i % FLOAT4S_X * 4, column = block_column + tile_column;
        inside = i < float4s && row < args.rows && column < args.columns;
        if (inside) operands = load_epilogue_operands(args, row, column);
    };
    prepare(threadIdx.x);
    cluster_wait_acquire();
    for (int i = threadIdx.x; i < float4s; i += THREADS) {
        float4 out = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 8
        for (int split = 0; split < args.splits; ++split) {
            const float4 value = ld_shared_cluster_float4(partial + row * PARTIAL_LD + tile_column, split);
            out = make_float4(out.x + value.x, out.y + value.y, out.z + value.z, out.w + value.w);
        }
        if (inside) store_float4(args, out, operands, row, column);
        prepare(i + THREADS);
    }
    // No block may leave while another one may still read its shared memory.
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
