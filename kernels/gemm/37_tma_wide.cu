// Rung 37: TF32 products of many rows, in tiles of 128 x 192 by persistent blocks.
// Against 22_tma: four changes, since with many rows the tensor cores are what products wait for.
//   - Tiles of 128 x 192. With 4096 rows every product of the model then has as many tiles as 132 SMs work off in whole
//     turns (97 %). There 64 rows by 16 to 112 columns, for tiles enough at 128 rows.
//   - The two blocks of a cluster have tiles one below the other, and each copies half of the weights' tile for both. At
//     the tensor cores' rate an SM takes in 53 bytes a cycle; L2 gives 36 to each of 132, and is asked for 37.
//   - `pingpong`: a block's two warpgroups have tiles of their own, in turn: one multiplies while the other stores. There
//     both work at one tile, which no block has another one after. `together`: for products of one tile an SM, whose
//     warpgroups multiply 64 rows each.
//   - Blocks stay for several tiles, so that the next one's operands are on their way when a tile ends.
// Should be faster for all products of a batch: pingpong for those with more tiles than SMs, together for the others.
// Shapes: any rows; inner a multiple of 32; columns and leading dimensions of 4. Row layout. Operands are rounded to TF32
// on their way. Deterministic.
//
// Tiles of a cluster of two blocks, and their turns (pingpong):
//
//            192 columns
//   rank 0  | 128 rows |   one stage: 32 of K       warpgroup 0   tile 0: products | store  | tile 2: products | store
//   rank 1  | 128 rows |   a 16 KB, w 24 KB         warpgroup 1     -              | tile 1: products | store  | ...
//
// Roles: warpgroup 2's first lane asks for stages, in the order of tiles, into a ring; a stage's `full` barrier says that
// its bytes have come, its `empty` barrier that the warps that read it, of both blocks, are done with it: weights come
// to both. Weights of the first stages are asked for before griddep_wait().
//
// The two warpgroups of pingpong pass a turn on by named barriers: none waits for a stage before the other has waited
// for all of its own, since a wait by parity may be at most one phase behind.
//
// A thread's accumulators: see wgmma.cuh; it stores pairs of columns. They begin with bias and residual, which are there
// by the time that the first stage is.
// arch: 90a
#include "activation.cuh"
#include "args.cuh"
#include "cluster.cuh"
#include "dependent_launch.cuh"
#include "mbarrier.cuh"
#include "named_barrier.cuh"
#include "setmaxnreg.cuh"
#include "tensor_map.cuh"
#include "wgmma.cuh"

constexpr int WARPGROUP = 128, CONSUMERS = 2, THREADS = WARPGROUP * (CONSUMERS + 1);
constexpr int ROWS = 128, COLUMNS = 192;
constexpr int CHUNK = 32, K_STEPS = CHUNK / 8;  // of K in a stage
constexpr int CLUSTER = 2;
constexpr int STAGES = 5;
constexpr int TURN_BARRIER = 1;  // and the next one: of warpgroup 0 and 1
constexpr unsigned STAGE_BYTES = (ROWS + COLUMNS) * CHUNK * sizeof(float);

struct Shared {
    float a[STAGES][ROWS * CHUNK];
    float w[STAGES][COLUMNS * CHUNK];
    Mbarrier full[STAGES], empty[STAGES];
};

// A place in the ring, and how often it has gone round.
struct Position {
    int slot = 0, round = 0;

    __device__ __forceinline__ void next() {
        if (++slot == STAGES) slot = 0, ++round;
    }
    __device__ __forceinline__ void skip(int stages) {
        slot += stages;
        round += slot / STAGES;
        slot %= STAGES;
    }
};

// Two floats, or zeros if `there` is false; `from` need not be an address then.
__device__ __forceinline__ float2 ld_global_float2_if(const float* from, bool there) {
    float2 value;
    asm("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %3, 0;\n\tmov.f32 %0, 0f00000000;\n\tmov.f32 %1, 0f00000000;\n\t"
        "@p ld.global.v2.f32 {%0, %1}, [%2];\n\t}"
        : "=&f"(value.x), "=&f"(value.y)
        : "l"(from), "r"(static_cast<unsigned>(there)));
    return value;
}

template <bool PINGPONG>
struct TmaWide {
    static constexpr int HALVES = PINGPONG ? 2 : 1;  // of 64 rows that a warpgroup multiplies
    static constexpr int RELEASES = WARPGROUP / 32 * (PINGPONG ? 1 : CONSUMERS) * CLUSTER;  // warps that read a stage

