// Token plus position embedding: one thread an element, consecutive threads on consecutive columns.
// For every shape. Every rung but the megakernel uses it, which calls the same code. Deterministic.
#include "dependent.cuh"
#include "embed_element.cuh"

extern "C" __global__ void embed_gather(const __grid_constant__ EmbedArgs args) {
    let_next_grid_start();
    wait_for_grid_before();
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column < args.columns) embed_element(args, blockIdx.y, column);
}
