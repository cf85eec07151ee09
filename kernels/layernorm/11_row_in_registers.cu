// Rung 11's layernorm: one warp holds a whole row in registers, 16 bytes a load.
// Against 01_warp_per_row: the row is read once instead of three times, and all its loads are in flight together;
// there, each of three passes waits for its own loads.
// Should be faster when rows are few, so that latency binds: every layernorm of the pass.
// Shapes: columns a multiple of 4 up to 1024, leading dimensions of 4. Deterministic: shuffle tree.
#include "dependent_launch.cuh"
#include "row_in_registers.cuh"

extern "C" __global__ void __launch_bounds__(32)
    layernorm_row_in_registers(const __grid_constant__ LayernormArgs args) {
    griddep_launch_dependents();
    griddep_wait();
    RowInRegisters row;
    row.load(args, blockIdx.x);
    row.normalise(args, blockIdx.x);
}
