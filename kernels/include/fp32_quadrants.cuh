// A block's share of a tile of 64 rows in fp32, of operands that both lie along the inner axis.
// Each thread holds 8 rows by MICRO_COLUMNS of sums and reads four inner indices of an operand at once. It adds to
// its sums in quadrants, in an order that leaves half of an operand free two quadrants before that half is needed
// again: it is read meanwhile, into the same registers. A ring of stages is sent for ahead; its barrier stands
// where all operands of the stage that it gives up are in registers.
#pragma once
#include "args.cuh"
#include "cp_async.cuh"
#include "dependent_launch.cuh"

template <int MICRO_COLUMNS, int STAGES>
struct Fp32Quadrants {
    static constexpr int ACROSS = 8, DOWN = 8;  // threads of a group: every 8th row and every 8th column is one's own
    static constexpr int GROUPS = 2;            // over half of every stage's inner axis each
    static constexpr int GROUP_THREADS = ACROSS * DOWN, THREADS = GROUPS * GROUP_THREADS;
    static constexpr int MICRO_ROWS = 8, HALF_ROWS = MICRO_ROWS / 2, HALF_COLUMNS = MICRO_COLUMNS / 2;
    static constexpr int ROWS = DOWN * MICRO_ROWS, COLUMNS = ACROSS * MICRO_COLUMNS;
    static constexpr int DEPTH = 32, CHUNKS = DEPTH / 4;  // a stage's row is a line of 128 bytes, in chunks of 16
    static constexpr int SWEEP = THREADS / CHUNKS;        // rows of a stage that one sweep of copies covers
    static constexpr int FLOATS = (ROWS + COLUMNS) * DEPTH;  // of a stage
    static constexpr int LD = COLUMNS + 8;  // of the finished tile: four rows of a warp meet no bank twice
    static constexpr int FOURS = ROWS * COLUMNS / 4;  // of neighbouring columns in it
    static_assert(SWEEP % 8 == 0 && ROWS % SWEEP == 0 && COLUMNS % SWEEP == 0, "whole sweeps keep the swizzle");
    static_assert(ROWS * LD <= STAGES * FLOATS, "the tile lies over the stages");

    using Sum = float[MICRO_ROWS][MICRO_COLUMNS];

    static __device__ __forceinline__ int four_row(int four) { return four / (COLUMNS / 4); }
    static __device__ __forceinline__ int four_column(int four) { return four % (COLUMNS / 4) * 4; }
    static __device__ __forceinline__ int four_place(int four) { return four_row(four) * LD + four_column(four); }

