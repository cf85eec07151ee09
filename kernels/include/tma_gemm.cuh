// A product of activations and weights whose tiles the copy engine brings: what gemm/22_tma.cu and
// gemm/23_tma_layernorm.cu share.
//
// Roles in a block:
//   warp 8 asks for the weights, before the grid ahead has ended: nobody writes weights. It also prefetches those of a
//     later product into L2, whose bytes DRAM would otherwise bring while nothing else needs it.
//   warp 9 asks for the activations, once that grid has ended.
//   If copies are paced, warp 8 asks for EARLY pieces of weights before the grid ahead has ended, for the others after it,
//     and prefetches behind its last copy. Each of the two producers then initialises the barriers of its own ring and
//     begins; only the warps that multiply wait for both.
//   warps 0-3 and 4-7, two warpgroups, multiply: they take pieces of 256 bytes of K in turn, 64 floats or 128 bf16, so
//     that each has a sum of its own over half of K, with no barrier between them.
//
//        K of this block   | piece 0 | piece 1 | piece 2 | piece 3 | ...
//        warpgroup              0         1         0         1               8 wgmma a piece, one commit
//
//   Each operand has a ring of slots. A slot's `full` barrier says that the copy has come, its `empty` barrier that the
//   warps which multiply have read it. The number of slots is even, so that a slot always serves the same warpgroup: a
//   wait by parity may be at most one phase behind.
//
// Blocks of a cluster, SPLITS x ROW_BLOCKS x COLUMN_BLOCKS of them, the split fastest:
//   - SPLITS blocks divide K.
//   - ROW_BLOCKS blocks, one below the other, need the same weights, COLUMN_BLOCKS blocks side by side the same
//     activations. They take turns: one asks for a piece, and the copy engine delivers it to all of them. All blocks
//     together read that much less from L2, whose bandwidth is what they wait for.
//
//        COLUMN_BLOCKS = 2, ROW_BLOCKS = 2, one split:    a0 w0 | a0 w1        a: rows' activations, w: columns' weights
//                                                         a1 w0 | a1 w1
//
// Then sums are added, always in the same order:
//   - Warpgroup 0 finishes the first half of the tile's columns, warpgroup 1 the others: each adds the other's part,
//     which came through shared memory.
//   - With SPLITS = 2 the block of rank i finishes rows 32i.. of the tile: the warps that have the others' rows send
//     their parts to the other block, by st.async.
//   - With more splits all threads send: rank i finishes rows 16i.. (SPLITS = 4), or of rows 16 (i / 2).. the half of
//     the columns that warpgroup i % 2 has (SPLITS = 8), and all its threads add parts in the order of their senders.
//
// Elements are float, of which the products take TF32's bits, or bf16. Copies, rings and swizzles count bytes and are the
// same for both: 32 bytes of K are one wgmma.
//
// Shapes: any rows; inner a multiple of 128 bytes; columns and leading dimensions of 16. Row layout.
#pragma once
#include "activation.cuh"
#include "args.cuh"
#include "bf16.cuh"
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
constexpr int PIECE_WORDS = 2 * SWIZZLE_ROW_BYTES / 4;  // of a row: two chunks, each a swizzled row
constexpr int K_STEPS = PIECE_WORDS / 8;                // wgmma of a piece
constexpr int CONSUMERS = 256, THREADS = CONSUMERS + 64;
constexpr int W_PRODUCER = CONSUMERS / 32, A_PRODUCER = W_PRODUCER + 1;  // warps
constexpr int A_PIECE = ROWS * PIECE_WORDS;
constexpr int LINE_BYTES = 128;  // of the cache

// The producers of paced copies arrive, the warps that multiply wait for them.
__device__ __forceinline__ void ready_arrive() { asm volatile("bar.arrive 2, %0;" ::"n"(THREADS) : "memory"); }
__device__ __forceinline__ void ready_sync() { asm volatile("bar.sync 2, %0;" ::"n"(THREADS) : "memory"); }

// Bars only the warps that multiply.
__device__ __forceinline__ void consumers_sync() { asm volatile("bar.sync 1, %0;" ::"n"(CONSUMERS) : "memory"); }

// acc += a w for 32 bytes of K, `a` a descriptor or in registers.
template <class Element, int N, class A>
__device__ __forceinline__ void wgmma(float (&acc)[N / 2], const A& a, unsigned long long w) {
    if constexpr (sizeof(Element) == sizeof(Bf16)) {
        wgmma_bf16<N>(acc, a, w);
    } else {
        wgmma_tf32<N>(acc, a, w);
    }
}

