// Rung 1: layernorm with one warp a row, lanes on consecutive columns, sums by shuffle tree.
// Against 01_thread_per_row: 32 times the threads, and a load instruction touches 4 sectors instead of 32. There are
// still three passes over the row (mean, squared deviations, output), the second and third out of L1.
// Should be faster for every shape.
// Shapes: all; one warp takes any number of columns. Deterministic: shuffle tree.
#include "layernorm_row.cuh"

extern "C" __global__ void layernorm_warp_per_row(const __grid_constant__ LayernormArgs args) {
    const int row = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
    if (row < args.rows) layernorm_row(args, row);
}
