// Rung 29's embedding: 01_gather whose sum is rounded to bf16 and stored. A thread has two columns, one word.
// Should be no faster: its 128 rows wait for the tables' rows, which stay float, as those of a lookup are read once.
// Shapes: an even number of columns. Deterministic.
#include "args.cuh"
#include "bf16.cuh"
#include "dependent_launch.cuh"

extern "C" __global__ void embed_bf16_gather(const __grid_constant__ EmbedBf16Args args) {
    griddep_launch_dependents();
    griddep_wait();
    const int column = 2 * (blockIdx.x * blockDim.x + threadIdx.x), row = blockIdx.y;
    if (column >= args.columns) return;
    const long long token = args.tokens[row], position = row % args.seq;
    const float2 word = load_pair(args.embedding + token * args.columns + column);
    const float2 place = load_pair(args.position + position * args.columns + column);
    store_pair(args.out + static_cast<long long>(row) * args.ldo + column,
               make_float2(word.x + place.x, word.y + place.y));
}