// Sums and sums of squares of rows lane / 4 and lane / 4 + 8 of a warp, from the fragments that it multiplies.
template <class Element>
struct Moments {
    float sum[2] = {}, squares[2] = {};  // of this thread's share

    __device__ __forceinline__ void add(const unsigned (&a)[4]) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float value = __uint_as_float(a[i]);
            sum[i % 2] += value;
            squares[i % 2] += value * value;
        }
    }

    // Sum and sum of squares of the first row, then of the second.
    __device__ __forceinline__ float4 total(int lane) const {
        return make_float4(quad_sum(sum[0]), quad_sum(squares[0]), quad_sum(sum[1]), quad_sum(squares[1]));
    }
};

// Words of bf16 would have to be taken apart. Tensor cores, which have time beside products that wait for shared memory,
// add their elements up instead: rows times ones, and rows times rows, of whose products the diagonal is wanted.
template <>
struct Moments<Bf16> {
    float sums[4] = {}, first[4] = {}, second[4] = {};  // 16 rows times ones, times rows 0-7, times rows 8-15

    __device__ __forceinline__ void add(const unsigned (&a)[4]) {
        constexpr unsigned ONES[2] = {0x3f803f80u, 0x3f803f80u};
        const unsigned rows_0_7[2] = {a[0], a[2]}, rows_8_15[2] = {a[1], a[3]};
        mma_m16n8k16_bf16(sums, a, ONES);
        mma_m16n8k16_bf16(first, a, rows_0_7);
        mma_m16n8k16_bf16(second, a, rows_8_15);
    }

    __device__ __forceinline__ float4 total(int lane) const {
        // Column r of the diagonal's row r is with the quad's lane r / 2.
        const int row = fragment_c_row(lane), from = (lane & ~3) + row / 2;
        const float squares[2] = {row % 2 ? first[1] : first[0], row % 2 ? second[3] : second[2]};
        return make_float4(sums[0], __shfl_sync(0xffffffffu, squares[0], from), sums[2],
                           __shfl_sync(0xffffffffu, squares[1], from));
    }
};
}  // namespace tma_gemm

// EARLY: pieces of weights that are asked for before the grid ahead has ended; if more have a slot, copies are paced.
// NORMALISE: the rows of `a` are normalised on the way, as far as their scale goes: the weights have the mean folded in.
template <class Element, int COLUMNS, int SPLITS, int ROW_BLOCKS, int COLUMN_BLOCKS, int A_SLOTS, int W_SLOTS, int EARLY,
          bool NORMALISE>
struct TmaGemm {
    using Args = TmaGemmArgs<Element>;
    static constexpr int DEPTH = tma_gemm::PIECE_WORDS * 4 / sizeof(Element);  // of a piece
    static constexpr int CLUSTER = SPLITS * ROW_BLOCKS * COLUMN_BLOCKS;
    static constexpr bool MULTICAST = ROW_BLOCKS * COLUMN_BLOCKS > 1;
    static constexpr int W_PIECE = COLUMNS * tma_gemm::PIECE_WORDS;
    static constexpr int GROUPS = COLUMNS / 8;             // of eight columns
    static constexpr int FIRST_GROUPS = (GROUPS + 1) / 2;  // of them, those that warpgroup 0 finishes
    // With many splits: the most groups that a block finishes, and those that its threads take at once.
    static constexpr bool ALL_SEND = SPLITS > 2;
    static constexpr int RECEIVED_GROUPS = SPLITS == 8 ? FIRST_GROUPS : GROUPS;
    static constexpr int GROUPS_AT_ONCE = ALL_SEND ? tma_gemm::CONSUMERS / 32 : 1;
    // Quads of values (two rows, two columns) that a thread finishes at most.
    static constexpr int QUADS = ALL_SEND ? (RECEIVED_GROUPS + GROUPS_AT_ONCE - 1) / GROUPS_AT_ONCE : FIRST_GROUPS;
    // As far as a thread's last quad may lie beyond the tile.
    static constexpr int BIAS_COLUMNS = COLUMNS + 8 * (ALL_SEND ? GROUPS_AT_ONCE * QUADS : 1);
    static_assert(BIAS_COLUMNS <= tma_gemm::CONSUMERS, "a thread loads one bias");
    static_assert(COLUMNS % 8 == 0 && A_SLOTS % 2 == 0 && W_SLOTS % 2 == 0, "a slot serves one warpgroup");
    // A piece is released when the next one of its warpgroup has been asked for.
    static_assert(A_SLOTS >= 4 && W_SLOTS >= 4, "fewer slots would wait for themselves");
    static constexpr bool PACED = EARLY < W_SLOTS;
    static_assert(EARLY <= W_SLOTS && !(PACED && MULTICAST), "only what has a slot is early, and only in one block");
    static_assert(SPLITS == 1 || SPLITS == 2 || SPLITS == 4 || SPLITS == 8, "rows are divided by warps");
    static_assert(!NORMALISE || !ALL_SEND, "a row's sums go to the threads that finish it");

