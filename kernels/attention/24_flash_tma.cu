// Rung 24: flash attention whose tiles the copy engine brings.
// Against 14_flash_tensor, three changes:
//   - One thread asks for boxes of 64 keys and 64 values as soon as the launch ahead has ended; there, all threads copy
//     16 bytes at a time, tile after tile.
//   - Eight warps share the keys, 16 each, so that a sequence of 128 is one round. There, four warps take two.
//   - Operands are read by ldmatrix from swizzled tiles, without bank conflicts.
// Should be faster at batch 1, where a layer's attention is a chain of waits: one for q and k, one for v, one merge.
// `attention_flash_tma_alone` is the same entry with shared memory asked for such that an SM holds one block: 96 blocks
// then spread over 132 SMs, and each has an SM's whole bandwidth.
// Shapes: d_head 64, any seq, leading dimensions of 4. Queries, keys and values are used as stored: the hardware drops
// the bits below TF32. Softmax's weights are rounded to nearest; sums stay fp32. Deterministic: parts are merged in order.
// Queries, keys, warps and shared memory: drawn in include/flash_tma.cuh.
// arch: 90
#include "flash_tma.cuh"

struct Tf32Products {
    using Element = float;
    static constexpr int K_STEPS = flash_tma::D / 8;  // of S = Q K^T
    using Queries = unsigned[K_STEPS][4];

    static __device__ __forceinline__ void load(Queries& queries, const flash_tma::Rows<float, flash_tma::QUERIES>& q,
                                                int lane) {
#pragma unroll
        for (int step = 0; step < K_STEPS; ++step)
            ldmatrix_x4(queries[step],
                        q.chunk(step / 4, fragment_a_row(lane), step % 4 * 2 + fragment_a_k(lane) / 4));
    }

    static __device__ __forceinline__ void scores(flash_tma::Scores& score, const Queries& queries,
                                                  const flash_tma::Rows<float, flash_tma::BOX>& keys, int first,
                                                  int lane) {
        flash_tma::Scores part[2] = {};  // of even and of odd steps: two chains of products beside each other
#pragma unroll
        for (int step = 0; step < K_STEPS; ++step) {
            unsigned k[4];
            ldmatrix_x4(k, keys.chunk(step / 4, first + fragment_w_column(lane),
                                      step % 4 * 2 + fragment_w_k(lane) / 4));
            mma_m16n8k8_tf32(part[step % 2][0], queries[step], k);
            mma_m16n8k8_tf32(part[step % 2][1], queries[step], k + 2);
        }
#pragma unroll
        for (int i = 0; i < flash_tma::KEY_FRAGMENTS; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j) score[i][j] = part[0][i][j] + part[1][i][j];
    }

    static __device__ __forceinline__ void add_values(flash_tma::Output& out, const flash_tma::Scores& weights,
                                                      const flash_tma::Rows<float, flash_tma::BOX>& values, int first,
                                                      int lane) {
        const int row = fragment_c_row(lane), pair = fragment_c_column(lane);
        auto value = [&](int key, int i) {
            return static_cast<const unsigned*>(values.chunk(i / 4, key, i % 4 * 2 + row / 4))[row % 4];
        };
#pragma unroll
        for (int i = 0; i < flash_tma::KEY_FRAGMENTS; ++i) {
            unsigned p[4] = {__float_as_uint(weights[i][0]), __float_as_uint(weights[i][2]),
                             __float_as_uint(weights[i][1]), __float_as_uint(weights[i][3])};
            cvt_rna_tf32(p);
            const int key = first + i * 8 + pair;
#pragma unroll
            for (int j = 0; j < flash_tma::COLUMN_FRAGMENTS; ++j) {
                const unsigned v[2] = {value(key, j), value(key + 1, j)};
                mma_m16n8k8_tf32(out[j], p, v);
            }
        }
    }
};

extern "C" __global__ void __launch_bounds__(flash_tma::THREADS, 1)
    attention_flash_tma(const __grid_constant__ TmaAttentionArgs args) {
    flash_tma::run<Tf32Products>(args);
}
