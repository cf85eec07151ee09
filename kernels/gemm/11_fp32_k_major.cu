// Rung 11 in fp32 for weights stored [columns, inner]: the arithmetic of 08_sass_fp32 with all remedies together.
// Against 08_sass_fp32, each change removes one cost:
//   - K-major operands: both lie along the inner axis (K), so a thread loads four K indices of a row or a column at
//     once. The number of loads for a multiply-add stays the same.
//   - Lane numbering: in each half of a warp neighbours share a row or a column, so a 16-byte shared memory load is
//     served in two steps instead of four.
//   - Two groups of warps (8x8, half): 8x8 accumulators need a third fewer loads than 8x4; two groups divide the K
//     indices of each stage, which keeps the number of warps.
//   - L2 prefetch: the block's weights are prefetched before griddep_wait(), so DRAM's latency is paid once.
//   - Programmatic dependent launch: weights start to load while the grid before still runs.
//   - The last block adds the partial results (last_block.cuh), so there is no second launch.
// Should be faster for all products of 64 rows and more: by the second launch and by what shared memory's bandwidth
// cost. `half` is for narrow products: with twice the tiles, half as many splits are enough.
// Shapes: rows a multiple of 64, columns of 64 (half: 32), inner of 32, leading dimensions of 4; at most MAX_TILES
// tiles if split. Row layout. Deterministic: partial results are added in order.
// The ladder uses `half`; 8x4 and 8x8 are further choices in this rung's menu.
// A loaded module may have only one launch at a time, because its launches share the arrival counters.
//
// Tile, threads and accumulators (8x8: 64x64, 2 groups of 8x8 threads):
//
//   block (x, y, z) owns rows 64y.. and columns 64x.. (half: 32x..), and of K only split z
//
//   lanes of a warp (tx across, ty down)              thread (tx, ty) of a group owns acc[i][j]
//
//   tx     0  1  2  3  4  5  6  7                       row     ty + THREADS_Y i            (i = 0..7)
//   ty 0   0  1  4  5  8  9 12 13                       column  4 tx + j                    (j = 0..3)
//   ty 1   2  3  6  7 10 11 14 15                               4 tx + 4 THREADS_X + j - 4  (j = 4..7, 8x8 only)
//   ty 2  16 17 20 21 24 25 28 29
//   ty 3  18 19 22 23 26 27 30 31                     warps of a group: WARPS_X across (8x4: 2, else 1), the rest down
//
//   A stage in shared memory: 64 rows of a, then the columns of w, each of 32 floats of K and 4 of padding. Columns of
//   w are permuted (shared_row) so that threads next to each other read rows next to each other.
//
//   K: steps of 32 through two stages. Of each step's 32 indices, group g multiplies 32 / GROUPS, four at a time.
#include "cp_async.cuh"
#include "dependent_launch.cuh"
#include "last_block.cuh"

constexpr int ROWS = 64, DEPTH = 32, LD = DEPTH + 4;  // the same chunk of 8 rows in succession hits each bank once
constexpr int MICRO_ROWS = 8;
constexpr int CHUNKS = DEPTH / 4;  // of 16 bytes in a row of a stage, which is a cache line of 128
constexpr int MAX_TILES = 8192;

__device__ unsigned arrival_counters[MAX_TILES];

__device__ __forceinline__ void load_float4(float (&values)[4], const float* shared) {
    *reinterpret_cast<float4*>(values) = *reinterpret_cast<const float4*>(shared);
}

template <int COLUMNS, int MICRO_COLUMNS, int GROUPS>
struct Fp32KMajor {
    static constexpr int THREADS_X = COLUMNS / MICRO_COLUMNS, THREADS_Y = ROWS / MICRO_ROWS;  // of a group
    static constexpr int GROUP_THREADS = THREADS_X * THREADS_Y, THREADS = GROUPS * GROUP_THREADS;
    static constexpr int WARPS_X = THREADS_X / 8;
    static constexpr int FLOATS = (ROWS + COLUMNS) * LD;   // of a stage
    static constexpr int COPY_ROWS = THREADS / CHUNKS;     // rows of a stage that all threads copy at once
    static constexpr int FLOAT4S = MICRO_COLUMNS / 4;      // of neighbouring columns that a thread owns in a row
    static constexpr int OUT_ROWS = MICRO_ROWS / GROUPS;   // rows that a thread stores
    static constexpr int OUT_FLOAT4S = OUT_ROWS * FLOAT4S;
    static_assert(GROUPS == 1 || GROUPS == 2, "two groups exchange halves");
    static_assert(COPY_ROWS % 4 == 0 && ROWS % COPY_ROWS == 0 && COLUMNS % COPY_ROWS == 0, "whole rows of threads");

