// A tile of 64 rows and 8 MICRO_COLUMNS columns of an fp32 product by one block of 128 threads; both operands are
// stored along the inner axis (K).
//
// Threads. Two groups of 64 threads (8x8) compute the same tile, each over half of the K indices of every stage. At
// the end each group gives the other its accumulators of one half of the rows.
//
//   lanes of a warp (tx across, ty down)                 a thread's accumulators: rows ty + 8i, columns tx + 8j
//
//   tx     0  1  2  3  4  5  6  7                                    j < half       j >= half
//   ty 0   0  1  4  5  8  9 12 13                        i < 4     | a_top w_left | a_top w_right |
//   ty 1   2  3  6  7 10 11 14 15                        i >= 4    | a_low w_left | a_low w_right |
//   ty 2  16 17 20 21 24 25 28 29   (odd warps:
//   ty 3  18 19 22 23 26 27 30 31    ty 4 to 7)          the four quadrants of the accumulators
//
//   With this numbering, neighbours in each half of a warp share a row or a column, so that a 16-byte shared memory
//   load is served in two steps instead of four.
//
// Shared memory. A ring of STAGES stages; a stage is 64 rows of a, then the columns of w, each of 32 floats (8 chunks
// of 16 bytes). Chunk c of row r lies at chunk c ^ (r % 8), so that 8 rows in succession hit each bank once. Group g
// takes chunks 4g to 4g + 3 of a stage, as two pairs.
//
// K. A chunk holds 4 indices of K for one row or column. While a thread multiplies one chunk, it loads the next one
// into the same registers. In this order, one whole quadrant (half of w) or two (half of a) lie between a load and
// its first use:
//
//   chunk 1 of a pair    then load          chunk 2 of a pair    then load
//   a_top w_left         -                  a_top w_right        -
//   a_top w_right        a_top              a_top w_left         a_top
//   a_low w_right        w_right            a_low w_left         w_left
//   a_low w_left         w_left, a_low      a_low w_right        w_right, a_low
//
// The barrier that frees a stage comes after the first six quadrants of its last pair: then all of the stage's
// operands are in registers.
#pragma once
#include "args.cuh"
#include "cp_async.cuh"
#include "dependent_launch.cuh"

template <int MICRO_COLUMNS, int STAGES>
struct Fp32Quadrants {
    static constexpr int THREADS_X = 8, THREADS_Y = 8;  // of a group
    static constexpr int GROUPS = 2;
    static constexpr int GROUP_THREADS = THREADS_X * THREADS_Y, THREADS = GROUPS * GROUP_THREADS;
    static constexpr int MICRO_ROWS = 8, HALF_ROWS = MICRO_ROWS / 2, HALF_COLUMNS = MICRO_COLUMNS / 2;
    static constexpr int ROWS = THREADS_Y * MICRO_ROWS, COLUMNS = THREADS_X * MICRO_COLUMNS;
    static constexpr int DEPTH = 32, CHUNKS = DEPTH / 4;     // a stage's row is 128 bytes, in chunks of 16
    static constexpr int COPY_ROWS = THREADS / CHUNKS;       // rows of a stage that all threads copy at once
    static constexpr int FLOATS = (ROWS + COLUMNS) * DEPTH;  // of a stage
    static constexpr int LD = COLUMNS + 8;  // of the finished tile: the four rows that a warp touches share no bank
    static constexpr int FLOAT4S = ROWS * COLUMNS / 4;  // of neighbouring columns in the finished tile
    static_assert(COPY_ROWS % 8 == 0 && ROWS % COPY_ROWS == 0 && COLUMNS % COPY_ROWS == 0,
                  "a thread copies to the same swizzled chunk each time");
    static_assert(ROWS * LD <= STAGES * FLOATS, "the finished tile lies over the stages");

    using Accumulators = float[MICRO_ROWS][MICRO_COLUMNS];

    static __device__ __forceinline__ int float4_row(int index) { return index / (COLUMNS / 4); }
    static __device__ __forceinline__ int float4_column(int index) { return index % (COLUMNS / 4) * 4; }
    static __device__ __forceinline__ int float4_offset(int index) {
        return float4_row(index) * LD + float4_column(index);
    }

