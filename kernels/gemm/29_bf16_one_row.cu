// Rung 29's one-row sites: 11_one_row_k_major and 23_one_row_layernorm with weights and activations in bf16.
// Against them, one change: a load of 16 bytes brings eight elements. One warp has a row of 768 in three loads, and of
// w2@1's 3072 in twelve, so that all of it is in flight at once, and no column needs several warps for that.
//   - `layernorm`: the row's scale, 1 / standard deviation, is found beside the dot product, of which it is a factor.
//     The weights have the layernorm's gain and the subtraction of its mean folded in.
//   - `logits`: the results stay float, since they are what the pass is asked for.
// Should be faster because half the bytes come from DRAM, which is all that such a product waits for.
// Shapes: inner a multiple of 8, leading dimensions of 8, any rows and columns. Row layout. Deterministic: shuffle tree.
//
//   block (x, y) owns row y and 8 columns of c, one warp each; lane l loads elements 8l to 8l + 7 of every 256
#include "activation.cuh"
#include "args.cuh"
#include "bf16.cuh"
#include "dependent_launch.cuh"
#include "warp.cuh"

constexpr int WARPS = 8;
constexpr int LANE = 8;           // elements that a lane loads at once
constexpr int STEP = 32 * LANE;   // of a warp

// Loads UNROLL times 16 bytes; zeros beyond `end`.
template <int UNROLL>
__device__ __forceinline__ void load_row(uint4 (&values)[UNROLL], const Bf16* row, int k, int end) {
#pragma unroll
    for (int i = 0; i < UNROLL; ++i, k += STEP) {
        values[i] = make_uint4(0, 0, 0, 0);
        if (k < end) values[i] = *reinterpret_cast<const uint4*>(row + k);
    }
}

// Of one lane's share of the row.
template <bool NORMALISE>
struct Sums {
    float dot[2] = {}, sum = 0.0f, squares = 0.0f;

    __device__ __forceinline__ void add(unsigned a, unsigned w) {
        const float low = low_bf16(a), high = high_bf16(a);
        dot[0] += low * low_bf16(w);
        dot[1] += high * high_bf16(w);
        if (NORMALISE) {
            sum += low + high;
            squares += low * low + high * high;
        }
    }

    __device__ __forceinline__ void add(uint4 a, uint4 w) {
        add(a.x, w.x), add(a.y, w.y), add(a.z, w.z), add(a.w, w.w);
    }
};

// UNROLL: loads of a lane that are in flight at once.
template <int UNROLL, bool NORMALISE, class Out>
__device__ __forceinline__ void one_row(const OneRowBf16Args& args) {
    griddep_launch_dependents();
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int column = blockIdx.x * WARPS + warp, row = blockIdx.y;
    const bool inside = column < args.columns, stores = inside && lane == 0;
    const Bf16* const w = args.w + static_cast<long long>(inside ? column : 0) * args.ldw;

    uint4 x[UNROLL], y[UNROLL];
    int k = lane * LANE;
    load_row(y, w, k, args.inner);
    const float bias = stores && args.bias ? args.bias[column] : 0.0f;
    griddep_wait();
    const Bf16* const a = args.a + static_cast<long long>(row) * args.lda;
    const float residual =
        stores && args.residual ? load_one(args.residual + static_cast<long long>(row) * args.ldr + column) : 0.0f;
    Sums<NORMALISE> sums;
    while (k < args.inner) {
        load_row(x, a, k, args.inner);
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) sums.add(x[i], y[i]);
        k += STEP * UNROLL;
        load_row(y, w, k, args.inner);
    }
    float value = warp_sum(sums.dot[0] + sums.dot[1]);
    if (NORMALISE) {
        const float mean = warp_sum(sums.sum) / args.inner;
        value *= rsqrtf(warp_sum(sums.squares) / args.inner - mean * mean + args.eps);
    }
    value += bias;
    if (args.activate) value = activation(value);
    if (stores) store_one(static_cast<Out*>(args.c) + static_cast<long long>(row) * args.ldc + column, value + residual);
}

#define ONE_ROW(name, unroll, blocks, normalise, out)                                                       \
    extern "C" __global__ void __launch_bounds__(32 * WARPS, blocks)                                      \
        name(const __grid_constant__ OneRowBf16Args args) {                                               \
        one_row<unroll, normalise, out>(args);                                                            \
    }

ONE_ROW(gemm_bf16_one_row, 3, 2, false, Bf16)
ONE_ROW(gemm_bf16_one_row_long, 12, 1, false, Bf16)
ONE_ROW(gemm_bf16_one_row_layernorm, 3, 2, true, Bf16)
ONE_ROW(gemm_bf16_one_row_layernorm_logits, 3, 2, true, float)
