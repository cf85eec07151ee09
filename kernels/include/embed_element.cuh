// Adds one element of a token's row and of a position's row.
#pragma once
#include "args.cuh"

__device__ __forceinline__ void embed_element(const EmbedArgs& args, int row, int column) {
    const long long token = args.tokens[row];
    const long long position = row % args.seq;
    args.out[static_cast<long long>(row) * args.ldo + column] =
        args.embedding[token * args.columns + column] + args.position[position * args.columns + column];
}
