// Rung 26: fp32 products in which every warp multiplies a slice of K (the inner axis) of its own.
// Against 11_fp32_cluster: three changes.
//   - One block has an SM, and its tile is cut so that 120 to 128 of 132 SMs have one. There, 128 to 384 blocks share
//     the SMs unevenly.
//   - Each of a block's eight warps computes the whole tile over an eighth of K, from a ring of stages that it alone
//     fills and reads: no barrier until the end. There, four warps share their stages and meet at each.
//   - A thread has 8 x MICRO_COLUMNS accumulators, 8 x 13 at most, so that a 16-byte load from shared memory feeds up
//     to 20 FFMAs. There 8 x 4 to 8 x 8.
// Should be faster for all products of a batch of 1: 36 columns for qkv, 48 for w1 and kv, 52, 40 or 24 for wo and w2.
// Shapes: rows a multiple of 64, columns of 4 and at least one tile, inner of 16, leading dimensions of 4; clusters of
// up to MAX_SPLITS blocks. Row layout. Deterministic: partial results are added in the order of warps, then of blocks.
//
// Tile, cluster and threads:
//
//   cluster x of row y owns rows 64y.. and 4 MICRO_COLUMNS columns of c; the last tile of a row begins where it ends
//   with the columns, and stores only what the tile before it does not
//
//            K  | rank 0: warps 0 .. 7 | rank 1: warps 0 .. 7 | ...        one slice a warp, in steps of DEPTH
//                   |  add 8 partial tiles        |
//               64 x COLUMNS partial tile in the shared memory of each block
//                   |                             |
//               rank 0 adds and stores the first 1/splits of the tile's float4s, rank 1 the next, ...
//
//   lanes of a warp (tx across, ty down)      a thread's accumulators: rows ty + 8i, columns tx + 4j
//
//   tx     0  1  2  3
//   ty 0   0  2 16 18       With this numbering, neighbours in each half of a warp share a row or a column, so that a
//   ty 1   1  3 17 19       16-byte shared memory load is served in two steps instead of four.
//   ty 2   4  6 20 22
//   ty 3   5  7 21 23
//   ty 4   8 10 24 26
//   ty 5   9 11 25 27
//   ty 6  12 14 28 30
//   ty 7  13 15 29 31
//
// Shared memory of a warp: a ring of STAGES stages; a stage is 64 rows of a, then the columns of w, each of 16 floats
// (4 chunks of 16 bytes). Chunk c of row r of a lies at chunk c ^ (r / 2 % 4), so that 8 rows in succession hit each
// bank once; of w at chunk c, since a load reads no more than two rows in each half of a warp. After its last step a
// warp's partial tile lies over its own ring.
//
// K. A chunk holds 4 indices of K for one row or column. A thread holds a chunk of all its rows and goes through its
// columns in groups of up to 4, the next group's chunk on its way; with the last group, the next chunk of its rows.
// arch: 90
#include "cluster.cuh"
#include "cp_async.cuh"
#include "dependent_launch.cuh"
#include "epilogue.cuh"

constexpr int WARPS = 8, THREADS = 32 * WARPS;
constexpr int DOWN = 8, ACROSS = 4;  // lanes
constexpr int MICRO_ROWS = 8, ROWS = DOWN * MICRO_ROWS;
constexpr int DEPTH = 16, CHUNKS = DEPTH / 4;
constexpr int SWEEP = 32 / CHUNKS;  // rows of a stage that a warp copies at once
constexpr int GROUP = 4;            // columns of a thread, at most
constexpr int MAX_SPLITS = 8;

template <int MICRO_COLUMNS, int STAGES>
struct Fp32Slices {
    static constexpr int COLUMNS = ACROSS * MICRO_COLUMNS;
    static constexpr int GROUPS = (MICRO_COLUMNS + GROUP - 1) / GROUP;
    static constexpr int FLOATS = (ROWS + COLUMNS) * DEPTH;  // of a stage
    static constexpr int RING = STAGES * FLOATS;
    static constexpr int LD = COLUMNS % 8 == 4 ? COLUMNS : COLUMNS + 4;  // of a partial tile: 32 lanes, 32 banks
    static constexpr int FLOAT4S = ROWS * COLUMNS / 4;
    static constexpr int ITERATIONS = (FLOAT4S + THREADS - 1) / THREADS;  // of a thread through the tile's float4s
    static_assert(ROWS * LD <= RING, "a warp's partial tile lies over its ring");

    using Accumulators = float[MICRO_ROWS][MICRO_COLUMNS];

    const GemmArgs& args;
    float* const shared;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int tx = lane >> 1 & 1 | lane >> 3 & 2, ty = lane & 1 | lane >> 1 & 6;
    const int rank = blockIdx.x % args.splits;
    const int block_row = blockIdx.y * ROWS;
    const int first_column = blockIdx.x / args.splits * COLUMNS;              // of those that this tile stores
    const int block_column = min(first_column, args.columns - COLUMNS);       // of those that it computes
    float* const ring = shared + warp * RING;

    __device__ __forceinline__ Fp32Slices(const GemmArgs& args, float* shared) : args(args), shared(shared) {}