    const TmaGemmArgs<float>& args;
    Shared& shared;
    const int warpgroup = threadIdx.x / WARPGROUP, lane = threadIdx.x % 32;
    const int rank = blockIdx.x % CLUSTER, cluster = blockIdx.x / CLUSTER, clusters = gridDim.x / CLUSTER;
    const int row_pairs = (args.rows + CLUSTER * ROWS - 1) / (CLUSTER * ROWS);
    const int all_tiles = row_pairs * ((args.columns + COLUMNS - 1) / COLUMNS);  // of a cluster
    const int tiles = (all_tiles - cluster + clusters - 1) / clusters;           // of this one
    const int steps = args.inner / CHUNK;

    __device__ __forceinline__ TmaWide(const TmaGemmArgs<float>& args, Shared& shared) : args(args), shared(shared) {}

    __device__ __forceinline__ void run() const {
        griddep_launch_dependents();
        if (threadIdx.x == 0) {
#pragma unroll
            for (int i = 0; i < STAGES; ++i) mbarrier_init(&shared.full[i], 1), mbarrier_init(&shared.empty[i], RELEASES);
            fence_mbarrier_init();
        }
        // Before a block's barriers are there, none of the cluster may signal them.
        __syncthreads();
        cluster_arrive_release();
        cluster_wait_acquire();
        if (warpgroup == CONSUMERS) {
            if constexpr (PINGPONG) setmaxnreg_dec<24>();
            if (threadIdx.x == CONSUMERS * WARPGROUP) produce();
            __syncwarp();
            griddep_wait();
        } else {
            if constexpr (PINGPONG) setmaxnreg_inc<240>();
            consume();
        }
        // No block may leave while another one may still signal its barriers.
        cluster_arrive_relaxed();
        cluster_wait_acquire();
    }

private:
    __device__ __forceinline__ int row_of(int tile) const {
        return ((cluster + tile * clusters) % row_pairs * CLUSTER + rank) * ROWS;
    }
    __device__ __forceinline__ int column_of(int tile) const { return (cluster + tile * clusters) / row_pairs * COLUMNS; }

    // ---------------------------------------------------------------------------------------------- copies

    __device__ __forceinline__ void copy_w(int tile, int step, int slot) const {
        constexpr int SHARE = COLUMNS / CLUSTER;
        mbarrier_arrive_expect_tx(&shared.full[slot], STAGE_BYTES);
        cp_async_bulk_tensor_3d_multicast(shared.w[slot] + rank * SHARE * CHUNK, args.w, column_of(tile) + rank * SHARE,
                                          step, &shared.full[slot], (1u << CLUSTER) - 1);
    }
    __device__ __forceinline__ void copy_a(int tile, int step, int slot) const {
        cp_async_bulk_tensor_3d(shared.a[slot], args.a, row_of(tile), step, &shared.full[slot]);
    }

