// Rung 19: the wide products on Hopper's own instructions, weights stored [columns, inner].
// Against 11_k_major: there, mma.sync reads its operands through registers and three stages hide what latency
// they can; here wgmma reads them from shared memory, and a block's whole share of both operands is sent for
// at once: a ring only turns where the share is larger than shared memory. The inner axis is divided among the
// blocks of a cluster, whose parts are added from each other's shared memory: no trip through L2, no tickets.
// Should be faster where 128 rows leave the library's tiles few and its parts to a second launch: all GEMMs of
// a batch of 1, wo and w2 most. With many rows the library's larger tiles read less.
// For inner a multiple of 32, columns and leading dimensions of 4, any rows; clusters of 1, 2, 4, 8 or 16.
// Row layout. Deterministic: parts are added in order. Operands go in as stored: the hardware drops the bits
// below TF32.
// arch: 90a
#include "async_copy.cuh"
#include "cluster.cuh"
#include "split.cuh"
#include "warpgroup.cuh"

constexpr int DEPTH = 32;  // floats of a swizzled row

// A way out through shared memory whose rows lie 8 or 24 banks apart: float2 stores of a quarter-warp's four
// rows meet no bank twice.
__host__ __device__ constexpr int part_ld(int columns) {
    return columns % 16 == 8 ? columns : columns + 8;
}

template <int ROWS, int COLUMNS, int STAGES>
__device__ __forceinline__ void warpgroup_gemm(const GemmArgs& args) {
    constexpr int THREADS = 2 * ROWS;   // one warpgroup for 64 rows
    constexpr int CHUNKS = DEPTH / 4;   // of 16 bytes in a row of a stage
    constexpr int SWEEP = THREADS / CHUNKS;
    constexpr int STAGE_BYTES = (ROWS + COLUMNS) * SWIZZLE_ROW_BYTES, W_BYTES = ROWS * SWIZZLE_ROW_BYTES;
    constexpr int PART_LD = part_ld(COLUMNS);
    extern __shared__ unsigned char shared[];
    const unsigned over = __cvta_generic_to_shared(shared) % SWIZZLE_ATOM_BYTES;
    unsigned char* const tiles = shared + (over ? SWIZZLE_ATOM_BYTES - over : 0);

    const int rank = blockIdx.x % args.splits;
    const int block_row = blockIdx.y * ROWS, block_column = blockIdx.x / args.splits * COLUMNS;
    const int begin = split_begin(args, rank, DEPTH);
    const int steps = (split_begin(args, rank + 1, DEPTH) - begin) / DEPTH;

    // A sweep starts at a multiple of 8 rows: the swizzle is the same in each.
    const int copy_row = threadIdx.x / CHUNKS, copy_chunk = threadIdx.x % CHUNKS;
    unsigned char* const copy_to = tiles + swizzled(copy_row, copy_chunk);
    auto fetch = [&](unsigned char* to, const float* from, int ld, int first, int count, int tile_rows, int step) {
        const float* const column = from + begin + step * DEPTH + copy_chunk * 4;
#pragma unroll
        for (int i = 0; i < (tile_rows + SWEEP - 1) / SWEEP; ++i) {
            const int row = first + copy_row + i * SWEEP;
            const bool inside = row < count;
            if (tile_rows % SWEEP == 0 || copy_row + i * SWEEP < tile_rows)
                copy_async_16_or_zero(reinterpret_cast<float*>(to + i * SWEEP * SWIZZLE_ROW_BYTES),
                                      column + static_cast<long long>(inside ? row : 0) * ld, inside);
        }
    };
    auto fetch_a = [&](int step, int stage) {
        fetch(copy_to + stage * STAGE_BYTES, args.a, args.lda, block_row, args.rows, ROWS, step);
    };
    auto fetch_w = [&](int step, int stage) {
        fetch(copy_to + stage * STAGE_BYTES + W_BYTES, args.w, args.ldw, block_column, args.columns, COLUMNS, step);
    };

#pragma unroll 1
    for (int step = 0; step < min(steps, STAGES); ++step) fetch_w(step, step);
#pragma unroll 1
    for (int step = 0; step < STAGES; ++step) {
        if (step < steps) fetch_a(step, step);
        copy_async_commit();
    }

    float sum[COLUMNS / 2] = {};
    const unsigned long long a = tile_descriptor(tiles + threadIdx.x / 128 * 64 * SWIZZLE_ROW_BYTES);
    const unsigned long long w = tile_descriptor(tiles + W_BYTES);
    int stage = 0;
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        copy_async_wait<STAGES - 1>();
        show_to_products();
        __syncthreads();
        const unsigned long long at = static_cast<unsigned long long>(stage * STAGE_BYTES) >> 4;
        products_begin();
#pragma unroll
        for (int k = 0; k < DEPTH / 8; ++k) multiply_warpgroup<COLUMNS>(sum, a + at + 2 * k, w + at + 2 * k);
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
    __syncthreads();

    float* const part = reinterpret_cast<float*>(tiles);
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int row = warp * 16 + lane / 4, column = lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < COLUMNS / 8; ++j) {
        *reinterpret_cast<float2*>(part + row * PART_LD + j * 8 + column) = make_float2(sum[4 * j], sum[4 * j + 1]);
        *reinterpret_cast<float2*>(part + (row + 8) * PART_LD + j * 8 + column) =
            make_float2(sum[4 * j + 2], sum[4 * j + 3]);
    }
    cluster_arrive();
    cluster_wait();

    // Each block of the cluster finishes a share of the tile's rows.
    constexpr int ACROSS = COLUMNS / 4;
    const int share = ROWS / args.splits;
    for (int i = threadIdx.x; i < share * ACROSS; i += THREADS) {
        const int tile_row = rank * share + i / ACROSS, tile_column = i % ACROSS * 4;
        if (block_row + tile_row >= args.rows || block_column + tile_column >= args.columns) continue;
        const float* const from = part + tile_row * PART_LD + tile_column;
        const StoreTerms terms = store_terms(args, block_row + tile_row, block_column + tile_column);
        float4 total = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 8
        for (int other = 0; other < args.splits; ++other) {
            const float4 value = load_from_block(from, other);
            total = make_float4(total.x + value.x, total.y + value.y, total.z + value.z, total.w + value.w);
        }
        store_4(args, total, terms, block_row + tile_row, block_column + tile_column);
    }
    // No block leaves while another may still read its shared memory.
    cluster_arrive();
    cluster_wait();
}

extern "C" __global__ void __launch_bounds__(256, 1) gemm_warpgroup_96(const __grid_constant__ GemmArgs args) {
    warpgroup_gemm<128, 96, 8>(args);
}

extern "C" __global__ void __launch_bounds__(256, 1) gemm_warpgroup_72(const __grid_constant__ GemmArgs args) {
    warpgroup_gemm<128, 72, 9>(args);
}

extern "C" __global__ void __launch_bounds__(256, 1) gemm_warpgroup_48(const __grid_constant__ GemmArgs args) {
    warpgroup_gemm<128, 48, 10>(args);
}

extern "C" __global__ void __launch_bounds__(128, 1) gemm_warpgroup_short_96(const __grid_constant__ GemmArgs args) {
    warpgroup_gemm<64, 96, 11>(args);
}