    struct Tiles {
        float a[A_SLOTS][tma_gemm::A_PIECE];
        float w[W_SLOTS][W_PIECE];
    };
    // Lies over the tiles after their last use.
    struct Parts {
        float4 exchanged[GROUPS][128];  // between the warpgroups
        // From the blocks of the cluster: from each of the 64 threads that have these rows, or of each split.
        float4 received[ALL_SEND ? SPLITS : 1][RECEIVED_GROUPS][ALL_SEND ? 32 : 64];
    };
    static_assert(sizeof(Parts) <= sizeof(Tiles), "parts lie over the tiles");

    struct Shared {
        union {
            Tiles tiles;
            Parts parts;
        };
        // By split, warpgroup and pair of rows r and r + 8: sums and sums of squares.
        float4 moments[2][2][32];
        float bias[BIAS_COLUMNS];  // zeros if absent
        Mbarrier a_full[A_SLOTS], a_empty[A_SLOTS], w_full[W_SLOTS], w_empty[W_SLOTS], received;
    };

    const Args& args;
    Shared& shared;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int warpgroup = warp / 4, warp_row = warp % 4;
    const int rank = blockIdx.x % SPLITS;
    const int row_rank = blockIdx.x / SPLITS % ROW_BLOCKS;
    const int column_rank = blockIdx.x / (SPLITS * ROW_BLOCKS) % COLUMN_BLOCKS;
    const int row_clusters = (args.rows + tma_gemm::ROWS * ROW_BLOCKS - 1) / (tma_gemm::ROWS * ROW_BLOCKS);
    const int block_row = (blockIdx.x / CLUSTER % row_clusters * ROW_BLOCKS + row_rank) * tma_gemm::ROWS;
    const int block_column = (blockIdx.x / CLUSTER / row_clusters * COLUMN_BLOCKS + column_rank) * COLUMNS;
    const int all_pieces = (args.inner + DEPTH - 1) / DEPTH;
    const int begin = all_pieces * rank / SPLITS;  // in pieces
    const int pieces = all_pieces * (rank + 1) / SPLITS - begin;

    __device__ __forceinline__ TmaGemm(const Args& args, Shared& shared) : args(args), shared(shared) {}

    __device__ __forceinline__ void run() {
        griddep_launch_dependents();
        if constexpr (PACED) {
            run_paced();
            return;
        }
        init_barriers();
        __syncwarp();
        if (MULTICAST) {
            cluster_arrive_relaxed();
            cluster_wait_acquire();
        }
        if (warp == tma_gemm::W_PRODUCER) send_first_weights();
        if (!MULTICAST) __syncthreads();
        if (warp == tma_gemm::W_PRODUCER) {
            prefetch_ahead();
            send_more_weights();
            griddep_wait();
        } else if (warp == tma_gemm::A_PRODUCER) {
            send_activations();
        } else {
            multiply_and_finish();
        }
    }

private:
    // Producers arrive at the cluster's meeting as soon as they have asked for their last piece, since it is the warps
    // that multiply which have read the tiles; they wait for all at their end.
    __device__ __forceinline__ void run_paced() {
        if (warp == tma_gemm::W_PRODUCER) {
            init_barriers();
            __syncwarp();
            tma_gemm::ready_arrive();
            send_paced_weights();
            if (SPLITS > 1) cluster_arrive_relaxed();
            wait_for_weights(pieces - 1);
            prefetch_ahead();
            __syncwarp();
            if (SPLITS > 1) cluster_wait_acquire();
        } else if (warp == tma_gemm::A_PRODUCER) {
            init_barriers();
            __syncwarp();
            tma_gemm::ready_arrive();
            send_activations();
            __syncwarp();
            if (SPLITS > 1) cluster_arrive_relaxed(), cluster_wait_acquire();
        } else {
            tma_gemm::ready_sync();
            multiply_and_finish();
        }
    }

    // Rank in the cluster of the block at these places.
    static __device__ __forceinline__ int cluster_rank(int split, int row_rank, int column_rank) {
        return split + SPLITS * (row_rank + ROW_BLOCKS * column_rank);
    }

