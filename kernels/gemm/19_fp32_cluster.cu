// Rung 19 in fp32: 11_fp32_k_major's products with their parts added inside a cluster.
// Against 11_fp32_k_major: there a thread waits for each four inner indices' operands before it multiplies, and
// the block that finishes a tile last reads all its parts from L2 alone. Here the 8 x MICRO_COLUMNS sums are taken
// in quadrants, in an order that leaves half of an operand free two quadrants before it is needed again: it is
// read meanwhile, into the same registers. A ring of stages is sent for ahead, and its barrier stands where all
// operands of the stage it gives up are in registers. Parts stay in shared memory, where the blocks of a cluster,
// one a part, each finish a share of the tile: no trip through L2, no fence, no ticket.
// Should be faster for all products of a batch of 1, where three blocks an SM make up the whole launch: 8x8 and
// 8x6 where there are columns enough for three blocks an SM, 8x4 for wo and w2.
// For rows a multiple of 64, columns of 8 MICRO_COLUMNS, inner of 32, leading dimensions of 4; clusters of up to 16.
// Row layout. Deterministic: parts are added in order.
// arch: 90
#include "async_copy.cuh"
#include "cluster.cuh"
#include "dependent.cuh"
#include "store.cuh"

constexpr int ROWS = 64, DEPTH = 32;
constexpr int CHUNKS = DEPTH / 4;                      // of 16 bytes in a row of a stage, which is a line of 128
constexpr int ACROSS = 8, DOWN = 8;                    // threads that share a tile: every 8th row and column is one's
constexpr int GROUPS = 2;                              // of such threads, each over half of every stage's inner axis
constexpr int GROUP_THREADS = ACROSS * DOWN, THREADS = GROUPS * GROUP_THREADS;
constexpr int MICRO_ROWS = ROWS / DOWN, HALF_ROWS = MICRO_ROWS / 2;
constexpr int SWEEP = THREADS / CHUNKS;                // rows of a stage that one sweep of copies covers
constexpr int TURNS = 2;                               // fours of columns that a thread finishes at once
static_assert(SWEEP % 8 == 0, "a sweep keeps the swizzle");

// Where chunk `chunk` of row `row` of a stage lies: the same chunk of 8 rows in succession hits each bank once.
__device__ __forceinline__ int swizzled(int row, int chunk) { return row * DEPTH + ((chunk ^ (row & 7)) << 2); }

template <int COUNT>
__device__ __forceinline__ void read(float (&values)[COUNT][4], const float* from) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
        *reinterpret_cast<float4*>(values[i]) = *reinterpret_cast<const float4*>(from + i * 8 * DEPTH);
}

template <int MICRO_COLUMNS, int STAGES>
struct Fp32Cluster {
    static constexpr int COLUMNS = ACROSS * MICRO_COLUMNS, HALF_COLUMNS = MICRO_COLUMNS / 2;
    static constexpr int FLOATS = (ROWS + COLUMNS) * DEPTH;  // of a stage
    static constexpr int PART_LD = COLUMNS + 8;              // four rows of a warp meet no bank twice
    static constexpr int FOURS = ROWS * COLUMNS / 4;
    static_assert(COLUMNS % SWEEP == 0, "whole sweeps");
    static_assert(ROWS * PART_LD <= STAGES * FLOATS, "the part lies over the stages");

    using Sum = float[MICRO_ROWS][MICRO_COLUMNS];

    // A quadrant of the sums, from row `I` and column `J` on.
    template <int I, int J>
    static __device__ __forceinline__ void multiply(Sum& sum, const float (&a)[HALF_ROWS][4],
                                                    const float (&w)[HALF_COLUMNS][4]) {
#pragma unroll
        for (int k = 0; k < 4; ++k)
#pragma unroll
            for (int i = 0; i < HALF_ROWS; ++i)
#pragma unroll
                for (int j = 0; j < HALF_COLUMNS; ++j) sum[I + i][J + j] += a[i][k] * w[j][k];
    }