    __device__ __forceinline__ void run() const {
        griddep_launch_dependents();
        const unsigned all_steps = static_cast<unsigned>(args.inner) / DEPTH, slices = args.splits * WARPS;
        const unsigned slice = rank * WARPS + warp;
        const int first = all_steps * slice / slices;
        const int steps = all_steps * (slice + 1) / slices - first;

        Accumulators acc = {};
        multiply(acc, first * DEPTH, steps);
#pragma unroll
        for (int i = 0; i < MICRO_ROWS; ++i)
#pragma unroll
            for (int j = 0; j < MICRO_COLUMNS; ++j) ring[(ty + i * DOWN) * LD + tx + j * ACROSS] = acc[i][j];
        if (args.splits == 1)
            store_tile();
        else
            store_share_of_tile();
    }

private:
    // Adds `steps` steps of K from index `k0` on. Reads no operand but weights before griddep_wait().
    __device__ __forceinline__ void multiply(Accumulators& acc, int k0, int steps) const {
        const int copy_row = lane / CHUNKS, copy_chunk = lane % CHUNKS;
        const float* a_from = args.a + static_cast<long long>(block_row + copy_row) * args.lda + k0 + copy_chunk * 4;
        const float* w_from = args.w + static_cast<long long>(block_column + copy_row) * args.ldw + k0 + copy_chunk * 4;
        float* const a_to = ring + copy_row * DEPTH + (copy_chunk ^ copy_row / 2 % 4) * 4;
        float* const w_to = ring + (ROWS + copy_row) * DEPTH + copy_chunk * 4;
        auto copy_a = [&](int stage) {
#pragma unroll
            for (int i = 0; i < ROWS; i += SWEEP)
                cp_async_16(a_to + stage + i * DEPTH, a_from + static_cast<long long>(i) * args.lda);
            a_from += DEPTH;
        };
        auto copy_w = [&](int stage) {
#pragma unroll
            for (int i = 0; i < COLUMNS; i += SWEEP)
                if (i + SWEEP <= COLUMNS || copy_row < COLUMNS - i)
                    cp_async_16(w_to + stage + i * DEPTH, w_from + static_cast<long long>(i) * args.ldw);
            w_from += DEPTH;
        };
        if (steps > 0) copy_w(0);
        griddep_wait();
        if (steps == 0) return;
        copy_a(0);
        cp_async_commit_group();
#pragma unroll
        for (int i = 1; i < STAGES; ++i) {
            if (i < steps) {
                copy_w(i * FLOATS);
                copy_a(i * FLOATS);
            }
            cp_async_commit_group();
        }

        float a[2][MICRO_ROWS][4], w[2][GROUP][4];
        int stage = 0, half = 0, steps_to_copy = steps - STAGES;  // half: of the stage's chunks, in pairs
        auto load_a = [&](float (&values)[MICRO_ROWS][4], int chunk) {
            const float* const from = ring + stage + ty * DEPTH + (chunk ^ ty / 2) * 4;
#pragma unroll
            for (int i = 0; i < MICRO_ROWS; ++i) load(values[i], from + i * DOWN * DEPTH);
        };
        auto load_w = [&](float (&values)[GROUP][4], int chunk, int group) {
            const float* const from = ring + stage + (ROWS + tx) * DEPTH + chunk * 4;
#pragma unroll
            for (int j = 0; j < GROUP; ++j)
                if (group_begin(group) + j < group_begin(group + 1))
                    load(values[j], from + (group_begin(group) + j) * ACROSS * DEPTH);
        };
        cp_async_wait_group<STAGES - 1>();
        __syncwarp();
        load_a(a[0], 0);
        load_w(w[0], 0, 0);
#pragma unroll 1
        for (int pairs = 2 * steps; pairs > 0; --pairs) {
#pragma unroll
            for (int chunk = 0; chunk < 2; ++chunk) {
#pragma unroll
                for (int group = 0; group < GROUPS; ++group) {
                    const int now = (chunk * GROUPS + group) % 2;
                    if (group + 1 < GROUPS) {
                        load_w(w[now ^ 1], half * 2 + chunk, group + 1);
                    } else {
                        if (chunk == 1) {
                            if (half == 1) {  // all of this stage is in registers
                                cp_async_wait_group<STAGES - 2>();
                                __syncwarp();
                                if (steps_to_copy > 0) {
                                    copy_w(stage);
                                    copy_a(stage);
                                }
                                --steps_to_copy;
                                cp_async_commit_group();
                                stage = stage + FLOATS == RING ? 0 : stage + FLOATS;
                            }
                            half ^= 1;
                        }
                        // After the last step: of a stage that nothing uses.
                        load_a(a[chunk ^ 1], half * 2 + (chunk ^ 1));
                        load_w(w[now ^ 1], half * 2 + (chunk ^ 1), 0);
                    }
                    add_products(acc, a[chunk], w[now], group);
                }
            }
        }
    }

    // First of a thread's columns in a group.
    static __device__ constexpr int group_begin(int group) { return MICRO_COLUMNS * group / GROUPS; }

