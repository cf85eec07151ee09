// A ROWS x COLUMNS tile of a product by one block, with a MICRO x MICRO micro-tile of accumulators in each thread's
// registers; edges checked. For the rungs that differ only in the tile's size or in how K is divided.
//
// K is walked in steps of DEPTH: a_tile holds the step of a transposed ([k][row], one float of padding so that the
// transposing stores hit different banks), w_tile the step of w ([k][column]). Thread (tx, ty) reads MICRO elements
// of each for every k and adds their outer product.
#pragma once
#include "epilogue.cuh"

template <int ROWS, int COLUMNS, int DEPTH, int MICRO>
struct RegisterTile {
    static constexpr int THREADS_X = COLUMNS / MICRO;
    static constexpr int THREADS = THREADS_X * (ROWS / MICRO);

    float acc[MICRO][MICRO];
    int row0, column0;  // of this thread's micro-tile

    // Multiplies the block's tile over inner indices [begin, end).
    __device__ void accumulate(const GemmArgs& args, int begin, int end) {
        __shared__ float a_tile[DEPTH][ROWS + 1];
        __shared__ float w_tile[DEPTH][COLUMNS];
        const int thread = threadIdx.x;
        const int block_row = blockIdx.y * ROWS, block_column = blockIdx.x * COLUMNS;
        const int tx = thread % THREADS_X, ty = thread / THREADS_X;
        row0 = block_row + ty * MICRO;
        column0 = block_column + tx * MICRO;
#pragma unroll
        for (int i = 0; i < MICRO; ++i)
#pragma unroll
            for (int j = 0; j < MICRO; ++j) acc[i][j] = 0.0f;

        for (int k0 = begin; k0 < end; k0 += DEPTH) {
            for (int i = thread; i < ROWS * DEPTH; i += THREADS) {
                const int row = block_row + i / DEPTH, k = k0 + i % DEPTH;
                const bool inside = row < args.rows && k < end;
                a_tile[i % DEPTH][i / DEPTH] = inside ? args.a[static_cast<long long>(row) * args.lda + k] : 0.0f;
            }
            for (int i = thread; i < COLUMNS * DEPTH; i += THREADS) {
                const int column = block_column + i % COLUMNS, k = k0 + i / COLUMNS;
                const bool inside = column < args.columns && k < end;
                w_tile[i / COLUMNS][i % COLUMNS] =
                    inside ? args.w[static_cast<long long>(k) * args.ldw + column] : 0.0f;
            }
            __syncthreads();
#pragma unroll
            for (int k = 0; k < DEPTH; ++k) {
                float a[MICRO], w[MICRO];
#pragma unroll
                for (int i = 0; i < MICRO; ++i) a[i] = a_tile[k][ty * MICRO + i];
#pragma unroll
                for (int j = 0; j < MICRO; ++j) w[j] = w_tile[k][tx * MICRO + j];
#pragma unroll
                for (int i = 0; i < MICRO; ++i)
#pragma unroll
                    for (int j = 0; j < MICRO; ++j) acc[i][j] += a[i] * w[j];
            }
            __syncthreads();
        }
    }

    // Calls function(row, column, accumulator) for every element of this thread's micro-tile that exists.
    template <class Function>
    __device__ void for_each(const GemmArgs& args, Function function) const {
#pragma unroll
        for (int i = 0; i < MICRO; ++i)
#pragma unroll
            for (int j = 0; j < MICRO; ++j)
                if (row0 + i < args.rows && column0 + j < args.columns) function(row0 + i, column0 + j, acc[i][j]);
    }
};
