// Rung 21's products in fp32: every warp multiplies a slice of the inner axis of its own.
// Against 11_fp32_cluster: there, a block's four warps share its stages and meet at a barrier for each, three or four
// blocks share an SM unevenly, and a lane multiplies 8x4 to 8x8 sums. Here one block has an SM, its tile is cut so
// that nearly all SMs have one, and each of its eight warps computes the whole tile over an eighth of the inner axis,
// from a ring of stages that it alone fills and reads: no barrier until the end. A lane has 8 x MICRO_COLUMNS sums,
// so that shared memory is read once for every 15 to 19 multiply-adds, and the next reads are under way while a group
// of columns is multiplied. Parts are added through shared memory, those of a cluster's blocks from one to the other.
//
//   a tile's 64 rows             lane      0  1  2  3  4  5  6  7 |  8 .. 15 | 16 .. 23 | 24 .. 31
//   ty, ty + 8, ... ty + 56      ty        0  1  0  1  2  3  2  3 |  +4      |  as 0..7 |  as 8..15
//   its columns                  tx        0  0  1  1  0  0  1  1 |  as 0..7 |  +2      |  +2
//   tx, tx + 4, tx + 8, ...      neighbours share a row or a column: a 16-byte read takes two steps, not four
//
//   a stage of one warp          row r of a: 16 inner indices in 4 chunks, chunk c at place c ^ (r / 2 % 4)
//   [64 + columns][16]           row r of w: chunk c at place c
//
// Should be faster for products of few rows and of as many tiles as there are SMs: all of a batch of 1.
// For rows a multiple of 64, columns of 4, inner of 16, leading dimensions of 4; clusters of up to MOST_PARTS.
// Row layout. Deterministic: warps' parts are added in order, then blocks'.
// arch: 90
#include "async_copy.cuh"
#include "cluster.cuh"
#include "dependent.cuh"
#include "store.cuh"

constexpr int WARPS = 8, THREADS = 32 * WARPS;
constexpr int DOWN = 8, ACROSS = 4;  // lanes
constexpr int MICRO_ROWS = 8, ROWS = DOWN * MICRO_ROWS;
constexpr int DEPTH = 16, CHUNKS = DEPTH / 4;  // of 16 bytes in a row of a stage
constexpr int SWEEP = 32 / CHUNKS;             // rows of a stage that one copy of a warp covers
constexpr int MOST_PARTS = 8;

template <int MICRO_COLUMNS, int STAGES>
struct Slices {
    static constexpr int COLUMNS = ACROSS * MICRO_COLUMNS;
    static constexpr int GROUPS = (MICRO_COLUMNS + 3) / 4, MOST = 4;  // of a lane's columns, in turn in registers
    static constexpr int FLOATS = (ROWS + COLUMNS) * DEPTH;           // of a warp's stage
    static constexpr int RING = STAGES * FLOATS;
    static constexpr int LD = COLUMNS % 8 == 4 ? COLUMNS : COLUMNS + 4;  // of a part: its lanes meet no bank twice
    static constexpr int FOURS = ROWS * COLUMNS / 4;                     // of neighbouring columns in a tile
    static constexpr int TURNS = (FOURS + THREADS - 1) / THREADS;
    static_assert(ROWS * LD <= RING, "a warp's part lies over its ring");

    using Sum = float[MICRO_ROWS][MICRO_COLUMNS];

    static __device__ __forceinline__ void run(const GemmArgs& args) {
        extern __shared__ float4 shared4[];
        float* const shared = reinterpret_cast<float*>(shared4);
        let_next_grid_start();

        const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
        const int rank = blockIdx.x % args.splits;
        const int block_row = blockIdx.y * ROWS, block_column = blockIdx.x / args.splits * COLUMNS;
        const unsigned every = static_cast<unsigned>(args.inner) / DEPTH, slices = args.splits * WARPS;
        const unsigned slice = rank * WARPS + warp;
        const int first = every * slice / slices;
        const int steps = every * (slice + 1) / slices - first;
        const int ty = lane & 1 | lane >> 1 & 6, tx = lane >> 1 & 1 | lane >> 3 & 2;
        float* const ring = shared + warp * RING;

        Sum sum = {};
        multiply(args, sum, ring, block_row, block_column, first * DEPTH, steps, ty, tx);
#pragma unroll
        for (int i = 0; i < MICRO_ROWS; ++i)
#pragma unroll
            for (int j = 0; j < MICRO_COLUMNS; ++j) ring[(ty + i * DOWN) * LD + tx + j * ACROSS] = sum[i][j];

        if (args.splits == 1) {
            StoreTerms terms[TURNS];
            fetch_terms(args, terms, block_row, block_column, threadIdx.x, FOURS);
            __syncthreads();
#pragma unroll
            for (int t = 0; t < TURNS; ++t)
                put(args, add_warps(shared, threadIdx.x + t * THREADS), terms[t], block_row, block_column,
                    threadIdx.x + t * THREADS, FOURS);
            return;
        }
        __syncthreads();
#pragma unroll
        for (int t = 0; t < TURNS; ++t) {
            const int four = threadIdx.x + t * THREADS;
            if (four < FOURS) *reinterpret_cast<float4*>(shared + place(four)) = add_warps(shared, four);
        }
        cluster_show();
        add_blocks(args, shared, block_row, block_column, rank);
        // No block leaves while another may still read its shared memory.
        cluster_arrive();
        cluster_wait();
    }

private:
    static __device__ __forceinline__ int four_row(int four) { return four / (COLUMNS / 4); }
    static __device__ __forceinline__ int four_column(int four) { return four % (COLUMNS / 4) * 4; }
    static __device__ __forceinline__ int place(int four) { return four_row(four) * LD + four_column(four); }
    static __device__ constexpr int group_begin(int group) { return MICRO_COLUMNS * group / GROUPS; }

