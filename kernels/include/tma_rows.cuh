// A product of activations and weights in tiles of 128 rows whose K a cluster divides: what gemm/35_tma_rows.cu is made
// of. Roles, rings and the order of copies are those of paced tiles in tma_gemm.cuh, but for two things:
//   - The warpgroups divide rows, not K: each has 64 of them, takes all pieces, and has no sum to exchange with the other.
//     Weights come once for 128 rows.
//   - Parts of other blocks have memory of their own beside the tiles, so that no block asks whether another one still
//     reads its tiles.
//
//        rows of a tile      0-63          64-127              pieces of 32 indices of K, 4 wgmma each
//        warpgroup            0              1
//
// Blocks of a cluster divide K. Each sends its sums to the block that finishes their rows, by st.async: with 8 splits
// rank i finishes rows 16i.., with 4 rows 32i.., a warpgroup 16 of them. Parts are added in the order of their senders.
//
// Shapes: any rows; inner a multiple of 32; columns and leading dimensions of 4. Row layout.
#pragma once
#include "activation.cuh"
#include "args.cuh"
#include "cluster.cuh"
#include "cp_async.cuh"
#include "dependent_launch.cuh"
#include "mbarrier.cuh"
#include "tensor_map.cuh"
#include "wgmma.cuh"

namespace tma_rows {
constexpr int GROUP_ROWS = 64, ROWS = 2 * GROUP_ROWS;  // of a warpgroup, of a tile
constexpr int DEPTH = SWIZZLE_ROW_BYTES / 4;           // of a piece: one swizzled row
constexpr int CONSUMERS = 256, THREADS = CONSUMERS + 64;
constexpr int WARPS = CONSUMERS / 32, W_PRODUCER = WARPS, A_PRODUCER = W_PRODUCER + 1;
constexpr int A_PIECE = ROWS * DEPTH;
constexpr int LINE = 32;  // floats of a cache line
constexpr int BEHIND_TILES_BYTES = 4096;  // room for biases and barriers
}  // namespace tma_rows

// EARLY: pieces of weights that are asked for before the grid ahead has ended.
template <int COLUMNS, int SPLITS, int A_SLOTS, int W_SLOTS, int EARLY>
struct TmaRows {
    static constexpr int W_PIECE = COLUMNS * tma_rows::DEPTH;
    static constexpr int GROUPS = COLUMNS / 8;                     // of eight columns
    static constexpr int ROW_WARPS = tma_rows::WARPS / SPLITS;     // 16 rows each, that a block finishes
    static constexpr int GROUPS_AT_ONCE = tma_rows::WARPS / ROW_WARPS;
    static constexpr int QUADS = (GROUPS + GROUPS_AT_ONCE - 1) / GROUPS_AT_ONCE;  // that a thread finishes at most
    static constexpr int BIAS_COLUMNS = COLUMNS + 8 * GROUPS_AT_ONCE * QUADS;     // as far as its last one may lie
    static_assert(COLUMNS % 8 == 0 && BIAS_COLUMNS <= tma_rows::CONSUMERS, "a thread loads one bias");
    static_assert(SPLITS == 4 || SPLITS == 8, "rows are divided by warps");
    static_assert(A_SLOTS >= 2 && W_SLOTS >= 2 && EARLY <= W_SLOTS, "fewer slots would wait for themselves");

    using Received = float4[SPLITS][ROW_WARPS * GROUPS][32];
    struct Shared {
        float a[A_SLOTS][tma_rows::A_PIECE];
        float w[W_SLOTS][W_PIECE];
        Received parts;
        float bias[BIAS_COLUMNS];  // zeros if absent
        Mbarrier a_full[A_SLOTS], a_empty[A_SLOTS], w_full[W_SLOTS], w_empty[W_SLOTS], received;
    };
    static_assert(sizeof(Shared) <= (A_SLOTS * tma_rows::A_PIECE + W_SLOTS * W_PIECE) * sizeof(float) +
                                        sizeof(Received) + tma_rows::BEHIND_TILES_BYTES,
                  "the host asks for so much");

    const TmaGemmArgs<float>& args;
    Shared& shared;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warpgroup = warp / 4;
    const int rank = blockIdx.x % SPLITS;
    const int row_tiles = (args.rows + tma_rows::ROWS - 1) / tma_rows::ROWS;
    const int block_row = blockIdx.x / SPLITS % row_tiles * tma_rows::ROWS;
    const int block_column = blockIdx.x / SPLITS / row_tiles * COLUMNS;
    const int all_pieces = (args.inner + tma_rows::DEPTH - 1) / tma_rows::DEPTH;
    const int begin = all_pieces * rank / SPLITS;  // in pieces
    const int pieces = all_pieces * (rank + 1) / SPLITS - begin;