    // Multiplies the tile over `steps` stages of K from stage `first_step` on. The sums are in `shared` afterwards, as
    // ROWS rows of LD floats: a thread sees its own at once, those of other threads after a barrier. Calls
    // griddep_wait() after it has started to load weights and before it reads anything else.
    static __device__ __forceinline__ void multiply(const GemmArgs& args, float* shared, int block_row,
                                                    int block_column, int first_step, int steps) {
        const int copy_row = threadIdx.x / CHUNKS, copy_chunk = threadIdx.x % CHUNKS;
        const float* a_global =
            args.a + static_cast<long long>(block_row + copy_row) * args.lda + first_step * DEPTH + copy_chunk * 4;
        const float* w_global =
            args.w + static_cast<long long>(block_column + copy_row) * args.ldw + first_step * DEPTH + copy_chunk * 4;
        float* const copy_to = shared + swizzled_offset(copy_row, copy_chunk);
        auto fetch_a = [&](int stage) {
#pragma unroll
            for (int i = 0; i < ROWS; i += COPY_ROWS)
                cp_async_16(copy_to + stage * FLOATS + i * DEPTH, a_global + static_cast<long long>(i) * args.lda);
            a_global += DEPTH;
        };
        auto fetch_w = [&](int stage) {
#pragma unroll
            for (int i = 0; i < COLUMNS; i += COPY_ROWS)
                cp_async_16(copy_to + stage * FLOATS + (ROWS + i) * DEPTH,
                            w_global + static_cast<long long>(i) * args.ldw);
            w_global += DEPTH;
        };
        fetch_w(0);
        if (threadIdx.x < COLUMNS) prefetch_weights(args, block_column, first_step, steps);
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
        const int tx = lane & 1 | lane >> 1 & 6;
        const int ty = threadIdx.x / 32 % 2 * 4 + (lane >> 1 & 1 | lane >> 3 & 2);
        // Offset of the group's first chunk of a stage. The other three differ from it in two bits.
        const int a_offset = swizzled_offset(ty, group * (CHUNKS / GROUPS));
        const int w_offset = ROWS * DEPTH + swizzled_offset(tx, group * (CHUNKS / GROUPS));
        constexpr int A_LOW = HALF_ROWS * THREADS_Y * DEPTH, W_RIGHT = HALF_COLUMNS * THREADS_X * DEPTH;

        Accumulators acc = {};
        float a_top[HALF_ROWS][4], a_low[HALF_ROWS][4], w_left[HALF_COLUMNS][4], w_right[HALF_COLUMNS][4];
        cp_async_wait_group<STAGES - 1>();
        __syncthreads();
        load_chunk(a_top, shared + a_offset);
        load_chunk(w_left, shared + w_offset);
        load_chunk(w_right, shared + w_offset + W_RIGHT);
        load_chunk(a_low, shared + a_offset + A_LOW);
        int stage = 0, pair = 0, steps_to_fetch = steps - STAGES;
        // All of a pair of chunks except the low quadrants of the second chunk.
        auto first_six_quadrants = [&]() {
            const float* const a_next = shared + stage * FLOATS + (a_offset ^ (pair * 8 + 4));
            const float* const w_next = shared + stage * FLOATS + (w_offset ^ (pair * 8 + 4));
            multiply_quadrant<0, 0>(acc, a_top, w_left);
            multiply_quadrant<0, HALF_COLUMNS>(acc, a_top, w_right);
            load_chunk(a_top, a_next);
            multiply_quadrant<HALF_ROWS, HALF_COLUMNS>(acc, a_low, w_right);
            load_chunk(w_right, w_next + W_RIGHT);
            multiply_quadrant<HALF_ROWS, 0>(acc, a_low, w_left);
            load_chunk(w_left, w_next);
            load_chunk(a_low, a_next + A_LOW);
            multiply_quadrant<0, HALF_COLUMNS>(acc, a_top, w_right);
            multiply_quadrant<0, 0>(acc, a_top, w_left);
        };
        first_six_quadrants();
#pragma unroll 1
        for (int pairs = 2 * steps - 1; pairs > 0; --pairs) {
            if (pair == 1) {  // all of this stage is in registers
                cp_async_wait_group<STAGES - 2>();
                __syncthreads();
                if (steps_to_fetch > 0) {
                    fetch_w(stage);
                    fetch_a(stage);
                }
                --steps_to_fetch;
                cp_async_commit_group();
                stage = stage + 1 == STAGES ? 0 : stage + 1;
            }
            pair ^= 1;
            const float* const a_next = shared + stage * FLOATS + (a_offset ^ (pair * 8));
            const float* const w_next = shared + stage * FLOATS + (w_offset ^ (pair * 8));
            load_chunk(a_top, a_next);
            multiply_quadrant<HALF_ROWS, 0>(acc, a_low, w_left);
            load_chunk(w_left, w_next);
            multiply_quadrant<HALF_ROWS, HALF_COLUMNS>(acc, a_low, w_right);
            load_chunk(w_right, w_next + W_RIGHT);
            load_chunk(a_low, a_next + A_LOW);
            first_six_quadrants();
        }
        multiply_quadrant<HALF_ROWS, 0>(acc, a_low, w_left);
        multiply_quadrant<HALF_ROWS, HALF_COLUMNS>(acc, a_low, w_right);
        add_groups(acc, shared + ty * LD + tx, group);
    }

private:
    static __device__ __forceinline__ int swizzled_offset(int row, int chunk) {
        return row * DEPTH + ((chunk ^ (row & 7)) << 2);
    }

