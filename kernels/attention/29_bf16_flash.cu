// Rung 29's attention: 24_flash_tma with queries, keys, values and results in bf16.
// Against it, two changes:
//   - An element is two bytes: a row of a head is one swizzled row of 128 bytes, and a product takes 16 indices at once.
//   - A warp's 16 scores a query are one step of the second product, and lie in its registers as that wants them; values
//     are read by ldmatrix, which transposes, where 24_flash_tma loads single floats.
// Should be faster by half the bytes and fewer than half the instructions; the chain of waits stays: q and k, v, merge.
// Shapes: d_head 64, any seq, leading dimensions of 8. Softmax's weights are rounded to bf16, to nearest, their sum is
// of what they were before; sums and the softmax stay fp32. Deterministic: parts are merged in order.
// Queries, keys, warps and shared memory: drawn in include/flash_tma.cuh.
// arch: 90
#include "bf16.cuh"
#include "flash_tma.cuh"

struct Bf16Products {
    using Element = Bf16;
    static constexpr int K_STEPS = flash_tma::D / 16;  // of S = Q K^T
    using Queries = unsigned[K_STEPS][4];

    static __device__ __forceinline__ void load(Queries& queries, const flash_tma::Rows<Bf16, flash_tma::QUERIES>& q,
                                                int lane) {
#pragma unroll
        for (int step = 0; step < K_STEPS; ++step)
            ldmatrix_x4(queries[step], q.chunk(0, fragment_a_row(lane), step * 2 + fragment_a_k(lane) / 4));
    }

    static __device__ __forceinline__ void scores(flash_tma::Scores& score, const Queries& queries,
                                                  const flash_tma::Rows<Bf16, flash_tma::BOX>& keys, int first,
                                                  int lane) {
#pragma unroll
        for (int i = 0; i < 4; ++i) score[0][i] = score[1][i] = 0.0f;
#pragma unroll
        for (int step = 0; step < K_STEPS; ++step) {
            unsigned k[4];
            ldmatrix_x4(k, keys.chunk(0, first + fragment_w_column(lane), step * 2 + fragment_w_k(lane) / 4));
            mma_m16n8k16_bf16(score[0], queries[step], k);
            mma_m16n8k16_bf16(score[1], queries[step], k + 2);
        }
    }

    static __device__ __forceinline__ void add_values(flash_tma::Output& out, const flash_tma::Scores& weights,
                                                      const flash_tma::Rows<Bf16, flash_tma::BOX>& values, int first,
                                                      int lane) {
        // 16 keys, in the order of a fragment of A.
        const unsigned p[4] = {
            cvt_rn_bf16x2(weights[0][0], weights[0][1]), cvt_rn_bf16x2(weights[0][2], weights[0][3]),
            cvt_rn_bf16x2(weights[1][0], weights[1][1]), cvt_rn_bf16x2(weights[1][2], weights[1][3])};
        // Keys 0-7 and 8-15 of eight columns, then of the next eight.
#pragma unroll
        for (int i = 0; i < flash_tma::COLUMN_FRAGMENTS; i += 2) {
            unsigned v[4];
            ldmatrix_x4_trans(v, values.chunk(0, first + fragment_a_row(lane), i + fragment_a_k(lane) / 4));
            mma_m16n8k16_bf16(out[i], p, v);
            mma_m16n8k16_bf16(out[i + 1], p, v + 2);
        }
    }
};

extern "C" __global__ void __launch_bounds__(flash_tma::THREADS, 1)
    attention_bf16_flash(const __grid_constant__ TmaAttentionBf16Args args) {
    flash_tma::run<Bf16Products>(args);
}
