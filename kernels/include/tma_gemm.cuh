// A product of activations and weights whose tiles the copy engine brings: what gemm/22_tma.cu and
// gemm/23_tma_layernorm.cu share.
//
// Roles in a block:
//   warp 8 asks for the weights, before the grid ahead has ended: nobody writes weights. It also prefetches those of a
//     later product into L2, whose bytes DRAM would otherwise bring while nothing else needs it.
//   warp 9 asks for the activations, once that grid has ended.
//   warps 0-3 and 4-7, two warpgroups, multiply: they take pieces of 64 indices of K in turn, so that each has a sum of
//     its own over half of K, with no barrier between them.
//
//        K of this block   | piece 0 | piece 1 | piece 2 | piece 3 | ...
//        warpgroup              0         1         0         1               8 wgmma a piece, one commit
//
//   Each operand has a ring of slots. A slot's `full` barrier says that the copy has come, its `empty` barrier that the
//   four warps of the warpgroup have read it. The number of slots is even, so that a slot always serves the same
//   warpgroup: a wait by parity may be at most one phase behind.
//
// Then sums are added, always in the same order:
//   - Warpgroup 0 finishes the first half of the tile's columns, warpgroup 1 the others: each adds the other's part,
//     which came through shared memory.
//   - With SPLITS > 1 the blocks of a cluster divide K. Each thread sends its part to the block that finishes those rows
//     (with SPLITS = 8 also those columns), by st.async, and that block adds the parts in the order of their senders.
//
//        rows of the tile that rank i of the cluster finishes        (warp w of either warpgroup has rows 16w to 16w + 15)
//        SPLITS = 2: warps 2i and 2i + 1     SPLITS = 4: warp i     SPLITS = 8: warp i / 2, of columns' half i % 2
//
// Shapes: any rows; inner a multiple of 32; columns and leading dimensions of 4. Row layout.
#pragma once
#include "args.cuh"
#include "cluster.cuh"
#include "cp_async.cuh"
#include "dependent_launch.cuh"
#include "mbarrier.cuh"
#include "mma_sync.cuh"
#include "tensor_map.cuh"
#include "warp.cuh"
#include "wgmma.cuh"

namespace tma_gemm {
constexpr int ROWS = 64;            // of a tile
constexpr int CHUNK = 32;           // floats of a swizzled row
constexpr int DEPTH = 2 * CHUNK;    // of a piece
constexpr int K_STEPS = DEPTH / 8;  // wgmma of a piece
constexpr int CONSUMERS = 256, THREADS = CONSUMERS + 64;
constexpr int W_PRODUCER = CONSUMERS / 32, A_PRODUCER = W_PRODUCER + 1;  // warps
constexpr int A_PIECE = ROWS * DEPTH;
constexpr int LINE = 32;            // floats of a cache line

// Bars only the warps that multiply.
__device__ __forceinline__ void consumers_sync() { asm volatile("bar.sync 1, %0;" ::"n"(CONSUMERS) : "memory"); }
}  // namespace tma_gemm

// NORMALISE: the rows of `a` are normalised on the way, as far as their scale goes: the weights have the mean folded in.
template <int COLUMNS, int SPLITS, int A_SLOTS, int W_SLOTS, bool NORMALISE>
struct TmaGemm {
    static constexpr int W_PIECE = COLUMNS * tma_gemm::DEPTH;
    static constexpr int GROUPS = COLUMNS / 8;             // of eight columns
    static constexpr int FIRST_GROUPS = (GROUPS + 1) / 2;  // of them, those that warpgroup 0 finishes
    // Of a cluster's block: threads whose parts it gets for one group, and the most groups.
    static constexpr int SENDERS = SPLITS == 8 ? 32 : 128 / SPLITS;
    static constexpr int RECEIVED_GROUPS = SPLITS == 8 ? FIRST_GROUPS : GROUPS;
    // Quads of values (two rows, two columns) that a thread finishes at most.
    static constexpr int QUADS =
        SPLITS == 1 ? FIRST_GROUPS : (RECEIVED_GROUPS * SENDERS + tma_gemm::CONSUMERS - 1) / tma_gemm::CONSUMERS;
    static_assert(COLUMNS % 8 == 0 && A_SLOTS % 2 == 0 && W_SLOTS % 2 == 0, "a slot serves one warpgroup");
    // A piece is released when the next one of its warpgroup has been asked for.
    static_assert(A_SLOTS >= 4 && W_SLOTS >= 4, "fewer slots would wait for themselves");
    static_assert(SPLITS == 1 || SPLITS == 2 || SPLITS == 4 || SPLITS == 8, "rows are divided by warps");
    static_assert(!NORMALISE || SPLITS <= 4, "a row's sums go to one block");

