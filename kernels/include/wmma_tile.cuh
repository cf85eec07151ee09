// A warp's 32x32 part of a block's tile as WMMA fragments in TF32: accumulators in fp32, operands rounded to nearest.
//
//                 16 columns    16 columns
//   16 rows     acc[0][0]     acc[0][1]       wmma 16x16x8: one step of K multiplies a[i] (16x8) by w[j] (8x16)
//   16 rows     acc[1][0]     acc[1][1]
#pragma once
#include <mma.h>

#include "split_k.cuh"

struct WarpTile {
    static constexpr int ROWS = 32, COLUMNS = 32;
    static constexpr int M = 16, N = 16, K = 8;
    static constexpr int M_FRAGMENTS = ROWS / M, N_FRAGMENTS = COLUMNS / N;
    static constexpr int LD = COLUMNS + 4;
    static constexpr int STORE_FLOATS = ROWS * LD;

    using A = nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, M, N, K, nvcuda::wmma::precision::tf32,
                                     nvcuda::wmma::row_major>;
    using W = nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, M, N, K, nvcuda::wmma::precision::tf32,
                                     nvcuda::wmma::row_major>;
    nvcuda::wmma::fragment<nvcuda::wmma::accumulator, M, N, K, float> acc[M_FRAGMENTS][N_FRAGMENTS];

    __device__ void clear() {
#pragma unroll
        for (int i = 0; i < M_FRAGMENTS; ++i)
#pragma unroll
            for (int j = 0; j < N_FRAGMENTS; ++j) nvcuda::wmma::fill_fragment(acc[i][j], 0.0f);
    }

    // Adds the product of this warp's rows of a_tile and columns of w_tile over DEPTH inner indices.
    template <int DEPTH, int A_LD, int W_LD>
    __device__ void mma(const float* a_tile, const float* w_tile) {
#pragma unroll
        for (int k = 0; k < DEPTH; k += K) {
            A a[M_FRAGMENTS];
            W w[N_FRAGMENTS];
#pragma unroll
            for (int i = 0; i < M_FRAGMENTS; ++i) {
                nvcuda::wmma::load_matrix_sync(a[i], a_tile + i * M * A_LD + k, A_LD);
                round_to_tf32(a[i]);
            }
#pragma unroll
            for (int j = 0; j < N_FRAGMENTS; ++j) {
                nvcuda::wmma::load_matrix_sync(w[j], w_tile + k * W_LD + j * N, W_LD);
                round_to_tf32(w[j]);
            }
#pragma unroll
            for (int i = 0; i < M_FRAGMENTS; ++i)
#pragma unroll
                for (int j = 0; j < N_FRAGMENTS; ++j) nvcuda::wmma::mma_sync(acc[i][j], a[i], w[j], acc[i][j]);
        }
    }

    // Stores the accumulators: as the partial result of split `split`, or with the epilogue if there is one split.
    // WMMA does not say which lane holds which element, so they pass through `tile`, STORE_FLOATS of shared memory
    // of this warp alone, and a warp then stores rows of 32 consecutive columns.
    __device__ void store_tile(const GemmArgs& args, int split, float* tile, int row0, int column0) const {
#pragma unroll
        for (int i = 0; i < M_FRAGMENTS; ++i)
#pragma unroll
            for (int j = 0; j < N_FRAGMENTS; ++j)
                nvcuda::wmma::store_matrix_sync(tile + i * M * LD + j * N, acc[i][j], LD,
                                                nvcuda::wmma::mem_row_major);
        __syncwarp();
        const int lane = threadIdx.x & 31;
        const int column = column0 + lane;
#pragma unroll 8
        for (int i = 0; i < ROWS; ++i) {
            const float value = tile[i * LD + lane];
            if (args.splits > 1)
                partial_tile(args, split)[static_cast<long long>(row0 + i) * args.columns + column] = value;
            else
                store(args, value, row0 + i, column);
        }
    }

private:
    template <class Fragment>
    __device__ static void round_to_tf32(Fragment& fragment) {
#pragma unroll
        for (int i = 0; i < fragment.num_elements; ++i)
            fragment.x[i] = nvcuda::wmma::__float_to_tf32(fragment.x[i]);
    }
};
