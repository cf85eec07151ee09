// The one-row sites on weights stored [columns, inner]: one warp a column, its lanes along the inner axis.
// Against 10_one_row: the same idea for the other layout; each lane reads 16 bytes at a time, all in flight.
// Should be faster than a tile where rows are few (1 to about 8).
// For inner a multiple of 4, leading dimensions of 4, any rows and columns. Row layout. Deterministic.
#include "store.cuh"
#include "warp.cuh"

constexpr int WARPS = 8, UNROLL = 6;

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    gemm_one_row_k_major(const __grid_constant__ GemmArgs args) {
    const int lane = threadIdx.x & 31;
    const int column = blockIdx.x * WARPS + (threadIdx.x >> 5), row = blockIdx.y;
    if (column >= args.columns) return;
    const float* a = args.a + static_cast<long long>(row) * args.lda;
    const float* w = args.w + static_cast<long long>(column) * args.ldw;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll UNROLL
    for (int k = lane * 4; k < args.inner; k += 128) {
        const float4 x = *reinterpret_cast<const float4*>(a + k);
        const float4 y = *reinterpret_cast<const float4*>(w + k);
        sum.x += x.x * y.x;
        sum.y += x.y * y.y;
        sum.z += x.z * y.z;
        sum.w += x.w * y.w;
    }
    const float total = warp_sum((sum.x + sum.y) + (sum.z + sum.w));
    if (lane == 0) store(args, total, row, column);
}
