// Rung 2, coalescing: the naive kernel on transposed weights, [inner, columns].
// Against 01_naive: only the weights' layout changes. At each step a warp's 32 threads read 32 consecutive floats,
// so a load instruction touches 4 sectors instead of 32 and uses every byte.
// Should be faster when the naive kernel waits for sectors: every shape with 32 columns or more.
// Shapes: all; edges checked. Transposed weights.
#include "epilogue.cuh"

extern "C" __global__ void gemm_coalesced(const __grid_constant__ GemmArgs args) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= args.rows || column >= args.columns) return;
    const float* a = args.a + static_cast<long long>(row) * args.lda;
    const float* w = args.w + column;
    float acc = 0.0f;
    for (int k = 0; k < args.inner; ++k) acc += a[k] * w[static_cast<long long>(k) * args.ldw];
    store(args, acc, row, column);
}