    static __device__ __forceinline__ void run(const GemmArgs& args) {
        extern __shared__ float4 shared4[];
        float* const shared = reinterpret_cast<float*>(shared4);
        let_next_grid_start();

        const int rank = blockIdx.x % args.splits;
        const int block_row = blockIdx.y * ROWS, block_column = blockIdx.x / args.splits * COLUMNS;
        const int every = args.inner / DEPTH;
        const int first = every * rank / args.splits, steps = every * (rank + 1) / args.splits - first;

        const int copy_row = threadIdx.x / CHUNKS, copy_chunk = threadIdx.x % CHUNKS;
        const float* a_from =
            args.a + static_cast<long long>(block_row + copy_row) * args.lda + first * DEPTH + copy_chunk * 4;
        const float* w_from =
            args.w + static_cast<long long>(block_column + copy_row) * args.ldw + first * DEPTH + copy_chunk * 4;
        float* const to = shared + swizzled(copy_row, copy_chunk);
        auto fetch_a = [&](int stage) {
#pragma unroll
            for (int i = 0; i < ROWS; i += SWEEP)
                copy_async_16(to + stage * FLOATS + i * DEPTH, a_from + static_cast<long long>(i) * args.lda);
            a_from += DEPTH;
        };
        auto fetch_w = [&](int stage) {
#pragma unroll
            for (int i = 0; i < COLUMNS; i += SWEEP)
                copy_async_16(to + stage * FLOATS + (ROWS + i) * DEPTH, w_from + static_cast<long long>(i) * args.ldw);
            w_from += DEPTH;
        };
        fetch_w(0);
        // What this block reads of weights and bias later sets out for L2 at once, so that DRAM's latency is paid once.
        for (int i = threadIdx.x; i < COLUMNS * (steps - 1); i += THREADS)
            prefetch_l2(args.w + static_cast<long long>(block_column + i % COLUMNS) * args.ldw +
                        (first + 1 + i / COLUMNS) * DEPTH);
        if (args.bias && threadIdx.x < (COLUMNS + DEPTH - 1) / DEPTH)
            prefetch_l2(args.bias + block_column + threadIdx.x * DEPTH);
        wait_for_grid_before();
        fetch_a(0);
        copy_async_commit();
#pragma unroll
        for (int stage = 1; stage < STAGES; ++stage) {
            if (stage < steps) {
                fetch_w(stage);
                fetch_a(stage);
            }
            copy_async_commit();
        }

        const int lane = threadIdx.x & 31, group = threadIdx.x / GROUP_THREADS;
        const int tx = lane & 1 | lane >> 1 & 6;  // neighbours share a row or a column in each half of a warp:
        const int ty = threadIdx.x / 32 % 2 * 4 + (lane >> 1 & 1 | lane >> 3 & 2);  // reads take two steps, not four
        // Of this group's four chunks of a stage the first; the others' places differ from it in two bits.
        const int a_first = swizzled(ty, group * (CHUNKS / GROUPS));
        const int w_first = ROWS * DEPTH + swizzled(tx, group * (CHUNKS / GROUPS));

        Sum sum = {};
        float a0[HALF_ROWS][4], a1[HALF_ROWS][4], w0[HALF_COLUMNS][4], w1[HALF_COLUMNS][4];
        constexpr int A1 = HALF_ROWS * DOWN * DEPTH, W1 = HALF_COLUMNS * ACROSS * DEPTH;
        copy_async_wait<STAGES - 1>();
        __syncthreads();
        read(a0, shared + a_first);
        read(w0, shared + w_first);
        read(w1, shared + w_first + W1);
        read(a1, shared + a_first + A1);
        int stage = 0, pair = 0;  // of chunks: two of a group's four
        int to_fetch = steps - STAGES;
        // A pair of chunks, but for the lower half of the rows of its second.
        auto begin_pair = [&]() {
            const float* const a_next = shared + stage * FLOATS + (a_first ^ (pair * 8 + 4));
            const float* const w_next = shared + stage * FLOATS + (w_first ^ (pair * 8 + 4));
            multiply<0, 0>(sum, a0, w0);
            multiply<0, HALF_COLUMNS>(sum, a0, w1);
            read(a0, a_next);
            multiply<HALF_ROWS, HALF_COLUMNS>(sum, a1, w1);
            read(w1, w_next + W1);
            multiply<HALF_ROWS, 0>(sum, a1, w0);
            read(w0, w_next);
            read(a1, a_next + A1);
            multiply<0, HALF_COLUMNS>(sum, a0, w1);
            multiply<0, 0>(sum, a0, w0);
        };
        auto turn_to_next_pair = [&]() {
            if (pair == 1) {  // all of this stage is in registers
                copy_async_wait<STAGES - 2>();
                __syncthreads();
                if (to_fetch > 0) {
                    fetch_w(stage);
                    fetch_a(stage);
                }
                --to_fetch;
                copy_async_commit();
                stage = stage + 1 == STAGES ? 0 : stage + 1;
            }
            pair ^= 1;
        };
        begin_pair();
#pragma unroll 1
        for (int pairs = 2 * steps - 1; pairs > 0; --pairs) {
            turn_to_next_pair();
            const float* const a_next = shared + stage * FLOATS + (a_first ^ (pair * 8));
            const float* const w_next = shared + stage * FLOATS + (w_first ^ (pair * 8));
            read(a0, a_next);
            multiply<HALF_ROWS, 0>(sum, a1, w0);
            read(w0, w_next);
            multiply<HALF_ROWS, HALF_COLUMNS>(sum, a1, w1);
            read(w1, w_next + W1);
            read(a1, a_next + A1);
            begin_pair();
        }
        multiply<HALF_ROWS, 0>(sum, a1, w0);
        multiply<HALF_ROWS, HALF_COLUMNS>(sum, a1, w1);
        finish(args, sum, shared, tx, ty, group, rank, block_row, block_column);
    }

private:
    static __device__ __forceinline__ void finish(const GemmArgs& args, const Sum& sum, float* part, int tx, int ty,
                                                  int group, int rank, int block_row, int block_column) {
        // Each group gives the other its sums of one half of the rows, and completes the other half.
        float* const mine = part + (group * (HALF_ROWS * DOWN) + ty) * PART_LD + tx;
        float* const theirs = part + ((group ^ 1) * (HALF_ROWS * DOWN) + ty) * PART_LD + tx;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < HALF_ROWS; ++i)
#pragma unroll
            for (int j = 0; j < MICRO_COLUMNS; ++j)
                theirs[i * DOWN * PART_LD + j * ACROSS] = group ? sum[i][j] : sum[HALF_ROWS + i][j];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < HALF_ROWS; ++i)
