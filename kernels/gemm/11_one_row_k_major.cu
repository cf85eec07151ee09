// The one-row sites on weights stored [columns, inner]: one or more warps a column, their lanes along the inner
// axis.
// Against 09_one_row: the same idea for the other layout; each lane reads 16 bytes at a time, all in flight.
// With several warps a column they take turns along the inner axis and their sums are added in order through
// shared memory: a long inner axis (w2@1) or few columns (head) otherwise leave too few bytes in flight, or too
// few SMs at work. The first weights, all of them where the inner axis is no longer than a sweep, and the bias
// are sent for before the wait for what comes before.
// Should be faster than a tile where rows are few (1 to about 8).
// For inner a multiple of 4, leading dimensions of 4, any rows and columns. Row layout. Deterministic.
#include "dependent_launch.cuh"
#include "epilogue.cuh"
#include "warp.cuh"

constexpr int WARPS = 8, UNROLL = 6;

// UNROLL times 16 bytes of weights, `step` floats apart; zeros beyond `end`.
__device__ __forceinline__ void load_sweep(float4 (&values)[UNROLL], const float* from, int k, int step, int end) {
#pragma unroll
    for (int i = 0; i < UNROLL; ++i, k += step) {
        values[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (k < end) values[i] = *reinterpret_cast<const float4*>(from + k);
    }
}

// PARTS: warps of a column.
template <int PARTS>
__device__ __forceinline__ void one_row_k_major(const GemmArgs& args) {
    constexpr int STEP = 128 * PARTS;
    __shared__ float sums[WARPS];
    griddep_launch_dependents();
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int column = blockIdx.x * (WARPS / PARTS) + warp / PARTS, row = blockIdx.y;
    const bool inside = column < args.columns;
    const bool finishes = inside && warp % PARTS == 0 && lane == 0;
    const float* const w = args.w + static_cast<long long>(inside ? column : 0) * args.ldw;

    float4 x[UNROLL], y[UNROLL];
    int k = (warp % PARTS * 32 + lane) * 4;
    load_sweep(y, w, k, STEP, args.inner);
    const float bias = finishes && args.bias ? args.bias[column] : 0.0f;
    griddep_wait();
    const float* const a = args.a + static_cast<long long>(row) * args.lda;
    const float residual =
        finishes && args.residual ? args.residual[static_cast<long long>(row) * args.ldr + column] : 0.0f;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    while (k < args.inner) {
        // Beyond the end any of the row's values will do: it meets a weight of zero.
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) {
            const int at = k + i * STEP;
            x[i] = *reinterpret_cast<const float4*>(a + (at < args.inner ? at : 0));
        }
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) {
            sum.x += x[i].x * y[i].x;
            sum.y += x[i].y * y[i].y;
            sum.z += x[i].z * y[i].z;
            sum.w += x[i].w * y[i].w;
        }
        k += STEP * UNROLL;
        load_sweep(y, w, k, STEP, args.inner);
    }
    float total = warp_sum((sum.x + sum.y) + (sum.z + sum.w));
    if (PARTS > 1) {
        if (lane == 0) sums[warp] = total;
        __syncthreads();
        total = 0.0f;
#pragma unroll
        for (int part = 0; part < PARTS; ++part) total += sums[warp / PARTS * PARTS + part];
    }
    if (finishes) args.c[static_cast<long long>(row) * args.ldc + column] = epilogue(total, bias, args.relu, residual);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, 3)
    gemm_one_row_k_major(const __grid_constant__ GemmArgs args) {
    one_row_k_major<1>(args);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, 3)
    gemm_one_row_k_major_2(const __grid_constant__ GemmArgs args) {
    one_row_k_major<2>(args);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, 3)
    gemm_one_row_k_major_4(const __grid_constant__ GemmArgs args) {
    one_row_k_major<4>(args);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, 3)
    gemm_one_row_k_major_8(const __grid_constant__ GemmArgs args) {
    one_row_k_major<8>(args);
}
