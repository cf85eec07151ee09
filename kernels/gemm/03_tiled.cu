// Rung 3, shared-memory tiling: a block of 16x16 threads stages 16x16 tiles of a and w.
// Against 02_coalesced: each staged element serves 16 multiply-adds instead of one, so L1 and L2 deliver 1/16 of the
// words. It costs two barriers a tile, and two shared-memory loads a multiply-add.
// Should be faster when loads from L1 and L2 bind: every shape that fills its tiles.
// Shapes: all; elements beyond the edges are staged as zeros. Transposed weights.
#include "epilogue.cuh"

constexpr int TILE = 16;

extern "C" __global__ void __launch_bounds__(TILE * TILE) gemm_tiled(const __grid_constant__ GemmArgs args) {
    __shared__ float a_tile[TILE][TILE];
    __shared__ float w_tile[TILE][TILE];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int column = blockIdx.x * TILE + tx;
    const int row = blockIdx.y * TILE + ty;
    float acc = 0.0f;
    for (int k0 = 0; k0 < args.inner; k0 += TILE) {
        const bool a_inside = row < args.rows && k0 + tx < args.inner;
        const bool w_inside = column < args.columns && k0 + ty < args.inner;
        a_tile[ty][tx] = a_inside ? args.a[static_cast<long long>(row) * args.lda + k0 + tx] : 0.0f;
        w_tile[ty][tx] = w_inside ? args.w[static_cast<long long>(k0 + ty) * args.ldw + column] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; ++k) acc += a_tile[ty][k] * w_tile[k][tx];
        __syncthreads();
    }
    if (row < args.rows && column < args.columns) store(args, acc, row, column);
}
