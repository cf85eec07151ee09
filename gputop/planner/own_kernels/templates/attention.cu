// out = softmax(q k^T * scale) v for each head: one warp a query, which keeps the largest score and the sum so far.
// Start here: it is right for all shapes with d_head up to 256, and slow: each query reads all its keys by itself.
// Query i of a sequence is its token seq - queries + i, and sees the keys up to that token.
#include "args.cuh"
#include "warp.cuh"

constexpr int MOST_PER_LANE = 8;  // columns of a head that a lane holds: 32 x 8 = 256, as takes of the record says

extern "C" __global__ void @ENTRY@(const __grid_constant__ AttentionArgs args) {
    const int query = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    const int head = blockIdx.y, sequence = blockIdx.z;
    if (query >= args.queries) return;
    const long long row = static_cast<long long>(sequence) * args.queries + query;
    const float* q = args.q + row * args.ldq + head * args.d_head;
    const long long first = static_cast<long long>(sequence) * args.seq * args.ldkv + head * args.d_head;
    float acc[MOST_PER_LANE] = {}, peak = LOWEST, sum = 0.0f;
    for (int key = 0; key < args.seq - args.queries + query + 1; ++key) {
        const float *k = args.k + first + static_cast<long long>(key) * args.ldkv;
        const float *v = args.v + first + static_cast<long long>(key) * args.ldkv;
        float dot = 0.0f;
        for (int i = lane; i < args.d_head; i += 32) dot += q[i] * k[i];
        const float score = warp_sum(dot) * args.scale, before = peak;
        peak = fmaxf(peak, score);
        const float shrink = expf(before - peak), weight = expf(score - peak);
        sum = sum * shrink + weight;
        for (int i = 0; i < MOST_PER_LANE; ++i)
            if (lane + 32 * i < args.d_head) acc[i] = acc[i] * shrink + weight * v[lane + 32 * i];
    }
    float* out = args.out + row * args.ldo + head * args.d_head;
    for (int i = 0; i < MOST_PER_LANE; ++i)
        if (lane + 32 * i < args.d_head) out[lane + 32 * i] = acc[i] / sum;
}