    // Each producer's first lane initialises the barriers of its ring; one after the other, at places known to the
    // compiler, since the instruction takes uniform registers.
    template <int SLOTS>
    static __device__ __forceinline__ void init_ring(Mbarrier (&full)[SLOTS], Mbarrier (&empty)[SLOTS], int blocks) {
#pragma unroll
        for (int i = 0; i < SLOTS; ++i) mbarrier_init(&full[i], 1), mbarrier_init(&empty[i], 4 * blocks);
    }

    __device__ __forceinline__ void init_barriers() const {
        if (lane > 0) return;
        if (warp == tma_gemm::W_PRODUCER) {
            init_ring(shared.w_full, shared.w_empty, ROW_BLOCKS);
            fence_mbarrier_init();
        } else if (warp == tma_gemm::A_PRODUCER) {
            init_ring(shared.a_full, shared.a_empty, COLUMN_BLOCKS);
            mbarrier_init(&shared.received, 1);
            fence_mbarrier_init();
            if (SPLITS > 1) mbarrier_arrive_expect_tx(&shared.received, received_bytes());
        }
    }

    // ------------------------------------------------------------------------------------------------ copies

    __device__ __forceinline__ void send_first_weights() const {
        if (lane == 0) {
            prefetch_tensormap(args.w);
#pragma unroll 1
            for (int piece = 0; piece < min(pieces, W_SLOTS); ++piece) send_weights_piece(piece);
        }
        __syncwarp();
    }

    __device__ __forceinline__ void send_paced_weights() const {
        const int early = min(pieces, EARLY);
        if (lane == 0) {
            prefetch_tensormap(args.w);
#pragma unroll 1
            for (int piece = 0; piece < early; ++piece) send_weights_piece(piece);
        }
        __syncwarp();
        griddep_wait();
        if (lane == 0) {
#pragma unroll 1
            for (int piece = early; piece < pieces; ++piece) {
                if (piece >= W_SLOTS)
                    mbarrier_wait_parity(&shared.w_empty[piece % W_SLOTS], (piece / W_SLOTS - 1) & 1);
                send_weights_piece(piece);
            }
        }
        __syncwarp();
    }

    __device__ __forceinline__ void prefetch_ahead() const {
#pragma unroll 4
        for (int line = blockIdx.x * 32 + lane; line < args.ahead_lines; line += gridDim.x * 32)
            prefetch_global_l2(reinterpret_cast<const char*>(args.ahead) +
                               static_cast<long long>(line) * tma_gemm::LINE_BYTES);
    }

    __device__ __forceinline__ void send_more_weights() const {
        if (lane == 0) {
#pragma unroll 1
            for (int piece = W_SLOTS; piece < pieces; ++piece) {
                mbarrier_wait_parity(&shared.w_empty[piece % W_SLOTS], (piece / W_SLOTS - 1) & 1);
                send_weights_piece(piece);
            }
        }
        __syncwarp();
    }

    // Announces a piece, and asks for it if it is this block's turn.
    __device__ __forceinline__ void send_weights_piece(int piece) const {
        const int slot = piece % W_SLOTS, chunk = 2 * (begin + piece);
        mbarrier_arrive_expect_tx(&shared.w_full[slot], W_PIECE * sizeof(float));
        if constexpr (ROW_BLOCKS == 1) {
            cp_async_bulk_tensor_3d(shared.tiles.w[slot], args.w, block_column, chunk, &shared.w_full[slot]);
        } else if (piece % ROW_BLOCKS == row_rank) {
            unsigned ranks = 0;
            for (int i = 0; i < ROW_BLOCKS; ++i) ranks |= 1u << cluster_rank(rank, i, column_rank);
            cp_async_bulk_tensor_3d_multicast(shared.tiles.w[slot], args.w, block_column, chunk, &shared.w_full[slot],
                                              ranks);
        }
    }

    __device__ __forceinline__ void send_activations() const {
        if (lane == 0) prefetch_tensormap(args.a);
        griddep_wait();
        if (lane == 0) {
            if (PACED) fence_proxy_async_global();  // kernels stored with ordinary stores what is now copied
#pragma unroll 1
            for (int piece = 0; piece < pieces; ++piece) {
                if (piece >= A_SLOTS)
                    mbarrier_wait_parity(&shared.a_empty[piece % A_SLOTS], (piece / A_SLOTS - 1) & 1);
                send_activations_piece(piece);
            }
        }
    }

