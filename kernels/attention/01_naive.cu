// Rung 1: attention in three launches through a score matrix in memory.
//   scores: one thread a (query, key) pair, its dot product over d_head;
//   softmax: one thread a (head, query) row, max, sum and division in turn;
//   values: one thread an output element, its sum over the visible keys.
// Why it is slow: a warp's threads read keys `ldkv` floats apart in `scores`, and `softmax` has one
// thread where a row has up to `seq` scores.
// For every shape. Query i of a sequence is its token seq - queries + i and sees the keys up to it.
#include "args.cuh"

extern "C" __global__ void attention_naive_scores(const __grid_constant__ AttentionArgs args) {
    const int key = blockIdx.x * blockDim.x + threadIdx.x;
    const int query = blockIdx.y;
    const int head = blockIdx.z % args.heads;
    const int sequence = blockIdx.z / args.heads;
    if (key >= args.seq || key > args.seq - args.queries + query) return;
    const float* q = args.q + static_cast<long long>(sequence * args.queries + query) * args.ldq + head * args.d_head;
    const float* k = args.k + static_cast<long long>(sequence * args.seq + key) * args.ldkv + head * args.d_head;
    float sum = 0.0f;
    for (int i = 0; i < args.d_head; ++i) sum += q[i] * k[i];
    args.scores[(static_cast<long long>(blockIdx.z) * args.queries + query) * args.seq + key] = sum * args.scale;
}

extern "C" __global__ void attention_naive_softmax(const __grid_constant__ AttentionArgs args) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= args.batch * args.heads * args.queries) return;
    const int visible = args.seq - args.queries + row % args.queries + 1;
    float* scores = args.scores + static_cast<long long>(row) * args.seq;
    float peak = scores[0];
    for (int i = 1; i < visible; ++i) peak = fmaxf(peak, scores[i]);
    float sum = 0.0f;
    for (int i = 0; i < visible; ++i) {
        scores[i] = expf(scores[i] - peak);
        sum += scores[i];
    }
    for (int i = 0; i < visible; ++i) scores[i] /= sum;
}

extern "C" __global__ void attention_naive_values(const __grid_constant__ AttentionArgs args) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int query = blockIdx.y;
    const int sequence = blockIdx.z;
    if (column >= args.heads * args.d_head) return;
    const int head = column / args.d_head;
    const int visible = args.seq - args.queries + query + 1;
    const float* scores =
        args.scores + (static_cast<long long>(sequence * args.heads + head) * args.queries + query) * args.seq;
    const float* v = args.v + static_cast<long long>(sequence) * args.seq * args.ldkv + column;
    float sum = 0.0f;
    for (int i = 0; i < visible; ++i) sum += scores[i] * v[static_cast<long long>(i) * args.ldkv];
    args.out[static_cast<long long>(sequence * args.queries + query) * args.ldo + column] = sum;
}