    // Prefetches into L2 all weights after the block's first stage, and its bias, so that the block waits for DRAM
    // once and not in each stage. One thread a column.
    static __device__ __forceinline__ void prefetch_weights(const GemmArgs& args, int block_column, int first_step,
                                                            int steps) {
        const int column = block_column + threadIdx.x;
        const float* const line = args.w + static_cast<long long>(column) * args.ldw + first_step * DEPTH;
        for (int step = 1; step < steps; ++step) prefetch_global_l2(line + step * DEPTH);
        if (args.bias && threadIdx.x % 8 == 0) prefetch_global_l2(args.bias + column);
    }

    // Loads one chunk, 4 indices of K, of every eighth row.
    template <int COUNT>
    static __device__ __forceinline__ void load_chunk(float (&values)[COUNT][4], const float* shared) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            *reinterpret_cast<float4*>(values[i]) = *reinterpret_cast<const float4*>(shared + i * 8 * DEPTH);
    }

    // Multiplies the quadrant of the accumulators that begins at [I][J].
    template <int I, int J>
    static __device__ __forceinline__ void multiply_quadrant(Accumulators& acc, const float (&a)[HALF_ROWS][4],
                                                             const float (&w)[HALF_COLUMNS][4]) {
#pragma unroll
        for (int k = 0; k < 4; ++k)
#pragma unroll
            for (int i = 0; i < HALF_ROWS; ++i)
#pragma unroll
                for (int j = 0; j < HALF_COLUMNS; ++j) acc[I + i][J + j] += a[i][k] * w[j][k];
    }

    // Adds the two groups' accumulators in shared memory: group 0 completes the top half of a thread's rows, group 1
    // the low half.
    static __device__ __forceinline__ void add_groups(const Accumulators& acc, float* tile, int group) {
        constexpr int HALF = HALF_ROWS * THREADS_Y * LD;
        float* const own_half = tile + group * HALF;
        float* const other_half = tile + (group ^ 1) * HALF;
        __syncthreads();  // all threads have used the last stage
#pragma unroll
        for (int i = 0; i < HALF_ROWS; ++i)
#pragma unroll
            for (int j = 0; j < MICRO_COLUMNS; ++j)
                other_half[i * THREADS_Y * LD + j * THREADS_X] = group ? acc[i][j] : acc[HALF_ROWS + i][j];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < HALF_ROWS; ++i)
#pragma unroll
            for (int j = 0; j < MICRO_COLUMNS; ++j)
                own_half[i * THREADS_Y * LD + j * THREADS_X] += group ? acc[HALF_ROWS + i][j] : acc[i][j];
    }
};