    struct Tiles {
        float a[A_SLOTS][tma_gemm::A_PIECE];
        float w[W_SLOTS][W_PIECE];
    };
    // Lies over the tiles after their last use.
    struct Parts {
        float4 exchanged[GROUPS][128];                             // between the warpgroups
        float4 received[SPLITS][RECEIVED_GROUPS][SENDERS];         // from the blocks of the cluster
    };
    static_assert(sizeof(Parts) <= sizeof(Tiles), "parts lie over the tiles");

    struct Shared {
        union {
            Tiles tiles;
            Parts parts;
        };
        float4 moments[SPLITS][2][32 / SPLITS];  // sums and sums of squares of rows r and r + 8, by sender
        float scale[tma_gemm::ROWS];             // 1 / standard deviation
        Mbarrier a_full[A_SLOTS], a_empty[A_SLOTS], w_full[W_SLOTS], w_empty[W_SLOTS];
        Mbarrier received;
    };

    const TmaGemmArgs& args;
    Shared& shared;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int warpgroup = warp / 4, warp_row = warp % 4;
    const int rank = blockIdx.x % SPLITS;
    const int row_tiles = (args.rows + tma_gemm::ROWS - 1) / tma_gemm::ROWS;
    const int block_row = blockIdx.x / SPLITS % row_tiles * tma_gemm::ROWS;
    const int block_column = blockIdx.x / SPLITS / row_tiles * COLUMNS;
    const int all_pieces = (args.inner + tma_gemm::DEPTH - 1) / tma_gemm::DEPTH;
    const int begin = all_pieces * rank / SPLITS;  // in pieces
    const int pieces = all_pieces * (rank + 1) / SPLITS - begin;

    __device__ __forceinline__ TmaGemm(const TmaGemmArgs& args, Shared& shared) : args(args), shared(shared) {}

    __device__ __forceinline__ void run() {
        griddep_launch_dependents();
        if (threadIdx.x == 0) init_barriers();
        __syncthreads();
        if (warp == tma_gemm::W_PRODUCER) {
            send_weights();
        } else if (warp == tma_gemm::A_PRODUCER) {
            send_activations();
        } else {
            multiply_and_finish();
        }
    }

private:
    __device__ __forceinline__ void init_barriers() const {
#pragma unroll 1
        for (int i = 0; i < A_SLOTS; ++i) mbarrier_init(&shared.a_full[i], 1), mbarrier_init(&shared.a_empty[i], 4);
#pragma unroll 1
        for (int i = 0; i < W_SLOTS; ++i) mbarrier_init(&shared.w_full[i], 1), mbarrier_init(&shared.w_empty[i], 4);
        mbarrier_init(&shared.received, 1);
        fence_mbarrier_init();
        if (SPLITS > 1) mbarrier_arrive_expect_tx(&shared.received, received_bytes());
    }

    // Groups of columns that this block finishes.
    __device__ __forceinline__ int received_groups() const {
        return SPLITS == 8 && rank % 2 ? GROUPS - FIRST_GROUPS : RECEIVED_GROUPS;
    }

    __device__ __forceinline__ unsigned received_bytes() const {
        const unsigned bytes = SPLITS * received_groups() * SENDERS * sizeof(float4);
        return NORMALISE ? bytes + sizeof(shared.moments) : bytes;
    }

