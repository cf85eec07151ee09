// Rung 11's one-row sites, for weights stored [columns, inner]: one or more warps a column, lanes along the inner
// axis (K).
// Against 09_one_row: the same idea for the other layout. Each lane loads 16 bytes at a time, all in flight.
//   - With several warps a column, the warps take turns along K and their sums are added in order through shared
//     memory. Otherwise a long K (w2@1) would leave too few bytes in flight, and few columns (head) too few SMs busy.
//   - The first UNROLL loads of each lane (all of them if K is short) and the bias start before griddep_wait().
// Should be faster than a tile when rows are few (1 to about 8).
// Shapes: inner a multiple of 4, leading dimensions of 4, any rows and columns. Row layout. Deterministic.
// The ladder uses 1, 2 and 4 warps a column; 8 is a further choice in this rung's menu.
//
//   block (x, y) owns row y and 8 / SPLITS columns of c; SPLITS warps share a column
//
//              K  0..127          128..255         ...                     (SPLITS = 2)
//   column 0      warp 0          warp 1           warp 0    ...           lane l of a warp loads floats 4l to 4l + 3
//   column 1      warp 2          warp 3           warp 2    ...           of its 128
//     ...
#include "dependent_launch.cuh"
#include "epilogue.cuh"
#include "row_k_major.cuh"
#include "warp.cuh"

constexpr int WARPS = 8;

// SPLITS: warps that share a column.
template <int SPLITS>
__device__ __forceinline__ void one_row_k_major(const GemmArgs& args) {
    constexpr int STEP = 128 * SPLITS;
    __shared__ float warp_sums[WARPS];
    griddep_launch_dependents();
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int column = blockIdx.x * (WARPS / SPLITS) + warp / SPLITS, row = blockIdx.y;
    const bool inside = column < args.columns;
    const bool stores = inside && warp % SPLITS == 0 && lane == 0;
    const float* const w = args.w + static_cast<long long>(inside ? column : 0) * args.ldw;

    float4 x[UNROLL], y[UNROLL];
    int k = (warp % SPLITS * 32 + lane) * 4;
    load_row(y, w, k, STEP, args.inner);
    const float bias = stores && args.bias ? args.bias[column] : 0.0f;
    griddep_wait();
    const float* const a = args.a + static_cast<long long>(row) * args.lda;
    const float residual =
        stores && args.residual ? args.residual[static_cast<long long>(row) * args.ldr + column] : 0.0f;
    float4 acc = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    while (k < args.inner) {
        // Beyond the end any value of the row will do: its weight is zero.
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) {
            const int index = k + i * STEP;
            x[i] = *reinterpret_cast<const float4*>(a + (index < args.inner ? index : 0));
        }
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) {
            acc.x += x[i].x * y[i].x;
            acc.y += x[i].y * y[i].y;
            acc.z += x[i].z * y[i].z;
            acc.w += x[i].w * y[i].w;
        }
        k += STEP * UNROLL;
        load_row(y, w, k, STEP, args.inner);
    }
    float column_sum = warp_sum((acc.x + acc.y) + (acc.z + acc.w));
    if (SPLITS > 1) {
        if (lane == 0) warp_sums[warp] = column_sum;
        __syncthreads();
        column_sum = 0.0f;
#pragma unroll
        for (int split = 0; split < SPLITS; ++split) column_sum += warp_sums[warp / SPLITS * SPLITS + split];
    }
    if (stores)
        args.c[static_cast<long long>(row) * args.ldc + column] = epilogue(column_sum, bias, args.activate, residual);
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