    // A warp's sums over `steps` stages from inner index `begin` on. Reads no operand but weights before the grid's
    // wait.
    static __device__ __forceinline__ void multiply(const GemmArgs& args, Sum& sum, float* ring, int block_row,
                                                    int block_column, int begin, int steps, int ty, int tx) {
        const int lane = threadIdx.x & 31, copy_row = lane / CHUNKS, copy_chunk = lane % CHUNKS;
        const float* a_from =
            args.a + static_cast<long long>(block_row + copy_row) * args.lda + begin + copy_chunk * 4;
        const float* w_from =
            args.w + static_cast<long long>(block_column + copy_row) * args.ldw + begin + copy_chunk * 4;
        float* const a_to = ring + copy_row * DEPTH + (copy_chunk ^ copy_row / 2 % 4) * 4;
        float* const w_to = ring + (ROWS + copy_row) * DEPTH + copy_chunk * 4;
        const int columns = args.columns - block_column - copy_row;  // beyond them nothing is copied, nor stored
        auto fetch_a = [&](int at) {
#pragma unroll
            for (int i = 0; i < ROWS; i += SWEEP)
                copy_async_16(a_to + at + i * DEPTH, a_from + static_cast<long long>(i) * args.lda);
            a_from += DEPTH;
        };
        auto fetch_w = [&](int at) {
#pragma unroll
            for (int i = 0; i < COLUMNS; i += SWEEP)
                if ((i + SWEEP <= COLUMNS || copy_row < COLUMNS - i) && i < columns)
                    copy_async_16(w_to + at + i * DEPTH, w_from + static_cast<long long>(i) * args.ldw);
            w_from += DEPTH;
        };
        if (steps > 0) fetch_w(0);
        wait_for_grid_before();
        if (steps == 0) return;
        fetch_a(0);
        copy_async_commit();
#pragma unroll
        for (int stage = 1; stage < STAGES; ++stage) {
            if (stage < steps) {
                fetch_w(stage * FLOATS);
                fetch_a(stage * FLOATS);
            }
            copy_async_commit();
        }

        const float* const a_tile = ring + ty * DEPTH;
        const float* const w_tile = ring + (ROWS + tx) * DEPTH;
        const int a_swizzle = ty / 2 * 4;
        float a[2][MICRO_ROWS][4], w[2][MOST][4];
        int at = 0, half = 0, to_fetch = steps - STAGES;
        auto read_a = [&](float (&values)[MICRO_ROWS][4], int chunk) {
            const float* const from = a_tile + at + (chunk * 4 ^ a_swizzle);
#pragma unroll
            for (int i = 0; i < MICRO_ROWS; ++i) read(values[i], from + i * DOWN * DEPTH);
        };
        auto read_w = [&](float (&values)[MOST][4], int chunk, int group) {
            const float* const from = w_tile + at + chunk * 4;
#pragma unroll
            for (int j = 0; j < MOST; ++j)
                if (group_begin(group) + j < group_begin(group + 1))
                    read(values[j], from + (group_begin(group) + j) * ACROSS * DEPTH);
        };
        copy_async_wait<STAGES - 1>();
        __syncwarp();
        read_a(a[0], 0);
        read_w(w[0], 0, 0);
#pragma unroll 1
        for (int halves = 2 * steps; halves > 0; --halves) {
#pragma unroll
            for (int chunk = 0; chunk < 2; ++chunk) {
#pragma unroll
                for (int group = 0; group < GROUPS; ++group) {
                    const int now = (chunk * GROUPS + group) % 2;
                    if (group + 1 < GROUPS) {
                        read_w(w[now ^ 1], half * 2 + chunk, group + 1);
                    } else {
                        if (chunk == 1) {
                            if (half == 1) {  // all of this stage is in registers
                                copy_async_wait<STAGES - 2>();
                                __syncwarp();
                                if (to_fetch > 0) {
                                    fetch_w(at);
                                    fetch_a(at);
                                }
                                --to_fetch;
                                copy_async_commit();
                                at = at + FLOATS == RING ? 0 : at + FLOATS;
                            }
                            half ^= 1;
                        }
                        const int next = half * 2 + (chunk ^ 1);
                        read_a(a[chunk ^ 1], next);
                        read_w(w[now ^ 1], next, 0);
                    }
                    add_products(sum, a[chunk], w[now], group);
                }
            }
        }
    }