    __device__ __forceinline__ void produce() const {
        prefetch_tensormap(args.w);
        prefetch_tensormap(args.a);
        const int early = min(tiles * steps, STAGES);
#pragma unroll 1
        for (int i = 0; i < early; ++i) copy_w(i / steps, i % steps, i);
        griddep_wait();
#pragma unroll 1
        for (int i = 0; i < early; ++i) copy_a(i / steps, i % steps, i);
        Position position;
        int stage = 0;
#pragma unroll 1
        for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll 1
            for (int step = 0; step < steps; ++step, ++stage, position.next()) {
                if (stage < early) continue;
                mbarrier_wait_parity(&shared.empty[position.slot], (position.round - 1) & 1);
                copy_w(tile, step, position.slot);
                copy_a(tile, step, position.slot);
            }
        }
    }

    // -------------------------------------------------------------------------------------------- products

    // Says to both blocks that this warp has read a slot.
    __device__ __forceinline__ void release(int slot) const {
        if (lane < CLUSTER) mbarrier_arrive_cluster(&shared.empty[slot], lane);
    }

    __device__ __forceinline__ void consume() const {
        const int first_row = PINGPONG ? 0 : warpgroup * 64;
        griddep_wait();
        Position position;
        if (PINGPONG && warpgroup == 1) position.skip(steps);
#pragma unroll 1
        for (int tile = PINGPONG ? warpgroup : 0; tile < tiles; tile += PINGPONG ? CONSUMERS : 1) {
            float acc[HALVES][COLUMNS / 2];
#pragma unroll
            for (int i = 0; i < HALVES; ++i) begin_rows(acc[i], row_of(tile) + first_row + i * 64, column_of(tile));
            if (PINGPONG && tile > 0) bar_sync<CONSUMERS * WARPGROUP>(TURN_BARRIER + warpgroup);
            int last_slot = 0;
#pragma unroll 1
            for (int step = 0; step < steps; ++step, position.next()) {
                const int slot = position.slot;
                mbarrier_wait_parity(&shared.full[slot], position.round & 1);
                const unsigned long long a = wgmma_descriptor(shared.a[slot] + first_row * CHUNK);
                const unsigned long long w = wgmma_descriptor(shared.w[slot]);
                wgmma_fence();
#pragma unroll
                for (int k = 0; k < K_STEPS; ++k)
#pragma unroll
                    for (int i = 0; i < HALVES; ++i)
                        wgmma_tf32<COLUMNS>(acc[i], a + (i * 64 * CHUNK * sizeof(float) >> 4) + 2 * k, w + 2 * k);
                wgmma_commit_group();
                if (step > 0) {
                    wgmma_wait_group<1>();
                    release(last_slot);
                }
                last_slot = slot;
            }
            if (PINGPONG && tile + 1 < tiles) bar_arrive<CONSUMERS * WARPGROUP>(TURN_BARRIER + (warpgroup ^ 1));
            wgmma_wait_group<0>();
            release(last_slot);
#pragma unroll
            for (int i = 0; i < HALVES; ++i) {
                wgmma_fence_operand(acc[i]);
                store_rows(acc[i], row_of(tile) + first_row + i * 64, column_of(tile));
            }
            if (PINGPONG) position.skip(steps);
        }
    }

    // A thread's pairs of neighbouring columns in the 64 rows from `row` on: pair i is acc[2i] and acc[2i + 1], in the
    // thread's first row or, if i is odd, 8 rows below.
    __device__ __forceinline__ int first_row_of(int row) const {
        return row + threadIdx.x % WARPGROUP / 32 * 16 + lane / 4;
    }
    __device__ __forceinline__ int first_column_of(int column) const { return column + lane % 4 * 2; }

    // What is added to the products without more ado is what accumulators begin with: it comes while they wait. No
    // branch: the compiler would let each product wait for the one before.
    __device__ __forceinline__ void begin_rows(float (&acc)[COLUMNS / 2], int row, int column) const {
        row = first_row_of(row), column = first_column_of(column);
        const float* const bias = args.bias + column;
        const float* const residual = args.residual + static_cast<long long>(row) * args.ldr + column;
        const float* const below = residual + 8ll * args.ldr;
        const bool adds_bias = args.bias, adds_residual = args.residual && !args.activate;
        const bool upper = adds_residual && row < args.rows, lower = adds_residual && row + 8 < args.rows;
#pragma unroll
        for (int i = 0; i < COLUMNS / 8; ++i) {
            const bool inside = column + i * 8 < args.columns;
            const float2 b = ld_global_float2_if(bias + i * 8, adds_bias && inside);
            const float2 r0 = ld_global_float2_if(residual + i * 8, upper && inside);
            const float2 r1 = ld_global_float2_if(below + i * 8, lower && inside);
            acc[4 * i] = b.x + r0.x, acc[4 * i + 1] = b.y + r0.y;
            acc[4 * i + 2] = b.x + r1.x, acc[4 * i + 3] = b.y + r1.y;
        }
        wgmma_fence_operand(acc);
    }

    __device__ __forceinline__ void store_rows(const float (&acc)[COLUMNS / 2], int row, int column) const {
        row = first_row_of(row), column = first_column_of(column);
        const bool adds_residual = args.residual && args.activate;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int at_row = row + half * 8;
            float* const c = args.c + static_cast<long long>(at_row) * args.ldc + column;
            const float* const residual = args.residual + static_cast<long long>(at_row) * args.ldr + column;
#pragma unroll
            for (int i = 0; i < COLUMNS / 8; ++i) {
                const bool inside = at_row < args.rows && column + i * 8 < args.columns;
                float2 value = make_float2(acc[4 * i + 2 * half], acc[4 * i + 2 * half + 1]);
                if (args.activate) value = make_float2(activation(value.x), activation(value.y));
                const float2 r = ld_global_float2_if(residual + i * 8, adds_residual && inside);
                if (inside) *reinterpret_cast<float2*>(c + i * 8) = make_float2(value.x + r.x, value.y + r.y);
            }
        }
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    gemm_tma_wide_pingpong(const __grid_constant__ TmaGemmArgs<float> args) {
    extern __shared__ __align__(SWIZZLE_ATOM_BYTES) unsigned char bytes[];
    TmaWide<true>(args, *reinterpret_cast<Shared*>(bytes)).run();
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    gemm_tma_wide_together(const __grid_constant__ TmaGemmArgs<float> args) {
    extern __shared__ __align__(SWIZZLE_ATOM_BYTES) unsigned char bytes[];
    TmaWide<false>(args, *reinterpret_cast<Shared*>(bytes)).run();
}