#pragma unroll
            for (int j = 0; j < MICRO_COLUMNS; ++j)
                mine[i * DOWN * PART_LD + j * ACROSS] += group ? sum[HALF_ROWS + i][j] : sum[i][j];
        cluster_show();

        // Each block of the cluster finishes a share of the tile, four columns at a time.
        const int last = FOURS * (rank + 1) / args.splits;
        bool waiting = true;
#pragma unroll 1
        for (int next = FOURS * rank / args.splits + threadIdx.x; next < last || waiting; next += TURNS * THREADS) {
            float4 total[TURNS];
            StoreTerms terms[TURNS];
            const float* from[TURNS];
            int row[TURNS], column[TURNS];
#pragma unroll
            for (int t = 0; t < TURNS; ++t) {
                const int four = min(next + t * THREADS, last - 1);  // one too many is done twice, alike
                const int tile_row = four / (COLUMNS / 4), tile_column = four % (COLUMNS / 4) * 4;
                row[t] = block_row + tile_row, column[t] = block_column + tile_column;
                from[t] = part + tile_row * PART_LD + tile_column;
                terms[t] = store_terms(args, row[t], column[t]);
                total[t] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            }
            if (waiting) cluster_wait();
            waiting = false;
#pragma unroll 4
            for (int other = 0; other < args.splits; ++other)
#pragma unroll
                for (int t = 0; t < TURNS; ++t) {
                    const float4 value = load_from_block(from[t], other);
                    total[t] = make_float4(total[t].x + value.x, total[t].y + value.y, total[t].z + value.z,
                                           total[t].w + value.w);
                }
#pragma unroll
            for (int t = 0; t < TURNS; ++t)
                if (next + t * THREADS < last) store_4(args, total[t], terms[t], row[t], column[t]);
        }
        // No block leaves while another may still read its shared memory.
        cluster_arrive();
        cluster_wait();
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, 3) gemm_fp32_cluster_8x8(const __grid_constant__ GemmArgs args) {
    Fp32Cluster<8, 4>::run(args);
}

extern "C" __global__ void __launch_bounds__(THREADS, 3) gemm_fp32_cluster_8x6(const __grid_constant__ GemmArgs args) {
    Fp32Cluster<6, 4>::run(args);
}

extern "C" __global__ void __launch_bounds__(THREADS, 4) gemm_fp32_cluster_8x4(const __grid_constant__ GemmArgs args) {
    Fp32Cluster<4, 4>::run(args);
}