    // The products' sums over `steps` stages from stage `first` of the inner axis on, in `shared` as ROWS rows of
    // LD: a thread sees its own, others' after a barrier. Reads no operand but weights before the grid's wait.
    static __device__ __forceinline__ void multiply(const GemmArgs& args, float* shared, int block_row,
                                                    int block_column, int first, int steps) {
        const int copy_row = threadIdx.x / CHUNKS, copy_chunk = threadIdx.x % CHUNKS;
        const float* a_from =
            args.a + static_cast<long long>(block_row + copy_row) * args.lda + first * DEPTH + copy_chunk * 4;
        const float* w_from =
            args.w + static_cast<long long>(block_column + copy_row) * args.ldw + first * DEPTH + copy_chunk * 4;
        float* const to = shared + swizzled(copy_row, copy_chunk);
        auto fetch_a = [&](int stage) {
#pragma unroll
            for (int i = 0; i < ROWS; i += SWEEP)
                cp_async_16(to + stage * FLOATS + i * DEPTH, a_from + static_cast<long long>(i) * args.lda);
            a_from += DEPTH;
        };
        auto fetch_w = [&](int stage) {
#pragma unroll
            for (int i = 0; i < COLUMNS; i += SWEEP)
                cp_async_16(to + stage * FLOATS + (ROWS + i) * DEPTH, w_from + static_cast<long long>(i) * args.ldw);
            w_from += DEPTH;
        };
        fetch_w(0);
        if (threadIdx.x < COLUMNS) prefetch_later(args, block_column, first, steps);
        griddep_wait();
        fetch_a(0);
        cp_async_commit_group();
#pragma unroll
        for (int stage = 1; stage < STAGES; ++stage) {
            if (stage < steps) {
                fetch_w(stage);
                fetch_a(stage);
            }
            cp_async_commit_group();
        }

        const int lane = threadIdx.x & 31, group = threadIdx.x / GROUP_THREADS;
        const int tx = lane & 1 | lane >> 1 & 6;  // neighbours share a row or a column in each half of a warp:
        const int ty = threadIdx.x / 32 % 2 * 4 + (lane >> 1 & 1 | lane >> 3 & 2);  // reads take two steps, not four
        // Of this group's four chunks of a stage the first; the others' places differ from it in two bits.
        const int a_first = swizzled(ty, group * (CHUNKS / GROUPS));
        const int w_first = ROWS * DEPTH + swizzled(tx, group * (CHUNKS / GROUPS));
        constexpr int A1 = HALF_ROWS * DOWN * DEPTH, W1 = HALF_COLUMNS * ACROSS * DEPTH;  // to the other half

        Sum sum = {};
        float a0[HALF_ROWS][4], a1[HALF_ROWS][4], w0[HALF_COLUMNS][4], w1[HALF_COLUMNS][4];
        cp_async_wait_group<STAGES - 1>();
        __syncthreads();
        read(a0, shared + a_first);
        read(w0, shared + w_first);
        read(w1, shared + w_first + W1);
        read(a1, shared + a_first + A1);
        int stage = 0, pair = 0, to_fetch = steps - STAGES;  // a group's four chunks of a stage are two pairs
        // A pair of chunks, but for the second chunk's product with the lower half of the rows.
        auto begin_pair = [&]() {
            const float* const a_next = shared + stage * FLOATS + (a_first ^ (pair * 8 + 4));
            const float* const w_next = shared + stage * FLOATS + (w_first ^ (pair * 8 + 4));
            add_products<0, 0>(sum, a0, w0);
            add_products<0, HALF_COLUMNS>(sum, a0, w1);
            read(a0, a_next);
            add_products<HALF_ROWS, HALF_COLUMNS>(sum, a1, w1);
            read(w1, w_next + W1);
            add_products<HALF_ROWS, 0>(sum, a1, w0);
            read(w0, w_next);
            read(a1, a_next + A1);
            add_products<0, HALF_COLUMNS>(sum, a0, w1);
            add_products<0, 0>(sum, a0, w0);
        };
        begin_pair();
#pragma unroll 1
        for (int pairs = 2 * steps - 1; pairs > 0; --pairs) {
            if (pair == 1) {  // all of this stage is in registers
                cp_async_wait_group<STAGES - 2>();
                __syncthreads();
                if (to_fetch > 0) {
                    fetch_w(stage);
                    fetch_a(stage);
                }
                --to_fetch;
                cp_async_commit_group();
                stage = stage + 1 == STAGES ? 0 : stage + 1;
            }
            pair ^= 1;
            const float* const a_next = shared + stage * FLOATS + (a_first ^ (pair * 8));
            const float* const w_next = shared + stage * FLOATS + (w_first ^ (pair * 8));
            read(a0, a_next);
            add_products<HALF_ROWS, 0>(sum, a1, w0);
            read(w0, w_next);
            add_products<HALF_ROWS, HALF_COLUMNS>(sum, a1, w1);
            read(w1, w_next + W1);
            read(a1, a_next + A1);
            begin_pair();
        }
        add_products<HALF_ROWS, 0>(sum, a1, w0);
        add_products<HALF_ROWS, HALF_COLUMNS>(sum, a1, w1);
        put_together(sum, shared + ty * LD + tx, group);
    }

private:
    // The same chunk of 8 rows in succession hits each bank once.
    static __device__ __forceinline__ int swizzled(int row, int chunk) {
        return row * DEPTH + ((chunk ^ (row & 7)) << 2);
    }

    // What a block reads of weights and bias after its first stage sets out for L2 at once, so that DRAM's latency
    // is paid once and not a stage. For one thread a column.
    static __device__ __forceinline__ void prefetch_later(const GemmArgs& args, int block_column, int first,
                                                          int steps) {
        const int column = block_column + threadIdx.x;
        const float* const line = args.w + static_cast<long long>(column) * args.ldw + first * DEPTH;
        for (int step = 1; step < steps; ++step) prefetch_global_l2(line + step * DEPTH);
        if (args.bias && threadIdx.x % 8 == 0) prefetch_global_l2(args.bias + column);
    }

    template <int COUNT>
    static __device__ __forceinline__ void read(float (&values)[COUNT][4], const float* from) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            *reinterpret_cast<float4*>(values[i]) = *reinterpret_cast<const float4*>(from + i * 8 * DEPTH);
    }

    // A quadrant of the sums: from row `I` and column `J` on.
    template <int I, int J>
    static __device__ __forceinline__ void add_products(Sum& sum, const float (&a)[HALF_ROWS][4],
                                                        const float (&w)[HALF_COLUMNS][4]) {
#pragma unroll
        for (int k = 0; k < 4; ++k)
#pragma unroll
            for (int i = 0; i < HALF_ROWS; ++i)
#pragma unroll
                for (int j = 0; j < HALF_COLUMNS; ++j) sum[I + i][J + j] += a[i][k] * w[j][k];
    }

    // Each group gives the other its sums of one half of the rows, and completes the other half.
    static __device__ __forceinline__ void put_together(const Sum& sum, float* tile, int group) {
        constexpr int HALF = HALF_ROWS * DOWN * LD;
        float* const mine = tile + group * HALF;
        float* const theirs = tile + (group ^ 1) * HALF;
        __syncthreads();  // all have used the last stage
#pragma unroll
        for (int i = 0; i < HALF_ROWS; ++i)
#pragma unroll
            for (int j = 0; j < MICRO_COLUMNS; ++j)
                theirs[i * DOWN * LD + j * ACROSS] = group ? sum[i][j] : sum[HALF_ROWS + i][j];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < HALF_ROWS; ++i)
#pragma unroll
            for (int j = 0; j < MICRO_COLUMNS; ++j)
                mine[i * DOWN * LD + j * ACROSS] += group ? sum[HALF_ROWS + i][j] : sum[i][j];
    }
};
