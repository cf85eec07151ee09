// In rung 11's menu, no rung uses it: 11_row_in_registers that also prefetches the weights of the two products after
// it into L2.
// Against 11_row_in_registers: weights do not depend on activations, and a layernorm leaves DRAM idle. Its lanes
// prefetch every cache line of the weights and wait for none, so the products find them in L2. Blocks beyond the rows
// only prefetch. The weights of two products must fit into L2 together with the activations, or they evict each other.
// Should be faster if the products wait for DRAM: this kernel tests that. The prefetch costs a layernorm about one
// instruction for 4 KiB, so it is slower if the products wait for something else.
// Shapes: columns a multiple of 4 up to 1024, leading dimensions of 4. Deterministic: shuffle tree.
#include "args.cuh"
#include "cp_async.cuh"
#include "row_in_registers.cuh"

constexpr int LINE = 32;  // floats

__device__ __forceinline__ void prefetch_weights(const float* weights, int lines) {
    for (int i = blockIdx.x * 32 + threadIdx.x; i < lines; i += gridDim.x * 32)
        prefetch_global_l2(weights + static_cast<long long>(i) * LINE);
}

extern "C" __global__ void __launch_bounds__(32)
    layernorm_weights_ahead(const __grid_constant__ LayernormAheadArgs args) {
    const LayernormArgs layernorm = {args.x,       args.gain, args.shift, args.out, args.rows,
                                     args.columns, args.ldx,  args.ldo,   args.eps};
    const bool has_row = blockIdx.x < args.rows;
    RowInRegisters row;
    if (has_row) row.load(layernorm, blockIdx.x);
    prefetch_weights(args.first, args.first_lines);
    prefetch_weights(args.second, args.second_lines);
    if (has_row) row.normalise(layernorm, blockIdx.x);
}
