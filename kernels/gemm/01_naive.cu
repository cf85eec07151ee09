// Rung 1, the naive port: one thread an output element, weights stored [columns, inner].
// Against the CPU code: threads replace the two outer loops, and nothing else changes.
// Why it is slow: a warp's 32 threads read 32 rows of w that lie `ldw` floats apart, so each load instruction
// touches 32 sectors and uses 4 of the 32 bytes of each; `a` is one broadcast word.
// Shapes: all; edges checked.
#include "epilogue.cuh"

extern "C" __global__ void gemm_naive(const __grid_constant__ GemmArgs args) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= args.rows || column >= args.columns) return;
    const float* a = args.a + static_cast<long long>(row) * args.lda;
    const float* w = args.w + static_cast<long long>(column) * args.ldw;
    float acc = 0.0f;
    for (int k = 0; k < args.inner; ++k) acc += a[k] * w[k];
    store(args, acc, row, column);
}
