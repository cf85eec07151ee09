// Staging of a block's a and w tiles in shared memory by cp.async, for shapes that are exact multiples of the tile:
// no predicates.
//
//   a_tile[row][k]     ROWS rows of DEPTH floats     + A_PAD floats after each row
//   w_tile[k][column]  DEPTH rows of COLUMNS floats  + W_PAD floats after each row
//
// The kernel chooses the padding so that its own loads from the tiles have no bank conflicts.
#pragma once
#include "args.cuh"
#include "cp_async.cuh"

template <int ROWS, int COLUMNS, int DEPTH, int THREADS, int A_PAD, int W_PAD>
struct StagedTile {
    static constexpr int A_LD = DEPTH + A_PAD;
    static constexpr int W_LD = COLUMNS + W_PAD;
    static constexpr int FLOATS = ROWS * A_LD + DEPTH * W_LD;

    static constexpr int A_CHUNKS = DEPTH / 4;    // 16-byte chunks in a row of a_tile
    static constexpr int W_CHUNKS = COLUMNS / 4;  // 16-byte chunks in a row of w_tile
    static_assert(ROWS * A_CHUNKS % THREADS == 0 && DEPTH * W_CHUNKS % THREADS == 0,
                  "every thread copies the same number of chunks");

    __device__ static float* a_tile(float* stage) { return stage; }
    __device__ static float* w_tile(float* stage) { return stage + ROWS * A_LD; }

    // Starts the copy of inner indices [k0, k0 + DEPTH) into `stage`. The caller commits the group.
    __device__ static void fetch(const GemmArgs& args, float* stage, int block_row, int block_column, int k0) {
#pragma unroll
        for (int i = 0; i < ROWS * A_CHUNKS / THREADS; ++i) {
            const int chunk = threadIdx.x + i * THREADS;
            const int row = chunk / A_CHUNKS, k = chunk % A_CHUNKS * 4;
            cp_async_16(a_tile(stage) + row * A_LD + k,
                        args.a + static_cast<long long>(block_row + row) * args.lda + k0 + k);
        }
#pragma unroll
        for (int i = 0; i < DEPTH * W_CHUNKS / THREADS; ++i) {
            const int chunk = threadIdx.x + i * THREADS;
            const int k = chunk / W_CHUNKS, column = chunk % W_CHUNKS * 4;
            cp_async_16(w_tile(stage) + k * W_LD + column,
                        args.w + static_cast<long long>(k0 + k) * args.ldw + block_column + column);
        }
    }
};
