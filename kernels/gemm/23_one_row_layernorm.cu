// Rung 23's q@1, for weights stored [columns, inner]: 11_one_row_k_major whose row is normalised on the way.
// Against a layernorm's launch and 11_one_row_k_major after it: each warp has the whole row in registers for its dot
// product anyway, so it computes the row's standard deviation itself, and scales its one result by it. The weights have
// the layernorm's gain and the subtraction of the mean folded in.
// Should be faster by a launch and its wait. The row's sums are computed once for each column, which costs nothing
// beside the weights' way from DRAM.
// Shapes: inner a multiple of 4, leading dimensions of 4, any rows and columns. Row layout. Deterministic: shuffle tree.
//
//   block (x, y) owns row y and 8 columns of c, one warp each; lane l loads floats 4l to 4l + 3 of every 128
#include "activation.cuh"
#include "dependent_launch.cuh"
#include "row_k_major.cuh"
#include "warp.cuh"

constexpr int WARPS = 8;

extern "C" __global__ void __launch_bounds__(32 * WARPS, 3)
    gemm_one_row_layernorm(const __grid_constant__ OneRowLayernormArgs args) {
    griddep_launch_dependents();
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int column = blockIdx.x * WARPS + warp, row = blockIdx.y;
    const bool inside = column < args.columns;
    const float* const w = args.w + static_cast<long long>(inside ? column : 0) * args.ldw;

    float4 x[UNROLL], y[UNROLL];
    int k = lane * 4;
    load_row(y, w, k, 128, args.inner);
    const float bias = inside && args.bias ? args.bias[column] : 0.0f;
    griddep_wait();
    const float* const row_x = args.x + static_cast<long long>(row) * args.ldx;
    float dot = 0.0f, sum = 0.0f, squares = 0.0f;
    while (k < args.inner) {
        load_row(x, row_x, k, 128, args.inner);
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) {
            dot += (x[i].x * y[i].x + x[i].y * y[i].y) + (x[i].z * y[i].z + x[i].w * y[i].w);
            sum += (x[i].x + x[i].y) + (x[i].z + x[i].w);
            squares += (x[i].x * x[i].x + x[i].y * x[i].y) + (x[i].z * x[i].z + x[i].w * x[i].w);
        }
        k += 128 * UNROLL;
        load_row(y, w, k, 128, args.inner);
    }
    const float mean = warp_sum(sum) / args.inner;
    const float variance = warp_sum(squares) / args.inner - mean * mean;
    const float value = warp_sum(dot) * rsqrtf(variance + args.eps) + bias;
    if (inside && lane == 0)
        args.c[static_cast<long long>(row) * args.ldc + column] = args.activate ? activation(value) : value;
}
