// Rung 11's candidate in fp32: the arithmetic of 08_sass_fp32 on weights stored [columns, inner].
// Against 08_sass_fp32: both operands lie along the inner axis, so a thread reads four inner indices at once of
// its rows and of its columns, as many loads as there for as many multiply-adds. Its lanes are numbered so that
// in each half of a warp neighbours share a row or a column: a 16-byte load is then served in two steps instead
// of four. 8x8 sums need a third fewer loads than 8x4; the block's two halves then divide each stage's inner
// axis, which keeps warps as many. Weights are sent for before the wait for what comes before. Parts lie in
// memory as threads hold them, and the block that finishes a tile last adds them: no second launch does.
// Should be faster than 08_sass_fp32 by the second launch and by what shared memory's bandwidth cost it: all
// products of 64 and more rows. Half tiles for narrow products: with twice the tiles, half the parts will do.
// For rows a multiple of 64, columns of 64 (half: 32), inner of 32, leading dimensions of 4; at most MOST_TILES
// tiles where split. Row layout. Deterministic: parts are added in order.
// One launch at a time for a loaded module: tickets are shared.
#include "cp_async.cuh"
#include "dependent_launch.cuh"
#include "last_block.cuh"

constexpr int ROWS = 64, DEPTH = 32, LD = DEPTH + 4;  // 8 rows of shared memory at one inner index hit each bank once
constexpr int MICRO_ROWS = 8;
constexpr int CHUNKS = DEPTH / 4;  // of 16 bytes in a row of a stage, which is a line of 128
constexpr int MAX_TILES = 8192;

__device__ unsigned arrival_counters[MAX_TILES];

__device__ __forceinline__ void read_4(float (&values)[4], const float* from) {
    *reinterpret_cast<float4*>(values) = *reinterpret_cast<const float4*>(from);
}

// GROUPS of warps compute the same tile, each over its share of a stage's inner axis.
template <int COLUMNS, int MICRO_COLUMNS, int GROUPS>
struct Fp32KMajor {
    static constexpr int ACROSS = COLUMNS / MICRO_COLUMNS, DOWN = ROWS / MICRO_ROWS;  // threads of a group
    static constexpr int GROUP_THREADS = ACROSS * DOWN, THREADS = GROUPS * GROUP_THREADS;
    static constexpr int WARPS_X = ACROSS / 8;
    static constexpr int FLOATS = (ROWS + COLUMNS) * LD;  // of a stage
    static constexpr int SWEEP = THREADS / CHUNKS;        // rows of a stage that one sweep of copies covers
    static constexpr int QUADS = MICRO_COLUMNS / 4;       // a thread's columns lie in fours, ACROSS fours apart
    static constexpr int OUT_ROWS = MICRO_ROWS / GROUPS;  // that a thread finishes
    static constexpr int OUT = OUT_ROWS * QUADS;          // fours of columns, of all its rows
    static_assert(GROUPS == 1 || GROUPS == 2, "two groups exchange halves");
    static_assert(SWEEP % 4 == 0 && ROWS % SWEEP == 0 && COLUMNS % SWEEP == 0, "whole sweeps");

    // Row of shared memory where column `column` of the tile lies: neighbouring threads read neighbouring rows.
    static __device__ constexpr int place(int column) {
        return (column / (4 * ACROSS) * 4 + column % 4) * ACROSS + column / 4 % ACROSS;
    }