    __device__ __forceinline__ void send_activations_piece(int piece) const {
        const int slot = piece % A_SLOTS, chunk = 2 * (begin + piece);
        mbarrier_arrive_expect_tx(&shared.a_full[slot], tma_gemm::A_PIECE * sizeof(float));
        if constexpr (COLUMN_BLOCKS == 1) {
            cp_async_bulk_tensor_3d(shared.tiles.a[slot], args.a, block_row, chunk, &shared.a_full[slot]);
        } else if (piece % COLUMN_BLOCKS == column_rank) {
            unsigned ranks = 0;
            for (int i = 0; i < COLUMN_BLOCKS; ++i) ranks |= 1u << cluster_rank(rank, row_rank, i);
            cp_async_bulk_tensor_3d_multicast(shared.tiles.a[slot], args.a, block_row, chunk, &shared.a_full[slot],
                                              ranks);
        }
    }

    __device__ __forceinline__ void wait_for_activations(int piece) const {
        mbarrier_wait_parity(&shared.a_full[piece % A_SLOTS], piece / A_SLOTS & 1);
    }

    __device__ __forceinline__ void wait_for_weights(int piece) const {
        mbarrier_wait_parity(&shared.w_full[piece % W_SLOTS], piece / W_SLOTS & 1);
    }

    // Tells every block that may ask for the slot's next piece. If there is none, nobody waits, and nobody is told: a
    // block that has all its pieces may have left.
    __device__ __forceinline__ void release_activations(int piece) const {
        if (piece + A_SLOTS >= pieces) return;
        Mbarrier* const empty = &shared.a_empty[piece % A_SLOTS];
        if constexpr (COLUMN_BLOCKS == 1) {
            if (lane == 0) mbarrier_arrive(empty);
        } else {
            if (lane < COLUMN_BLOCKS) mbarrier_arrive_cluster(empty, cluster_rank(rank, row_rank, lane));
        }
    }

    __device__ __forceinline__ void release_weights(int piece) const {
        if (piece + W_SLOTS >= pieces) return;
        Mbarrier* const empty = &shared.w_empty[piece % W_SLOTS];
        if constexpr (ROW_BLOCKS == 1) {
            if (lane == 0) mbarrier_arrive(empty);
        } else {
            if (lane < ROW_BLOCKS) mbarrier_arrive_cluster(empty, cluster_rank(rank, lane, column_rank));
        }
    }