    __device__ __forceinline__ void send_weights() const {
        if (lane == 0) {
            prefetch_tensormap(args.w);
#pragma unroll 1
            for (int piece = 0; piece < min(pieces, W_SLOTS); ++piece) send_weights_piece(piece);
        }
        __syncwarp();
#pragma unroll 4
        for (int line = blockIdx.x * 32 + lane; line < args.ahead_lines; line += gridDim.x * 32)
            prefetch_global_l2(args.ahead + static_cast<long long>(line) * tma_gemm::LINE);
        if (lane == 0) {
#pragma unroll 1
            for (int piece = W_SLOTS; piece < pieces; ++piece) {
                mbarrier_wait_parity(&shared.w_empty[piece % W_SLOTS], (piece / W_SLOTS - 1) & 1);
                send_weights_piece(piece);
            }
        }
        __syncwarp();
        griddep_wait();
    }

    __device__ __forceinline__ void send_weights_piece(int piece) const {
        const int slot = piece % W_SLOTS;
        mbarrier_arrive_expect_tx(&shared.w_full[slot], W_PIECE * sizeof(float));
        cp_async_bulk_tensor_3d(shared.tiles.w[slot], args.w, block_column, 2 * (begin + piece), &shared.w_full[slot]);
    }

    __device__ __forceinline__ void send_activations() const {
        if (lane == 0) prefetch_tensormap(args.a);
        griddep_wait();
        if (lane == 0) {
#pragma unroll 1
            for (int piece = 0; piece < pieces; ++piece) {
                const int slot = piece % A_SLOTS;
                if (piece >= A_SLOTS) mbarrier_wait_parity(&shared.a_empty[slot], (piece / A_SLOTS - 1) & 1);
                mbarrier_arrive_expect_tx(&shared.a_full[slot], tma_gemm::A_PIECE * sizeof(float));
                cp_async_bulk_tensor_3d(shared.tiles.a[slot], args.a, block_row, 2 * (begin + piece),
                                        &shared.a_full[slot]);
            }
        }
    }

    // ------------------------------------------------------------------------------------------------ products

    __device__ __forceinline__ void wait_for_activations(int piece) const {
        mbarrier_wait_parity(&shared.a_full[piece % A_SLOTS], piece / A_SLOTS & 1);
    }

    __device__ __forceinline__ void wait_for_weights(int piece) const {
        mbarrier_wait_parity(&shared.w_full[piece % W_SLOTS], piece / W_SLOTS & 1);
    }

    __device__ __forceinline__ void release_activations(int piece) const {
        if (lane == 0) mbarrier_arrive(&shared.a_empty[piece % A_SLOTS]);
    }

    __device__ __forceinline__ void release_weights(int piece) const {
        if (lane == 0) mbarrier_arrive(&shared.w_empty[piece % W_SLOTS]);
    }

    __device__ __forceinline__ unsigned long long w_descriptor(int piece) const {
        return wgmma_descriptor(shared.tiles.w[piece % W_SLOTS]);
    }

    // Of the step's 8 indices of K, in a swizzled tile of `rows` rows: what to add to its descriptor.
    static __device__ __forceinline__ int step_offset(int step, int rows) {
        return step / 4 * (rows * SWIZZLE_ROW_BYTES >> 4) + step % 4 * 2;
    }

    // Both operands from shared memory.
    __device__ __forceinline__ void multiply(float (&acc)[COLUMNS / 2]) const {
#pragma unroll 1
        for (int piece = warpgroup; piece < pieces; piece += 2) {
            wait_for_weights(piece);
            wait_for_activations(piece);
            const unsigned long long a = wgmma_descriptor(shared.tiles.a[piece % A_SLOTS]), w = w_descriptor(piece);
            wgmma_fence();
#pragma unroll
            for (int step = 0; step < tma_gemm::K_STEPS; ++step)
                wgmma_tf32<COLUMNS>(acc, a + step_offset(step, tma_gemm::ROWS), w + step_offset(step, COLUMNS));
            wgmma_commit_group();
            wgmma_wait_group<1>();
            if (piece >= 2) release_activations(piece - 2), release_weights(piece - 2);
        }
        wgmma_wait_group<0>();
        wgmma_fence_operand(acc);
    }

