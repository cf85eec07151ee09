// out = embedding of the token + position: one thread an element. Start here: it is right for all shapes.
#include "args.cuh"

extern "C" __global__ void @ENTRY@(const __grid_constant__ EmbedArgs args) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (column >= args.columns) return;
    const long long token = args.tokens[row], position = row % args.seq;
    args.out[static_cast<long long>(row) * args.ldo + column] =
        args.embedding[token * args.columns + column] + args.position[position * args.columns + column];
}
