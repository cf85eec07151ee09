// Token plus position embedding: one thread an element, consecutive threads on consecutive columns.
#include "args.cuh"

extern "C" __global__ void embed_gather(const __grid_constant__ EmbedArgs args) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y;
    if (column >= args.columns) return;
    const long long token = args.tokens[row];
    const long long position = row % args.seq;
    args.out[static_cast<long long>(row) * args.ldo + column] =
        args.embedding[token * args.columns + column] + args.position[position * args.columns + column];
}