    // Row of the stage's w part that holds column `column` of the tile.
    static __device__ constexpr int shared_row(int column) {
        return (column / (4 * THREADS_X) * 4 + column % 4) * THREADS_X + column / 4 % THREADS_X;
    }

    static __device__ __forceinline__ void run(const GemmArgs& args) {
        extern __shared__ float4 shared4[];
        float* const shared = reinterpret_cast<float*>(shared4);
        griddep_launch_dependents();

        const int block_row = blockIdx.y * ROWS, block_column = blockIdx.x * COLUMNS;
        const unsigned all_steps = args.inner / DEPTH;
        const int first_step = all_steps * blockIdx.z / args.splits;
        const int steps = all_steps * (blockIdx.z + 1) / args.splits - first_step;

        const int copy_row = threadIdx.x / CHUNKS, copy_k = threadIdx.x % CHUNKS * 4;
        const float* a_global =
            args.a + static_cast<long long>(block_row + copy_row) * args.lda + first_step * DEPTH + copy_k;
        const float* w_global =
            args.w + static_cast<long long>(block_column + copy_row) * args.ldw + first_step * DEPTH + copy_k;
        float* const a_shared = shared + copy_row * LD + copy_k;
        float* const w_shared = shared + (ROWS + shared_row(copy_row)) * LD + copy_k;
        auto fetch_a = [&](int stage) {
#pragma unroll
            for (int i = 0; i < ROWS / COPY_ROWS; ++i)
                cp_async_16(a_shared + stage * FLOATS + i * COPY_ROWS * LD,
                            a_global + static_cast<long long>(i * COPY_ROWS) * args.lda);
            a_global += DEPTH;
        };
        auto fetch_w = [&](int stage) {
#pragma unroll
            for (int i = 0; i < COLUMNS / COPY_ROWS; ++i)
                cp_async_16(w_shared + stage * FLOATS + shared_row(i * COPY_ROWS) * LD,
                            w_global + static_cast<long long>(i * COPY_ROWS) * args.ldw);
            w_global += DEPTH;
        };
        fetch_w(0);
        // Prefetch all of the block's weights and its bias, so that the block waits for DRAM once, not in each stage.
        const float* const w_lines =
            args.w + static_cast<long long>(block_column + threadIdx.x % COLUMNS) * args.ldw + first_step * DEPTH;
        for (int line = threadIdx.x / COLUMNS; line < steps; line += THREADS / COLUMNS)
            prefetch_global_l2(w_lines + line * DEPTH);
        if (args.bias && threadIdx.x < COLUMNS / DEPTH)
            prefetch_global_l2(args.bias + block_column + threadIdx.x * DEPTH);
        griddep_wait();
        fetch_a(0);
        cp_async_commit_group();

        const int lane = threadIdx.x & 31, warp = threadIdx.x % GROUP_THREADS / 32;
        const int group = threadIdx.x / GROUP_THREADS;
        const int tx = warp % WARPS_X * 8 + (lane & 1 | lane >> 1 & 6);
        const int ty = warp / WARPS_X * 4 + (lane >> 1 & 1 | lane >> 3 & 2);
        const float* const a_tile = shared + ty * LD + group * (DEPTH / GROUPS);
        const float* const w_tile = shared + (ROWS + tx) * LD + group * (DEPTH / GROUPS);

        float acc[MICRO_ROWS][MICRO_COLUMNS] = {};
        int stage = 0;
#pragma unroll 1
        for (int step = 0; step < steps; ++step) {
            cp_async_wait_group<0>();
            __syncthreads();
            if (step + 1 < steps) {
                fetch_w(stage ^ 1);
                fetch_a(stage ^ 1);
            }
            cp_async_commit_group();
#pragma unroll
            for (int k4 = 0; k4 < DEPTH / GROUPS; k4 += 4) {
                float a[MICRO_ROWS][4], w[MICRO_COLUMNS][4];
#pragma unroll
                for (int i = 0; i < MICRO_ROWS; ++i)
                    load_float4(a[i], a_tile + stage * FLOATS + i * THREADS_Y * LD + k4);
#pragma unroll
                for (int j = 0; j < MICRO_COLUMNS; ++j)
                    load_float4(w[j], w_tile + stage * FLOATS + j * THREADS_X * LD + k4);
#pragma unroll
                for (int k = 0; k < 4; ++k)
#pragma unroll
                    for (int i = 0; i < MICRO_ROWS; ++i)
#pragma unroll
                        for (int j = 0; j < MICRO_COLUMNS; ++j) acc[i][j] += a[i][k] * w[j][k];
            }
            stage ^= 1;
        }

        float4 out[OUT_FLOAT4S];
        add_groups(acc, out, shared4, group);
        const int row = block_row + ty + group * (OUT_ROWS * THREADS_Y), column = block_column + tx * 4;
        if (args.splits > 1) {
            // A partial tile lies in memory as the threads hold it: float4 i of all threads, then float4 i + 1.
            const int tile = blockIdx.y * gridDim.x + blockIdx.x;
            float4* const partials = reinterpret_cast<float4*>(args.partial) +
                                     static_cast<long long>(tile) * args.splits * (OUT_FLOAT4S * THREADS) + threadIdx.x;
#pragma unroll
            for (int i = 0; i < OUT_FLOAT4S; ++i) partials[(blockIdx.z * OUT_FLOAT4S + i) * THREADS] = out[i];
            if (!is_last_block(&arrival_counters[tile], args.splits)) return;
            add_partials(partials, args.splits, out);
        }
        EpilogueOperands operands[OUT_FLOAT4S];
#pragma unroll
        for (int i = 0; i < OUT_FLOAT4S; ++i)
            operands[i] = load_epilogue_operands(args, row + i / FLOAT4S * THREADS_Y,
                                                 column + i % FLOAT4S * (4 * THREADS_X));
#pragma unroll
        for (int i = 0; i < OUT_FLOAT4S; ++i)
            store_float4(args, out[i], operands[i], row + i / FLOAT4S * THREADS_Y,
                         column + i % FLOAT4S * (4 * THREADS_X));
    }

private:
    // Adds the accumulators of the groups. Of two groups, each gives the other one half of a thread's rows and
    // completes the other half.
    static __device__ __forceinline__ void add_groups(const float (&acc)[MICRO_ROWS][MICRO_COLUMNS],
                                                      float4 (&out)[OUT_FLOAT4S], float4* shared4, int group) {
        if (GROUPS == 2) __syncthreads();  // all threads have used the last stage, over which the halves lie
#pragma unroll
        for (int i = 0; i < OUT_FLOAT4S; ++i) {
            const float* const top = &acc[i / FLOAT4S][i % FLOAT4S * 4];
            const float* const low = &acc[i / FLOAT4S + MICRO_ROWS - OUT_ROWS][i % FLOAT4S * 4];
            const float4 top4 = make_float4(top[0], top[1], top[2], top[3]);
            const float4 low4 = make_float4(low[0], low[1], low[2], low[3]);
            out[i] = group ? low4 : top4;
            if (GROUPS == 2) shared4[i * THREADS + threadIdx.x] = group ? top4 : low4;
        }
        if (GROUPS == 1) return;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < OUT_FLOAT4S; ++i) add(out[i], shared4[i * THREADS + (threadIdx.x ^ GROUP_THREADS)]);
    }

    // Adds the partial results of all splits. Other SMs wrote them, so they are read from L2 (ld.cg): this SM's L1 may
    // still hold older data of these addresses.
    static __device__ __forceinline__ void add_partials(const float4* partials, int splits,
                                                        float4 (&out)[OUT_FLOAT4S]) {
#pragma unroll
        for (int i = 0; i < OUT_FLOAT4S; ++i) out[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 2
        for (int split = 0; split < splits; ++split) {
#pragma unroll
            for (int i = 0; i < OUT_FLOAT4S; ++i) add(out[i], __ldcg(partials + (split * OUT_FLOAT4S + i) * THREADS));
        }
    }

    static __device__ __forceinline__ void add(float4& acc, float4 value) {
        acc = make_float4(acc.x + value.x, acc.y + value.y, acc.z + value.z, acc.w + value.w);
    }
};

extern "C" __global__ void __launch_bounds__(128, 3) gemm_fp32_k_major_8x4(const __grid_constant__ GemmArgs args) {
    Fp32KMajor<64, 4, 1>::run(args);
}

extern "C" __global__ void __launch_bounds__(128, 3) gemm_fp32_k_major_8x8(const __grid_constant__ GemmArgs args) {
    Fp32KMajor<64, 8, 2>::run(args);
}

extern "C" __global__ void __launch_bounds__(128, 3) gemm_fp32_k_major_half(const __grid_constant__ GemmArgs args) {
    Fp32KMajor<32, 4, 2>::run(args);
}