    using Fragments = unsigned[tma_gemm::K_STEPS][4];

    // Sum and sum of squares of this thread's share of rows lane / 4 and lane / 4 + 8 of its warp.
    struct Moments {
        float sum[2] = {}, squares[2] = {};

        __device__ __forceinline__ void add(int row, unsigned bits) {
            const float value = __uint_as_float(bits);
            sum[row] += value;
            squares[row] += value * value;
        }
    };

    __device__ __forceinline__ void load_fragments(Fragments& a, Moments& moments, int piece) const {
        wait_for_activations(piece);
        const int row = warp_row * 16 + fragment_a_row(lane), column = fragment_a_k(lane) / 4;
        const char* const tile = reinterpret_cast<const char*>(shared.tiles.a[piece % A_SLOTS]);
#pragma unroll
        for (int step = 0; step < tma_gemm::K_STEPS; ++step) {
            const int chunk = step / 4, chunk_bytes = tma_gemm::ROWS * SWIZZLE_ROW_BYTES;
            const char* const from = tile + chunk * chunk_bytes + swizzle_128b(row, step % 4 * 2 + column);
            ldmatrix_x4(a[step], reinterpret_cast<const float*>(from));
        }
#pragma unroll
        for (int step = 0; step < tma_gemm::K_STEPS; ++step) {
            moments.add(0, a[step][0]), moments.add(0, a[step][2]);
            moments.add(1, a[step][1]), moments.add(1, a[step][3]);
        }
        release_activations(piece);
    }

    __device__ __forceinline__ void multiply_fragments(float (&acc)[COLUMNS / 2], const Fragments& a, int piece) const {
        wait_for_weights(piece);
        const unsigned long long w = w_descriptor(piece);
        wgmma_fence();
#pragma unroll
        for (int step = 0; step < tma_gemm::K_STEPS; ++step)
            wgmma_tf32<COLUMNS>(acc, a[step], w + step_offset(step, COLUMNS));
        wgmma_commit_group();
        wgmma_wait_group<1>();
        if (piece >= 2) release_weights(piece - 2);
    }

    // Activations through registers, where their rows' moments are computed beside the products. There are two sets of
    // fragments, since a product still reads its own when the next ones are loaded.
    __device__ __forceinline__ Moments multiply_with_moments(float (&acc)[COLUMNS / 2]) const {
        Moments moments;
        Fragments first, second;
        int piece = warpgroup;
        if (piece < pieces) load_fragments(first, moments, piece);
#pragma unroll 1
        while (piece < pieces) {
            multiply_fragments(acc, first, piece);
            piece += 2;
            if (piece >= pieces) break;
            load_fragments(second, moments, piece);
            multiply_fragments(acc, second, piece);
            piece += 2;
            if (piece < pieces) load_fragments(first, moments, piece);
        }
        wgmma_wait_group<0>();
        wgmma_fence_operand(acc);
        return moments;
    }

    // ------------------------------------------------------------------------------------------------ what follows

    // Two rows and two columns of the tile: (row, column), (row, column + 1), (row + 8, column), (row + 8, column + 1).
    struct Quad {
        int row, column;
        bool inside;

        __device__ __forceinline__ bool has(const TmaGemm& gemm, int offset) const {
            return inside && gemm.block_row + row + offset < gemm.args.rows &&
                   gemm.block_column + column < gemm.args.columns;
        }
    };

    // The i-th quad that this thread finishes.
    __device__ __forceinline__ Quad quad(int i) const {
        if (SPLITS == 1) {
            const int group = warpgroup ? FIRST_GROUPS + i : i;
            return {warp_row * 16 + lane / 4, group * 8 + lane % 4 * 2, group < (warpgroup ? GROUPS : FIRST_GROUPS)};
        }
        const int index = threadIdx.x + i * tma_gemm::CONSUMERS;
        const int group = index / SENDERS, sender = index % SENDERS;
        const int first_warp = SPLITS == 8 ? rank / 2 : rank * SENDERS / 32;
        const int first_group = SPLITS == 8 && rank % 2 ? FIRST_GROUPS : 0;
        return {(first_warp + sender / 32) * 16 + sender % 32 / 4, (first_group + group) * 8 + sender % 4 * 2,
                group < received_groups()};
    }