    __device__ __forceinline__ TmaRows(const TmaGemmArgs<float>& args, Shared& shared) : args(args), shared(shared) {}

    __device__ __forceinline__ void run() {
        griddep_launch_dependents();
        if (warp == tma_rows::W_PRODUCER) {
            if (lane == 0) init_ring(shared.w_full, shared.w_empty), fence_mbarrier_init();
            __syncwarp();
            arrive_ready();
            send_weights();
            mbarrier_wait_parity(&shared.w_full[(pieces - 1) % W_SLOTS], (pieces - 1) / W_SLOTS & 1);
            prefetch_ahead();
        } else if (warp == tma_rows::A_PRODUCER) {
            if (lane == 0) {
                init_ring(shared.a_full, shared.a_empty);
                mbarrier_init(&shared.received, 1);
                fence_mbarrier_init();
                mbarrier_arrive_expect_tx(&shared.received, sizeof(Received));
            }
            __syncwarp();
            arrive_ready();
            if (lane == 0) prefetch_tensormap(args.a);
            griddep_wait();
            send_activations();
        } else {
            load_bias();
            cluster_arrive_relaxed();
            asm volatile("bar.sync 1, %0;" ::"n"(tma_rows::THREADS) : "memory");
            multiply_and_finish();
        }
    }

private:
    template <int SLOTS>
    static __device__ __forceinline__ void init_ring(Mbarrier (&full)[SLOTS], Mbarrier (&empty)[SLOTS]) {
#pragma unroll
        for (int i = 0; i < SLOTS; ++i) mbarrier_init(&full[i], 1), mbarrier_init(&empty[i], tma_rows::WARPS);
    }

    // Barriers are initialised: the warps that multiply wait for both producers, who sends a part for the cluster.
    __device__ __forceinline__ void arrive_ready() const {
        cluster_arrive_relaxed();
        asm volatile("bar.arrive 1, %0;" ::"n"(tma_rows::THREADS) : "memory");
    }

    // ------------------------------------------------------------------------------------------------ copies

    __device__ __forceinline__ void send_weights() const {
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

    __device__ __forceinline__ void send_weights_piece(int piece) const {
        const int slot = piece % W_SLOTS;
        mbarrier_arrive_expect_tx(&shared.w_full[slot], W_PIECE * sizeof(float));
        cp_async_bulk_tensor_3d(shared.w[slot], args.w, block_column, begin + piece, &shared.w_full[slot]);
    }

    __device__ __forceinline__ void send_activations() const {
        if (lane == 0) {
            fence_proxy_async_global();  // kernels stored with ordinary stores what is now copied
#pragma unroll 1
            for (int piece = 0; piece < pieces; ++piece) {
                const int slot = piece % A_SLOTS;
                if (piece >= A_SLOTS) mbarrier_wait_parity(&shared.a_empty[slot], (piece / A_SLOTS - 1) & 1);
                mbarrier_arrive_expect_tx(&shared.a_full[slot], tma_rows::A_PIECE * sizeof(float));
                cp_async_bulk_tensor_3d(shared.a[slot], args.a, block_row, begin + piece, &shared.a_full[slot]);
            }
        }
        __syncwarp();
    }

    __device__ __forceinline__ void prefetch_ahead() const {
#pragma unroll 4
        for (int line = blockIdx.x * 32 + lane; line < args.ahead_lines; line += gridDim.x * 32)
            prefetch_global_l2(args.ahead + static_cast<long long>(line) * tma_rows::LINE);
    }

    // ------------------------------------------------------------------------------------------------ products

    __device__ __forceinline__ void multiply(float (&acc)[COLUMNS / 2]) const {
#pragma unroll 1
        for (int piece = 0; piece < pieces; ++piece) {
            mbarrier_wait_parity(&shared.w_full[piece % W_SLOTS], piece / W_SLOTS & 1);
            mbarrier_wait_parity(&shared.a_full[piece % A_SLOTS], piece / A_SLOTS & 1);
            const unsigned long long w = wgmma_descriptor(shared.w[piece % W_SLOTS]),
                                     a = wgmma_descriptor(shared.a[piece % A_SLOTS] +
                                                          warpgroup * tma_rows::GROUP_ROWS * tma_rows::DEPTH);
            wgmma_fence();
#pragma unroll
            for (int step = 0; step < tma_rows::DEPTH / 8; ++step) wgmma_tf32<COLUMNS>(acc, a + step * 2, w + step * 2);
            wgmma_commit_group();
            wgmma_wait_group<1>();
            if (piece > 0) release(piece - 1);
        }
        wgmma_wait_group<0>();
        wgmma_fence_operand(acc);
    }

    // Nobody waits for a slot that no further piece needs.
    __device__ __forceinline__ void release(int piece) const {
        if (lane != 0) return;
        if (piece + A_SLOTS < pieces) mbarrier_arrive(&shared.a_empty[piece % A_SLOTS]);
        if (piece + W_SLOTS < pieces) mbarrier_arrive(&shared.w_empty[piece % W_SLOTS]);
    }

    // ------------------------------------------------------------------------------------------------ what follows

    // A thread finishes quads: (row, column), (row, column + 1) and both 8 rows below. Its i-th one is GROUPS_AT_ONCE
    // groups to the right of the one before.
    __device__ __forceinline__ int row_warp() const { return warp / GROUPS_AT_ONCE; }  // of those of this block
    __device__ __forceinline__ int first_group() const { return warp % GROUPS_AT_ONCE; }
    __device__ __forceinline__ int quad_row() const {
        return block_row + (rank * ROW_WARPS + row_warp()) * 16 + lane / 4;
    }
    __device__ __forceinline__ int quad_column(int i) const {  // in the tile
        return (first_group() + i * GROUPS_AT_ONCE) * 8 + lane % 4 * 2;
    }
    __device__ __forceinline__ bool inside(int i, int row) const {
        return row < args.rows && quad_column(i) < min(COLUMNS, args.columns - block_column);
    }

    __device__ __forceinline__ void load_bias() const {
        const int column = block_column + threadIdx.x;
        if (threadIdx.x < BIAS_COLUMNS)
            shared.bias[threadIdx.x] =
                args.bias && threadIdx.x < COLUMNS && column < args.columns ? args.bias[column] : 0.0f;
    }

    __device__ __forceinline__ void multiply_and_finish() {
        griddep_wait();
        float2 residual[QUADS][2] = {};
        if (args.residual) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int row = quad_row() + half * 8;
                const float* const from = args.residual + static_cast<long long>(row) * args.ldr + block_column;
#pragma unroll
                for (int i = 0; i < QUADS; ++i)
                    if (inside(i, row)) residual[i][half] = *reinterpret_cast<const float2*>(from + quad_column(i));
            }
        }