    static __device__ __forceinline__ void load(float (&values)[4], const float* from) {
        *reinterpret_cast<float4*>(values) = *reinterpret_cast<const float4*>(from);
    }

    static __device__ __forceinline__ void add_products(Accumulators& acc, const float (&a)[MICRO_ROWS][4],
                                                        const float (&w)[GROUP][4], int group) {
#pragma unroll
        for (int k = 0; k < 4; ++k)
#pragma unroll
            for (int i = 0; i < MICRO_ROWS; ++i)
#pragma unroll
                for (int j = 0; j < GROUP; ++j)
                    if (group_begin(group) + j < group_begin(group + 1))
                        acc[i][group_begin(group) + j] += a[i][k] * w[j][k];
    }

    // Row and column in c of float4 `index` of the tile, and its offset in a partial tile.
    __device__ __forceinline__ int row_of(int index) const { return block_row + index / (COLUMNS / 4); }
    __device__ __forceinline__ int column_of(int index) const { return block_column + index % (COLUMNS / 4) * 4; }
    static __device__ __forceinline__ int offset_of(int index) {
        return index / (COLUMNS / 4) * LD + index % (COLUMNS / 4) * 4;
    }

    // A thread's float4s lie THREADS apart from `begin` on, before `end`.
    __device__ __forceinline__ bool stores(int index, int end) const {
        return index < end && column_of(index) >= first_column;
    }
    __device__ __forceinline__ void load_operands(EpilogueOperands (&operands)[ITERATIONS], int begin, int end) const {
#pragma unroll
        for (int i = 0; i < ITERATIONS; ++i) {
            const int index = begin + i * THREADS;
            if (stores(index, end)) operands[i] = load_epilogue_operands(args, row_of(index), column_of(index));
        }
    }

    static __device__ __forceinline__ float4 add(float4 a, float4 b) {
        return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
    }

    // Adds the partial tiles of this block's warps.
    __device__ __forceinline__ float4 add_warps(int index) const {
        const float* const from = shared + offset_of(index);
        float4 acc = *reinterpret_cast<const float4*>(from);
#pragma unroll
        for (int i = 1; i < WARPS; ++i) acc = add(acc, *reinterpret_cast<const float4*>(from + i * RING));
        return acc;
    }

    __device__ __forceinline__ void store_tile() const {
        EpilogueOperands operands[ITERATIONS];
        load_operands(operands, threadIdx.x, FLOAT4S);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < ITERATIONS; ++i) {
            const int index = threadIdx.x + i * THREADS;
            if (stores(index, FLOAT4S))
                store_float4(args, add_warps(index), operands[i], row_of(index), column_of(index));
        }
    }

    // Each block of the cluster finishes a share of the tile. The block's partial tile lies over its first warp's.
    __device__ __forceinline__ void store_share_of_tile() const {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < ITERATIONS; ++i) {
            const int index = threadIdx.x + i * THREADS;
            if (index < FLOAT4S) *reinterpret_cast<float4*>(shared + offset_of(index)) = add_warps(index);
        }
        cluster_arrive_release();
        const int share = (FLOAT4S + args.splits - 1) / args.splits;
        const int begin = share * rank + threadIdx.x, end = min(share * (rank + 1), FLOAT4S);
        EpilogueOperands operands[ITERATIONS];
        load_operands(operands, begin, end);
        cluster_wait_acquire();
#pragma unroll
        for (int i = 0; i < ITERATIONS; ++i) {
            const int index = begin + i * THREADS;
            if (index >= end) break;
            float4 value[MAX_SPLITS];
#pragma unroll
            for (int split = 0; split < MAX_SPLITS; ++split)
                if (split < args.splits) value[split] = ld_shared_cluster_float4(shared + offset_of(index), split);
            float4 acc = value[0];
#pragma unroll
            for (int split = 1; split < MAX_SPLITS; ++split)
                if (split < args.splits) acc = add(acc, value[split]);
            if (stores(index, end)) store_float4(args, acc, operands[i], row_of(index), column_of(index));
        }
        // No block may leave while another one may still read its shared memory.
        cluster_arrive_relaxed();
        cluster_wait_acquire();
    }
};

template <int MICRO_COLUMNS, int STAGES>
__device__ __forceinline__ void fp32_slices(const GemmArgs& args) {
    extern __shared__ float4 shared4[];
    Fp32Slices<MICRO_COLUMNS, STAGES>(args, reinterpret_cast<float*>(shared4)).run();
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) gemm_fp32_slices_24(const __grid_constant__ GemmArgs args) {
    fp32_slices<6, 5>(args);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) gemm_fp32_slices_36(const __grid_constant__ GemmArgs args) {
    fp32_slices<9, 4>(args);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) gemm_fp32_slices_40(const __grid_constant__ GemmArgs args) {
    fp32_slices<10, 4>(args);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) gemm_fp32_slices_48(const __grid_constant__ GemmArgs args) {
    fp32_slices<12, 3>(args);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) gemm_fp32_slices_52(const __grid_constant__ GemmArgs args) {
    fp32_slices<13, 3>(args);
}