    static __device__ __forceinline__ void read(float (&values)[4], const float* from) {
        *reinterpret_cast<float4*>(values) = *reinterpret_cast<const float4*>(from);
    }

    static __device__ __forceinline__ void add_products(Sum& sum, const float (&a)[MICRO_ROWS][4],
                                                        const float (&w)[MOST][4], int group) {
#pragma unroll
        for (int k = 0; k < 4; ++k)
#pragma unroll
            for (int i = 0; i < MICRO_ROWS; ++i)
#pragma unroll
                for (int j = 0; j < MOST; ++j)
                    if (group_begin(group) + j < group_begin(group + 1))
                        sum[i][group_begin(group) + j] += a[i][k] * w[j][k];
    }

    static __device__ __forceinline__ float4 plus(float4 a, float4 b) {
        return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
    }

    static __device__ __forceinline__ float4 add_warps(const float* shared, int four) {
        const float* const from = shared + place(min(four, FOURS - 1));
        float4 total = *reinterpret_cast<const float4*>(from);
#pragma unroll
        for (int warp = 1; warp < WARPS; ++warp)
            total = plus(total, *reinterpret_cast<const float4*>(from + warp * RING));
        return total;
    }

    // Of a thread's fours from `next` on, those before `last`.
    static __device__ __forceinline__ void fetch_terms(const GemmArgs& args, StoreTerms (&terms)[TURNS], int block_row,
                                                       int block_column, int next, int last) {
#pragma unroll
        for (int t = 0; t < TURNS; ++t) {
            const int four = next + t * THREADS;
            const int column = block_column + four_column(four);
            if (four < last && column < args.columns) terms[t] = store_terms(args, block_row + four_row(four), column);
        }
    }

    static __device__ __forceinline__ void put(const GemmArgs& args, float4 total, const StoreTerms& terms,
                                               int block_row, int block_column, int four, int last) {
        const int column = block_column + four_column(four);
        if (four < last && column < args.columns) store_4(args, total, terms, block_row + four_row(four), column);
    }

    // Each block of the cluster finishes a share of the tile, whose parts lie in front of each one's shared memory.
    static __device__ __forceinline__ void add_blocks(const GemmArgs& args, const float* shared, int block_row,
                                                      int block_column, int rank) {
        const int share = (FOURS + args.splits - 1) / args.splits;
        const int next = share * rank + threadIdx.x, last = min(share * (rank + 1), FOURS);
        StoreTerms terms[TURNS];
        fetch_terms(args, terms, block_row, block_column, next, last);
        cluster_wait();
#pragma unroll
        for (int t = 0; t < TURNS; ++t) {
            const int four = next + t * THREADS;
            if (four >= last) break;
            float4 value[MOST_PARTS];
#pragma unroll
            for (int other = 0; other < MOST_PARTS; ++other)
                if (other < args.splits) value[other] = load_from_block(shared + place(four), other);
            float4 total = value[0];
#pragma unroll
            for (int other = 1; other < MOST_PARTS; ++other)
                if (other < args.splits) total = plus(total, value[other]);
            put(args, total, terms[t], block_row, block_column, four, last);
        }
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, 1) gemm_fp32_slices_24(const __grid_constant__ GemmArgs args) {
    Slices<6, 5>::run(args);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) gemm_fp32_slices_36(const __grid_constant__ GemmArgs args) {
    Slices<9, 4>::run(args);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) gemm_fp32_slices_40(const __grid_constant__ GemmArgs args) {
    Slices<10, 4>::run(args);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) gemm_fp32_slices_48(const __grid_constant__ GemmArgs args) {
    Slices<12, 3>::run(args);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) gemm_fp32_slices_52(const __grid_constant__ GemmArgs args) {
    Slices<13, 3>::run(args);
}