        float acc[COLUMNS / 2] = {};
        multiply(acc);
        cluster_wait_acquire();  // every block of the cluster has initialised its barriers
        send(acc);
        mbarrier_wait_parity(&shared.received, 0);
#pragma unroll
        for (int i = 0; i < QUADS; ++i) {
            const float4 sum = received_sum(i);
            const float2 bias = *reinterpret_cast<const float2*>(&shared.bias[quad_column(i)]);
            store(i, 0, make_float2(sum.x, sum.y), bias, residual[i][0]);
            store(i, 1, make_float2(sum.z, sum.w), bias, residual[i][1]);
        }
    }

    // To the block that finishes this warp's 16 rows.
    __device__ __forceinline__ void send(const float (&acc)[COLUMNS / 2]) const {
#pragma unroll
        for (int group = 0; group < GROUPS; ++group)
            st_async_float4(
                &shared.parts[rank][warp % ROW_WARPS * GROUPS + group][lane],
                make_float4(acc[4 * group], acc[4 * group + 1], acc[4 * group + 2], acc[4 * group + 3]),
                &shared.received, warp / ROW_WARPS);
    }

    __device__ __forceinline__ float4 received_sum(int i) const {
        const int place = row_warp() * GROUPS + min(first_group() + i * GROUPS_AT_ONCE, GROUPS - 1);
        float4 sum = shared.parts[0][place][lane];
#pragma unroll
        for (int split = 1; split < SPLITS; ++split) {
            const float4 part = shared.parts[split][place][lane];
            sum = make_float4(sum.x + part.x, sum.y + part.y, sum.z + part.z, sum.w + part.w);
        }
        return sum;
    }

    __device__ __forceinline__ float finished(float value, float bias, float residual) const {
        value += bias;
        return (args.activate ? activation(value) : value) + residual;
    }

    __device__ __forceinline__ void store(int i, int half, float2 value, float2 bias, float2 residual) const {
        const int row = quad_row() + half * 8;
        if (inside(i, row))
            *reinterpret_cast<float2*>(args.c + static_cast<long long>(row) * args.ldc + block_column + quad_column(i)) =
                make_float2(finished(value.x, bias.x, residual.x), finished(value.y, bias.y, residual.y));
    }
};
