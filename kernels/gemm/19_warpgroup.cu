// Rung 19: the wide products on Hopper's own instructions, weights stored [columns, inner].
// Against 11_k_major: there, mma.sync reads its operands through registers and three stages hide what latency
// they can; here wgmma reads them from shared memory, and a block's whole share of both operands is sent for
// at once: a ring only turns where the share is larger than shared memory. The inner axis is divided among the
// blocks of a cluster, which send their parts into each other's shared memory: no trip through L2, no tickets.
// Should be faster where 128 rows leave the library's tiles few and its parts to a second launch: all GEMMs of
// a batch of 1, wo and w2 most. With many rows the library's larger tiles read less.
// For inner a multiple of 32, columns and leading dimensions of 4, any rows; clusters of 1, 2, 4, 8 or 16.
// Row layout. Deterministic: parts are added in order. Operands go in as stored: the hardware drops the bits
// below TF32.
// arch: 90a
#include "async_copy.cuh"
#include "cluster.cuh"
#include "dependent.cuh"
#include "split.cuh"
#include "warpgroup.cuh"

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
    float* const to = tile + swizzled(tile_row, chunk) / 4;
#pragma unroll
    for (int i = 0; i < TILE_ROWS; i += SWEEP) {
        const int row = first + tile_row + i;
        const bool inside = row < count;
        if (i + SWEEP <= TILE_ROWS || tile_row + i < TILE_ROWS)
            copy_async_16_or_zero(to + i * DEPTH, from + static_cast<long long>(inside ? row : 0) * ld + chunk * 4,
                                  inside);
    }
}

template <int COLUMNS, int STAGES>
__device__ __forceinline__ void warpgroup_gemm(const GemmArgs& args) {
    // Rows of a part lie 8 or 24 banks apart.
    constexpr int PART_LD = COLUMNS % 16 == 8 ? COLUMNS : COLUMNS + 8;
    extern __shared__ __align__(SWIZZLE_ATOM_BYTES) unsigned char shared[];
    float* const parts = reinterpret_cast<float*>(shared);  // [splits][ROWS / splits][PART_LD]
    unsigned long long* const arrived = reinterpret_cast<unsigned long long*>(parts + ROWS * PART_LD);
    constexpr int HEAD = (ROWS * PART_LD * 4 + 8 + SWIZZLE_ATOM_BYTES - 1) / SWIZZLE_ATOM_BYTES * SWIZZLE_ATOM_BYTES;
    Stage<COLUMNS>* const stages = reinterpret_cast<Stage<COLUMNS>*>(shared + HEAD);

    const int rank = blockIdx.x % args.splits;
    const int block_row = blockIdx.y * ROWS, block_column = blockIdx.x / args.splits * COLUMNS;
    const int begin = split_begin(args, rank, DEPTH);
    const int steps = (split_begin(args, rank + 1, DEPTH) - begin) / DEPTH;

    auto fetch_w = [&](int step, int stage) {
        copy_tile<COLUMNS>(stages[stage].w, args.w + begin + step * DEPTH, args.ldw, block_column, args.columns);
    };
    auto fetch_a = [&](int step, int stage) {
        copy_tile<ROWS>(stages[stage].a, args.a + begin + step * DEPTH, args.lda, block_row, args.rows);
    };

    const unsigned barrier = shared_address(arrived);
    if (threadIdx.x == 0) expect_bytes(barrier, ROWS * COLUMNS * 4);
    cluster_arrive();
    // Weights are of no earlier kernel's making: they are on their way while it still runs.
#pragma unroll 1
    for (int step = 0; step < min(steps, STAGES); ++step) fetch_w(step, step);
    wait_for_grid_before();
#pragma unroll 1
    for (int step = 0; step < STAGES; ++step) {
        if (step < steps) fetch_a(step, step);
        copy_async_commit();
    }
    let_next_grid_start();

    float sum[COLUMNS / 2] = {};
    const unsigned long long a_tile = tile_descriptor(stages[0].a + threadIdx.x / 128 * 64 * DEPTH);
    const unsigned long long w_tile = tile_descriptor(stages[0].w);
    int stage = 0;
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        copy_async_wait<STAGES - 1>();
        show_to_products();
        __syncthreads();
        const unsigned long long at = stage * sizeof(Stage<COLUMNS>) >> 4;
        products_begin();
#pragma unroll
        for (int k = 0; k < DEPTH / 8; ++k) multiply_warpgroup<COLUMNS>(sum, a_tile + at + 2 * k, w_tile + at + 2 * k);
        products_commit();
        if (step + STAGES < steps) {
            products_wait();
            __syncthreads();
            fetch_w(step + STAGES, stage);
            fetch_a(step + STAGES, stage);
        }
        copy_async_commit();
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }
    products_wait();
    hold(sum);

    // Each block of the cluster finishes a share of the tile's rows; all send it their parts of them. Two lanes
    // trade halves so that each has four columns of one row.
    const int share = ROWS / args.splits;
    const int lane = threadIdx.x & 31, odd = lane & 1;
    const int row = threadIdx.x / 32 * 16 + lane / 4 + 8 * odd, column = lane % 4 / 2 * 4;
    const int owner = row / share;
    const unsigned to = address_in_block(
        shared_address(parts + (rank * share + row % share) * PART_LD + column), owner);
    const unsigned tell = address_in_block(barrier, owner);
    cluster_wait();
#pragma unroll
    for (int j = 0; j < COLUMNS / 8; ++j) {
        const float* const d = sum + 4 * j;
        const float x = __shfl_xor_sync(0xffffffffu, odd ? d[0] : d[2], 1);
        const float y = __shfl_xor_sync(0xffffffffu, odd ? d[1] : d[3], 1);
        send_16(to + 32 * j, odd ? make_float4(x, y, d[2], d[3]) : make_float4(d[0], d[1], x, y), tell);
    }
    wait_for_bytes(barrier);

    constexpr int ACROSS = COLUMNS / 4;
    for (int i = threadIdx.x; i < share * ACROSS; i += THREADS) {
        const int tile_row = i / ACROSS, tile_column = i % ACROSS * 4;
        const int to_row = block_row + rank * share + tile_row, to_column = block_column + tile_column;
        if (to_row >= args.rows || to_column >= args.columns) continue;
        const StoreTerms terms = store_terms(args, to_row, to_column);
        const float* part = parts + tile_row * PART_LD + tile_column;
        float4 total = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 4
        for (int other = 0; other < args.splits; ++other, part += share * PART_LD) {
            const float4 value = *reinterpret_cast<const float4*>(part);
            total = make_float4(total.x + value.x, total.y + value.y, total.z + value.z, total.w + value.w);
        }
        store_4(args, total, terms, to_row, to_column);
    }
}

#define GEMM_WARPGROUP(columns, stages)                                                                       \
    extern "C" __global__ void __launch_bounds__(THREADS, 1)                                                  \
        gemm_warpgroup_##columns(const __grid_constant__ GemmArgs args) {                                     \
        warpgroup_gemm<columns, stages>(args);                                                                \
    }

GEMM_WARPGROUP(56, 8)
GEMM_WARPGROUP(80, 7)
GEMM_WARPGROUP(96, 6)
GEMM_WARPGROUP(104, 6)
GEMM_WARPGROUP(112, 5)
