// Rung 11's second candidate: 11_row_in_registers that also sends for the weights of the two products after it.
// Against 11_row_in_registers: weights do not depend on activations, and a layernorm leaves DRAM idle; its
// lanes ask L2 for every line of them and wait for none, so the products find in L2 what they would have
// waited for. Blocks beyond the rows only send. Two products' weights must fit into L2 beside the
// activations, or they push each other out.
// Should be faster where products wait for DRAM. It tests whether they do: sending costs a layernorm about
// one instruction for 4 KiB, so where products wait for something else it is slower.
// For columns a multiple of 4 up to 1024, leading dimensions of 4. Deterministic: shuffle tree.
#include "args.cuh"
#include "cp_async.cuh"
#include "row_in_registers.cuh"

constexpr int LINE = 32;  // floats

__device__ __forceinline__ void send_for(const float* weights, int lines) {
    for (int i = blockIdx.x * 32 + threadIdx.x; i < lines; i += gridDim.x * 32)
        prefetch_global_l2(weights + static_cast<long long>(i) * LINE);
}

extern "C" __global__ void __launch_bounds__(32) layernorm_weights_ahead(const __grid_constant__ LayernormAheadArgs args) {
    const LayernormArgs layernorm = {args.x,       args.gain, args.shift, args.out, args.rows,
                                     args.columns, args.ldx,  args.ldo,   args.eps};
    const bool has_row = blockIdx.x < args.rows;
    RowInRegisters row;
    if (has_row) row.load(layernorm, blockIdx.x);
    send_for(args.first, args.first_lines);
    send_for(args.second, args.second_lines);
    if (has_row) row.normalise(layernorm, blockIdx.x);
}
