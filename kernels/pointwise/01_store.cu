// Rung 1: the GEMM's epilogue (bias, activation, residual) as a launch of its own, for GEMMs that do not fuse it.
// One thread an element. It reads and writes c once more, which fused stores avoid.
// Shapes: all. Deterministic.
#include "activation.cuh"
#include "args.cuh"
#include "dependent_launch.cuh"

extern "C" __global__ void pointwise_store(const __grid_constant__ StoreArgs args) {
    griddep_launch_dependents();
    griddep_wait();
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y;
    if (column >= args.columns) return;
    float* c = args.c + static_cast<long long>(row) * args.ldc + column;
    float value = *c;
    if (args.bias) value += args.bias[column];
    if (args.activate) value = activation(value);
    if (args.residual) value += args.residual[static_cast<long long>(row) * args.ldr + column];
    *c = value;
}