    static __device__ __forceinline__ void run(const GemmArgs& args) {
        extern __shared__ float4 shared4[];
        float* const shared = reinterpret_cast<float*>(shared4);
        griddep_launch_dependents();

        const int block_row = blockIdx.y * ROWS, block_column = blockIdx.x * COLUMNS;
        const unsigned every = args.inner / DEPTH;
        const int first = every * blockIdx.z / args.splits;
        const int steps = every * (blockIdx.z + 1) / args.splits - first;

        const int copy_row = threadIdx.x / CHUNKS, copy_k = threadIdx.x % CHUNKS * 4;
        const float* a_from = args.a + static_cast<long long>(block_row + copy_row) * args.lda + first * DEPTH + copy_k;
        const float* w_from =
            args.w + static_cast<long long>(block_column + copy_row) * args.ldw + first * DEPTH + copy_k;
        float* const a_to = shared + copy_row * LD + copy_k;
        float* const w_to = shared + (ROWS + place(copy_row)) * LD + copy_k;
        auto fetch_a = [&](int stage) {
#pragma unroll
            for (int i = 0; i < ROWS / SWEEP; ++i)
                cp_async_16(a_to + stage * FLOATS + i * SWEEP * LD, a_from + static_cast<long long>(i * SWEEP) * args.lda);
            a_from += DEPTH;
        };
        auto fetch_w = [&](int stage) {
#pragma unroll
            for (int i = 0; i < COLUMNS / SWEEP; ++i)
                cp_async_16(w_to + stage * FLOATS + place(i * SWEEP) * LD,
                              w_from + static_cast<long long>(i * SWEEP) * args.ldw);
            w_from += DEPTH;
        };
        fetch_w(0);
        // What this block reads of weights and bias all sets out for L2 at once, so that DRAM's latency is paid once
        // and not a stage.
        const float* const w_lines =
            args.w + static_cast<long long>(block_column + threadIdx.x % COLUMNS) * args.ldw + first * DEPTH;
        for (int line = threadIdx.x / COLUMNS; line < steps; line += THREADS / COLUMNS)
            prefetch_global_l2(w_lines + line * DEPTH);
        if (args.bias && threadIdx.x < COLUMNS / DEPTH) prefetch_global_l2(args.bias + block_column + threadIdx.x * DEPTH);
        griddep_wait();
        fetch_a(0);
        cp_async_commit_group();

        const int lane = threadIdx.x & 31, warp = threadIdx.x % GROUP_THREADS / 32;
        const int group = threadIdx.x / GROUP_THREADS;
        const int tx = warp % WARPS_X * 8 + (lane & 1 | lane >> 1 & 6);
        const int ty = warp / WARPS_X * 4 + (lane >> 1 & 1 | lane >> 3 & 2);  // rows ty, ty + DOWN, ty + 2 DOWN, ...
        const float* const a_tile = shared + ty * LD + group * (DEPTH / GROUPS);
        const float* const w_tile = shared + (ROWS + tx) * LD + group * (DEPTH / GROUPS);

        float sum[MICRO_ROWS][MICRO_COLUMNS] = {};
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
                    read_4(a[i], a_tile + stage * FLOATS + i * DOWN * LD + k4);
#pragma unroll
                for (int j = 0; j < MICRO_COLUMNS; ++j)
                    read_4(w[j], w_tile + stage * FLOATS + j * ACROSS * LD + k4);
#pragma unroll
                for (int k = 0; k < 4; ++k)
#pragma unroll
                    for (int i = 0; i < MICRO_ROWS; ++i)
#pragma unroll
                        for (int j = 0; j < MICRO_COLUMNS; ++j) sum[i][j] += a[i][k] * w[j][k];
            }
            stage ^= 1;
        }

        float4 out[OUT];
        gather(sum, out, shared4, group);
        const int row = block_row + ty + group * (OUT_ROWS * DOWN), column = block_column + tx * 4;
        if (args.splits > 1) {
            const int tile = blockIdx.y * gridDim.x + blockIdx.x;
            float4* const parts = reinterpret_cast<float4*>(args.partial) +
                                  static_cast<long long>(tile) * args.splits * (OUT * THREADS) + threadIdx.x;
#pragma unroll
            for (int i = 0; i < OUT; ++i) parts[(blockIdx.z * OUT + i) * THREADS] = out[i];
            if (!is_last_block(&arrival_counters[tile], args.splits)) return;
            add_parts(parts, args.splits, out);
        }
        EpilogueOperands terms[OUT];
#pragma unroll
        for (int i = 0; i < OUT; ++i)
            terms[i] = load_epilogue_operands(args, row + i / QUADS * DOWN, column + i % QUADS * (4 * ACROSS));
#pragma unroll
        for (int i = 0; i < OUT; ++i)
            store_float4(args, out[i], terms[i], row + i / QUADS * DOWN, column + i % QUADS * (4 * ACROSS));
    }

private:
    // A thread's sums of the tile's inner axis: with two groups, of one half of its rows, the other's given away.
    static __device__ __forceinline__ void gather(const float (&sum)[MICRO_ROWS][MICRO_COLUMNS], float4 (&out)[OUT],
                                                  float4* shared4, int group) {
        if (GROUPS == 2) __syncthreads();  // all have used the last stage, which lies where halves are exchanged
#pragma unroll
        for (int i = 0; i < OUT; ++i) {
            const float* const low = &sum[i / QUADS][i % QUADS * 4];
            const float* const high = &sum[i / QUADS + MICRO_ROWS - OUT_ROWS][i % QUADS * 4];
            const float4 first = make_float4(low[0], low[1], low[2], low[3]);
            const float4 second = make_float4(high[0], high[1], high[2], high[3]);
            out[i] = group ? second : first;
            if (GROUPS == 2) shared4[i * THREADS + threadIdx.x] = group ? first : second;
        }
        if (GROUPS == 1) return;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < OUT; ++i) add(out[i], shared4[i * THREADS + (threadIdx.x ^ GROUP_THREADS)]);
    }

    // Parts come from other SMs: they are read from L2, past an L1 that may hold what lay there before.
    static __device__ __forceinline__ void add_parts(const float4* parts, int splits, float4 (&out)[OUT]) {
#pragma unroll
        for (int i = 0; i < OUT; ++i) out[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 2
        for (int split = 0; split < splits; ++split) {
#pragma unroll
            for (int i = 0; i < OUT; ++i) add(out[i], __ldcg(parts + (split * OUT + i) * THREADS));
        }
    }

    static __device__ __forceinline__ void add(float4& total, float4 value) {
        total = make_float4(total.x + value.x, total.y + value.y, total.z + value.z, total.w + value.w);
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
