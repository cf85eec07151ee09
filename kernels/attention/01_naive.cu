// Rung 1: attention in three launches with a score matrix in memory.
//   scores: one thread a (query, key) pair computes a dot product over d_head;
//   softmax: one thread a (head, query) row computes maximum, sum and division in turn;
//   values: one thread an output element adds up the visible keys.
// Against the CPU code: threads replace the outer loops, and nothing else changes.
// Why it is slow: in `scores` a warp's threads read keys that lie `ldkv` floats apart, and in `softmax` one thread
// works on a row of up to `seq` scores.
// Shapes: all. Query i of a sequence is its token seq - queries + i and sees the keys up to that token.
#include "args.cuh"

extern "C" __global__ void attention_naive_scores(const __grid_constant__ AttentionArgs args) {
    const int key = blockIdx.x * blockDim.x + threadIdx.x;
    const int query = blockIdx.y;
    const int head = blockIdx.z % args.heads;
    const int sequence = blockIdx.z / args.heads;
    if (key >= args.seq || key > args.seq - args.queries + query) return;
    const float* q = args.q + static_cast<long long>(sequence * args.queries + query) * args.ldq + head * args.d_head;
    const float* k = args.k + static_cast<long long>(sequence * args.seq + key) * args.ldkv + head * args.d_head;
    float acc = 0.0f;
    for (int i = 0; i < args.d_head; ++i) acc += q[i] * k[i];
    args.scores[(static_cast<long long>(blockIdx.z) * args.queries + query) * args.seq + key] = acc * args.scale;
}

extern "C" __global__ void attention_naive_softmax(const __grid_constant__ AttentionArgs args) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= args.batch * args.heads * args.queries) return;
    const int visible_keys = args.seq - args.queries + row % args.queries + 1;
    float* scores = args.scores + static_cast<long long>(row) * args.seq;
    float row_max = scores[0];
    for (int i = 1; i < visible_keys; ++i) row_max = fmaxf(row_max, scores[i]);
    float row_sum = 0.0f;
    for (int i = 0; i < visible_keys; ++i) {
        scores[i] = expf(scores[i] - row_max);
        row_sum += scores[i];
    }
    for (int i = 0; i < visible_keys; ++i) scores[i] /= row_sum;
}

extern "C" __global__ void attention_naive_values(const __grid_constant__ AttentionArgs args) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int query = blockIdx.y;
    const int sequence = blockIdx.z;
    if (column >= args.heads * args.d_head) return;
    const int head = column / args.d_head;
    const int visible_keys = args.seq - args.queries + query + 1;
    const float* p =
        args.scores + (static_cast<long long>(sequence * args.heads + head) * args.queries + query) * args.seq;
    const float* v = args.v + static_cast<long long>(sequence) * args.seq * args.ldkv + column;
    float acc = 0.0f;
    for (int i = 0; i < visible_keys; ++i) acc += p[i] * v[static_cast<long long>(i) * args.ldkv];
    args.out[static_cast<long long>(sequence * args.queries + query) * args.ldo + column] = acc;
}