    // ------------------------------------------------------------------------------------------------ products

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
                tma_gemm::wgmma<Element, COLUMNS>(acc, a + step_offset(step, tma_gemm::ROWS), w + step_offset(step, COLUMNS));
            wgmma_commit_group();
            wgmma_wait_group<1>();
            if (piece >= 2) release_activations(piece - 2), release_weights(piece - 2);
        }
        wgmma_wait_group<0>();
        wgmma_fence_operand(acc);
    }

    using Fragments = unsigned[tma_gemm::K_STEPS][4];

    // Sums and sums of squares of rows lane / 4 and lane / 4 + 8 of this warp.
    using Moments = tma_gemm::Moments<Element>;

    __device__ __forceinline__ void load_fragments(Fragments& a, int piece) const {
        wait_for_activations(piece);
        const int row = warp_row * 16 + fragment_a_row(lane), column = fragment_a_k(lane) / 4;
        const char* const tile = reinterpret_cast<const char*>(shared.tiles.a[piece % A_SLOTS]);
#pragma unroll
        for (int step = 0; step < tma_gemm::K_STEPS; ++step) {
            const int chunk = step / 4, chunk_bytes = tma_gemm::ROWS * SWIZZLE_ROW_BYTES;
            const char* const from = tile + chunk * chunk_bytes + swizzle_128b(row, step % 4 * 2 + column);
            ldmatrix_x4(a[step], reinterpret_cast<const float*>(from));
        }
    }

    // The moments are added up while the product runs: neither waits for the other.
    __device__ __forceinline__ void multiply_fragments(float (&acc)[COLUMNS / 2], const Fragments& a, Moments& moments,
                                                       int piece) const {
        wait_for_weights(piece);
        const unsigned long long w = w_descriptor(piece);
        wgmma_fence();
#pragma unroll
        for (int step = 0; step < tma_gemm::K_STEPS; ++step)
            tma_gemm::wgmma<Element, COLUMNS>(acc, a[step], w + step_offset(step, COLUMNS));
        wgmma_commit_group();
        release_activations(piece);  // the product has taken the fragments, so that they have been read
#pragma unroll
        for (int step = 0; step < tma_gemm::K_STEPS; ++step) moments.add(a[step]);
        wgmma_wait_group<1>();
        if (piece >= 2) release_weights(piece - 2);
    }

    // Activations through registers, where their rows' moments are computed beside the products. There are two sets of
    // fragments, since a product still reads its own when the next ones are loaded.
    __device__ __forceinline__ Moments multiply_with_moments(float (&acc)[COLUMNS / 2]) const {
        Moments moments;
        Fragments first, second;
        int piece = warpgroup;
        if (piece < pieces) load_fragments(first, piece);
#pragma unroll 1
        while (piece < pieces) {
            multiply_fragments(acc, first, moments, piece);
            piece += 2;
            if (piece >= pieces) break;
            load_fragments(second, piece);
            multiply_fragments(acc, second, moments, piece);
            piece += 2;
            if (piece < pieces) load_fragments(first, piece);
        }
        wgmma_wait_group<0>();
        wgmma_fence_operand(acc);
        return moments;
    }

    // Both operands from shared memory, where their rows' moments are read beside the products. A piece's fragments have
    // been read when those of the next one come into the same registers, before it is released.
    __device__ __forceinline__ Moments multiply_beside_moments(float (&acc)[COLUMNS / 2]) const {
        Moments moments;
#pragma unroll 1
        for (int piece = warpgroup; piece < pieces; piece += 2) {
            wait_for_weights(piece);
            wait_for_activations(piece);
            const unsigned long long a = wgmma_descriptor(shared.tiles.a[piece % A_SLOTS]), w = w_descriptor(piece);
            wgmma_fence();
#pragma unroll
            for (int step = 0; step < tma_gemm::K_STEPS; ++step)
                tma_gemm::wgmma<Element, COLUMNS>(acc, a + step_offset(step, tma_gemm::ROWS),
                                                  w + step_offset(step, COLUMNS));
            wgmma_commit_group();
            Fragments rows;
            load_fragments(rows, piece);
#pragma unroll
            for (int step = 0; step < tma_gemm::K_STEPS; ++step) moments.add(rows[step]);
            wgmma_wait_group<1>();
            if (piece >= 2) release_activations(piece - 2), release_weights(piece - 2);
        }
        wgmma_wait_group<0>();
        wgmma_fence_operand(acc);
        return moments;
    }

    // ------------------------------------------------------------------------------------------------ what follows

    // Groups of columns that this block finishes, of those whose parts all its threads add.
    __device__ __forceinline__ int received_groups() const {
        return SPLITS == 8 && rank % 2 ? GROUPS - FIRST_GROUPS : RECEIVED_GROUPS;
    }

    __device__ __forceinline__ unsigned received_bytes() const {
        if (ALL_SEND) return SPLITS * received_groups() * 32 * sizeof(float4);
        return GROUPS * 64 * sizeof(float4) + (NORMALISE ? 2 * 16 * sizeof(float4) : 0);
    }

    // A thread finishes quads: (row, column), (row, column + 1) and both 8 rows below. Its i-th one is i times
    // QUAD_STRIDE columns to the right of its first.
    static constexpr int QUAD_STRIDE = 8 * GROUPS_AT_ONCE;
    __device__ __forceinline__ int quad_row() const {
        const int warp_of_tile = SPLITS == 8 ? rank / 2 : SPLITS == 4 ? rank : warp_row;
        return block_row + warp_of_tile * 16 + lane / 4;
    }
    __device__ __forceinline__ int first_group() const {
        if (!ALL_SEND) return warpgroup ? FIRST_GROUPS : 0;
        return (SPLITS == 8 && rank % 2 ? FIRST_GROUPS : 0) + warp;
    }
    __device__ __forceinline__ int quad_column() const { return first_group() * 8 + lane % 4 * 2; }  // in the tile
    // Quads that there are for this thread: in its block's share of the tile, and in the matrix.
    __device__ __forceinline__ int quads() const {
        const int end = ALL_SEND ? (SPLITS == 8 && rank % 2 == 0 ? FIRST_GROUPS : GROUPS) * 8
                                 : (warpgroup ? GROUPS : FIRST_GROUPS) * 8;
        const int left = min(end, args.columns - block_column) - quad_column();
        return left > 0 ? (left + QUAD_STRIDE - 1) / QUAD_STRIDE : 0;
    }

    __device__ __forceinline__ void load_bias() const {
        const int column = block_column + threadIdx.x;
        if (threadIdx.x < BIAS_COLUMNS)
            shared.bias[threadIdx.x] =
                args.bias && threadIdx.x < COLUMNS && column < args.columns ? args.bias[column] : 0.0f;
    }

    // What is added to each quad's rows; zeros if absent. A product with a layernorm before it has none.
    struct Residual {
        float2 of[NORMALISE ? 1 : QUADS][2];
    };

    __device__ __forceinline__ Residual load_residual() const {
        Residual residual = {};
        if (NORMALISE || !args.residual) return residual;
        const int count = quads();
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = quad_row() + half * 8;
            const Element* const from =
                args.residual + static_cast<long long>(row) * args.ldr + block_column + quad_column();
#pragma unroll
            for (int i = 0; i < QUADS; ++i)
                if (i < count && row < args.rows)
                    residual.of[i][half] = load_pair(from + i * QUAD_STRIDE);
        }
        return residual;
    }

    __device__ __forceinline__ float finished(float value, float scale, float bias, float residual) const {
        value = (NORMALISE ? value * scale : value) + bias;
        return (args.activate ? activation(value) : value) + residual;
    }

    struct Bias {
        float2 of[QUADS];
    };

    // Zeros beyond the tile's columns.
    __device__ __forceinline__ Bias quads_bias() const {
        Bias bias;
#pragma unroll
        for (int i = 0; i < QUADS; ++i)
            bias.of[i] = *reinterpret_cast<const float2*>(&shared.bias[quad_column() + i * QUAD_STRIDE]);
        return bias;
    }

    __device__ __forceinline__ void store(const float4 (&values)[QUADS], const Bias& bias, const Residual& residual,
                                          const float (&scale)[2]) const {
        const int count = quads();
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = quad_row() + half * 8;
            const int row_quads = row < args.rows ? count : 0;
            Element* const c = args.c + static_cast<long long>(row) * args.ldc + block_column + quad_column();
            float2 out[QUADS];
#pragma unroll
            for (int i = 0; i < QUADS; ++i) {
                const float2 kept = NORMALISE ? make_float2(0.0f, 0.0f) : residual.of[NORMALISE ? 0 : i][half];
                const float2 value =
                    half ? make_float2(values[i].z, values[i].w) : make_float2(values[i].x, values[i].y);
                out[i] = make_float2(finished(value.x, scale[half], bias.of[i].x, kept.x),
                                     finished(value.y, scale[half], bias.of[i].y, kept.y));
            }
#pragma unroll
            for (int i = 0; i < QUADS; ++i)
                if (i < row_quads) store_pair(c + i * QUAD_STRIDE, out[i]);
        }
    }

    __device__ __forceinline__ void multiply_and_finish() {
        load_bias();
        griddep_wait();
        // With two splits, whether this thread's rows are finished by this block.
        const bool finishes = SPLITS != 2 || warp_row / 2 == rank;
        Residual residual = {};
        if (finishes) residual = load_residual();

        float acc[COLUMNS / 2] = {};
        float4 moments = {};
        if constexpr (NORMALISE) {
            if constexpr (sizeof(Element) == sizeof(Bf16)) {
                moments = multiply_beside_moments(acc).total(lane);
            } else {
                moments = multiply_with_moments(acc).total(lane);
            }
        } else {
            multiply(acc);
        }
        tma_gemm::consumers_sync();  // the tiles' last use in this block
        if (SPLITS > 1) cluster_arrive_relaxed();  // what was read has been read, and nothing was written
        if (NORMALISE && finishes && lane % 4 == 0) shared.moments[rank][warpgroup][moments_pair()] = moments;

        float4 values[FIRST_GROUPS];
        add_warpgroups(acc, values);
        const Bias bias = quads_bias();
        float scale[2] = {1.0f, 1.0f};
        if constexpr (SPLITS == 1) {
            if constexpr (NORMALISE) find_scale(scale);
            store(values, bias, residual, scale);
            return;
        }
        cluster_wait_acquire();  // the tiles' last use in every block of the cluster
        if constexpr (SPLITS == 2) {
            if (!finishes) {
                send_to_other(values, moments);
                return;
            }
            mbarrier_wait_parity(&shared.received, 0);
            if constexpr (NORMALISE) find_scale(scale);
            add_received(values);
            store(values, bias, residual, scale);
        } else {
            send_to_all(values);
            mbarrier_wait_parity(&shared.received, 0);
            float4 sums[QUADS];
#pragma unroll
            for (int i = 0; i < QUADS; ++i) sums[i] = received_sum(i);
            store(sums, bias, residual, scale);
        }
    }

    // Each warpgroup hands on the groups that it does not finish and adds what it is given to the others.
    __device__ __forceinline__ void add_warpgroups(const float (&acc)[COLUMNS / 2],
                                                   float4 (&values)[FIRST_GROUPS]) const {
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
            const int high_group = FIRST_GROUPS + i < GROUPS ? FIRST_GROUPS + i : GROUPS - 1;
            const int low = 4 * i, high = 4 * high_group;
            const float4 kept = warpgroup ? make_float4(acc[high], acc[high + 1], acc[high + 2], acc[high + 3])
                                          : make_float4(acc[low], acc[low + 1], acc[low + 2], acc[low + 3]);
            const float4 given = shared.parts.exchanged[warpgroup ? high_group : i][thread];
            values[i] = make_float4(kept.x + given.x, kept.y + given.y, kept.z + given.z, kept.w + given.w);
        }
    }

    // ------------------------------------------------------------------------------------------------ two splits

    // This warp's place among the two that have the rows of one block, in threads.
    __device__ __forceinline__ int pair_lane() const { return warp_row % 2 * 32 + lane; }

    __device__ __forceinline__ void send_to_other(const float4 (&values)[FIRST_GROUPS], float4 moments) const {
        const int other = cluster_rank(rank ^ 1, row_rank, column_rank);
#pragma unroll
        for (int i = 0; i < FIRST_GROUPS; ++i)
            if (i < (warpgroup ? GROUPS - FIRST_GROUPS : FIRST_GROUPS))
                st_async_float4(&shared.parts.received[0][first_group() + i][pair_lane()], values[i], &shared.received,
                                other);
        if (NORMALISE && lane % 4 == 0)
            st_async_float4(&shared.moments[rank][warpgroup][moments_pair()], moments, &shared.received, other);
    }

    __device__ __forceinline__ void add_received(float4 (&values)[FIRST_GROUPS]) const {
#pragma unroll
        for (int i = 0; i < FIRST_GROUPS; ++i) {
            const float4 part = shared.parts.received[0][min(first_group() + i, GROUPS - 1)][pair_lane()];
            // The order of two summands does not change the bits.
            values[i] = make_float4(values[i].x + part.x, values[i].y + part.y, values[i].z + part.z,
                                    values[i].w + part.w);
        }
    }

    // ------------------------------------------------------------------------------------------------ more splits

    __device__ __forceinline__ void send_to_all(const float4 (&values)[FIRST_GROUPS]) const {
        const int split = SPLITS == 8 ? warp_row * 2 + warpgroup : warp_row;
        const int first_group = SPLITS != 8 && warpgroup ? FIRST_GROUPS : 0;
#pragma unroll
        for (int i = 0; i < FIRST_GROUPS; ++i)
            if (i < (warpgroup ? GROUPS - FIRST_GROUPS : FIRST_GROUPS))
                st_async_float4(&shared.parts.received[ALL_SEND ? rank : 0][first_group + i][lane], values[i],
                                &shared.received, cluster_rank(split, row_rank, column_rank));
    }

    __device__ __forceinline__ float4 received_sum(int i) const {
        const int group = min(warp + i * GROUPS_AT_ONCE, RECEIVED_GROUPS - 1);
        float4 sum = shared.parts.received[0][group][lane];
#pragma unroll
        for (int split = 1; split < (ALL_SEND ? SPLITS : 1); ++split) {
            const float4 part = shared.parts.received[split][group][lane];
            sum = make_float4(sum.x + part.x, sum.y + part.y, sum.z + part.z, sum.w + part.w);
        }
        return sum;
    }

    // ------------------------------------------------------------------------------------------------ rows' scale

    // Place of this quad's two rows among the pairs of rows that one block finishes.
    __device__ __forceinline__ int moments_pair() const {
        return (SPLITS == 2 ? warp_row % 2 : warp_row) * 8 + lane / 4;
    }

    // 1 / standard deviation of this thread's two rows, from all parts of K in a fixed order.
    __device__ __forceinline__ void find_scale(float (&scale)[2]) const {
        float4 total = {};
#pragma unroll
        for (int split = 0; split < (SPLITS == 2 ? 2 : 1); ++split) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const float4 part = shared.moments[split][half][moments_pair()];
                total = make_float4(total.x + part.x, total.y + part.y, total.z + part.z, total.w + part.w);
            }
        }
        const float share = 1.0f / args.inner;
        scale[0] = rsqrtf(total.y * share - total.x * share * (total.x * share) + args.eps);
        scale[1] = rsqrtf(total.w * share - total.z * share * (total.z * share) + args.eps);
    }
};

template <class Gemm>
__device__ __forceinline__ void run_tma_gemm(const typename Gemm::Args& args) {
    extern __shared__ __align__(SWIZZLE_ATOM_BYTES) unsigned char shared[];
    Gemm(args, *reinterpret_cast<typename Gemm::Shared*>(shared)).run();
}
