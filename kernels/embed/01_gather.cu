// Rung 1: token plus position embedding, one thread an element, consecutive threads on consecutive columns.
// All rungs use it except the megakernel, which calls the same code as one of its tasks.
// Shapes: all. Deterministic.
#include "dependent_launch.cuh"
#include "embed_element.cuh"

extern "C" __global__ void embed_gather(const __grid_constant__ EmbedArgs args) {
    griddep_launch_dependents();
    griddep_wait();
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column < args.columns) embed_element(args, blockIdx.y, column);
}