    struct Operands {
        float2 bias, residual[2];
    };

    // Zeros if absent, so that they can be added.
    __device__ __forceinline__ Operands load_operands(int i) const {
        Operands operands = {};
        const Quad at = quad(i);
        const int column = block_column + at.column;
        if (args.bias && at.has(*this, 0)) operands.bias = *reinterpret_cast<const float2*>(args.bias + column);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            if (!args.residual || !at.has(*this, half * 8)) continue;
            const long long row = block_row + at.row + half * 8;
            operands.residual[half] = *reinterpret_cast<const float2*>(args.residual + row * args.ldr + column);
        }
        return operands;
    }

    __device__ __forceinline__ float finished(float value, float scale, float bias, float residual) const {
        value = (NORMALISE ? value * scale : value) + bias;
        return (args.relu ? fmaxf(value, 0.0f) : value) + residual;
    }

    __device__ __forceinline__ void store(int i, float4 value, const Operands& operands) const {
        const Quad at = quad(i);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            if (!at.has(*this, half * 8)) continue;
            const float scale = NORMALISE ? shared.scale[at.row + half * 8] : 1.0f;
            const float2 residual = operands.residual[half];
            const long long row = block_row + at.row + half * 8;
            *reinterpret_cast<float2*>(args.c + row * args.ldc + block_column + at.column) =
                make_float2(finished(half ? value.z : value.x, scale, operands.bias.x, residual.x),
                            finished(half ? value.w : value.y, scale, operands.bias.y, residual.y));
        }
    }

    __device__ __forceinline__ void multiply_and_finish() {
        griddep_wait();
        Operands operands[QUADS];
#pragma unroll
        for (int i = 0; i < QUADS; ++i) operands[i] = load_operands(i);

        float acc[COLUMNS / 2] = {};
        Moments moments;
        if constexpr (NORMALISE) {
            moments = multiply_with_moments(acc);
        } else {
            multiply(acc);
        }
        tma_gemm::consumers_sync();  // the tiles' last use in this block
        if (SPLITS > 1) cluster_arrive_relaxed();  // what was read has been read, and nothing was written

        float4 own[FIRST_GROUPS];
        add_warpgroups(acc, own);
        if constexpr (SPLITS == 1) {
            if constexpr (NORMALISE) {
                if (lane % 4 == 0) shared.moments[0][warpgroup][warp_row * 8 + lane / 4] = row_moments(moments);
                tma_gemm::consumers_sync();
                compute_scale();
            }
#pragma unroll
            for (int i = 0; i < QUADS; ++i) store(i, own[i], operands[i]);
        } else {
            cluster_wait_acquire();  // the tiles' last use in every block of the cluster
            send_parts(own);
            if constexpr (NORMALISE) send_moments(row_moments(moments));
            mbarrier_wait_parity(&shared.received, 0);
            if constexpr (NORMALISE) compute_scale();
#pragma unroll
            for (int i = 0; i < QUADS; ++i)
                if (quad(i).inside) store(i, received_sum(i), operands[i]);
        }
    }

    // Each warpgroup hands on the groups that it does not finish and adds what it is given to the others: `own`.
    __device__ __forceinline__ void add_warpgroups(const float (&acc)[COLUMNS / 2], float4 (&own)[FIRST_GROUPS]) const {
        const int thread = threadIdx.x % 128;
#pragma unroll
        for (int group = 0; group < GROUPS; ++group)
            if ((group < FIRST_GROUPS) == (warpgroup == 1))
                shared.parts.exchanged[group][thread] =
                    make_float4(acc[4 * group], acc[4 * group + 1], acc[4 * group + 2], acc[4 * group + 3]);
        tma_gemm::consumers_sync();
#pragma unroll
        for (int i = 0; i < FIRST_GROUPS; ++i) {
            // Both candidates stand at compile-time places of `acc`, so that it stays in registers.
            const int low = 4 * i, high = 4 * min(FIRST_GROUPS + i, GROUPS - 1);
            const float4 kept = warpgroup ? make_float4(acc[high], acc[high + 1], acc[high + 2], acc[high + 3])
                                          : make_float4(acc[low], acc[low + 1], acc[low + 2], acc[low + 3]);
            const float4 given = shared.parts.exchanged[warpgroup ? min(FIRST_GROUPS + i, GROUPS - 1) : i][thread];
            own[i] = make_float4(kept.x + given.x, kept.y + given.y, kept.z + given.z, kept.w + given.w);
        }
    }

    // The block that finishes this thread's rows, and this thread's place among those that send to it.
    __device__ __forceinline__ int receiver() const {
        return SPLITS == 8 ? warp_row * 2 + warpgroup : warp_row / (4 / (SPLITS < 8 ? SPLITS : 4));
    }
    __device__ __forceinline__ int sender() const { return SPLITS == 2 ? warp_row % 2 * 32 + lane : lane; }

    __device__ __forceinline__ void send_parts(const float4 (&own)[FIRST_GROUPS]) const {
        const int first_group = SPLITS != 8 && warpgroup ? FIRST_GROUPS : 0;
        const int groups = warpgroup ? GROUPS - FIRST_GROUPS : FIRST_GROUPS;
#pragma unroll
        for (int i = 0; i < FIRST_GROUPS; ++i)
            if (i < groups)
                st_async_float4(&shared.parts.received[rank][first_group + i][sender()], own[i], &shared.received,
                                receiver());
    }

    __device__ __forceinline__ float4 received_sum(int i) const {
        const int index = threadIdx.x + i * tma_gemm::CONSUMERS;
        float4 sum = shared.parts.received[0][index / SENDERS][index % SENDERS];
#pragma unroll
        for (int split = 1; split < SPLITS; ++split) {
            const float4 part = shared.parts.received[split][index / SENDERS][index % SENDERS];
            sum = make_float4(sum.x + part.x, sum.y + part.y, sum.z + part.z, sum.w + part.w);
        }
        return sum;
    }

    // ------------------------------------------------------------------------------------------------ rows' scale

    // Sums and sums of squares of rows r and r + 8 over this warpgroup's K, in all four lanes that share them.
    static __device__ __forceinline__ float4 row_moments(const Moments& moments) {
        return make_float4(quad_sum(moments.sum[0]), quad_sum(moments.squares[0]), quad_sum(moments.sum[1]),
                           quad_sum(moments.squares[1]));
    }

    __device__ __forceinline__ void send_moments(float4 moments) const {
        if (lane % 4 == 0)
            st_async_float4(&shared.moments[rank][warpgroup][sender() / 4], moments, &shared.received, receiver());
    }

    // 1 / standard deviation of the rows that this block finishes, from all parts of K.
    __device__ __forceinline__ void compute_scale() const {
        constexpr int FINISHED_ROWS = tma_gemm::ROWS / SPLITS;
        if (threadIdx.x < FINISHED_ROWS) {
            const int row = threadIdx.x, pair = row / 16 * 8 + row % 8;
            float sum = 0.0f, squares = 0.0f;
#pragma unroll
            for (int split = 0; split < SPLITS; ++split) {
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const float4 part = shared.moments[split][half][pair];
                    sum += row % 16 < 8 ? part.x : part.z;
                    squares += row % 16 < 8 ? part.y : part.w;
                }
            }
            const float mean = sum / args.inner;
            shared.scale[rank * FINISHED_ROWS + row] = rsqrtf(squares / args.inner - mean * mean + args.eps);
        }
        tma_gemm::consumers_sync();
    }
};

template <class Gemm>
__device__ __forceinline__ void run_tma_gemm(const TmaGemmArgs& args) {
    extern __shared__ __align__(SWIZZLE_ATOM_BYTES) unsigned char shared[];
    Gemm(args, *reinterpret_cast<typename Gemm::Shared*>(shared)).run();
}
