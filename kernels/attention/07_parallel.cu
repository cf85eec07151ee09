// Rung 7, parallel attention: one block a (sequence, head, query) row, everything in one launch.
// Against 01_naive: a warp computes each dot product with its lanes along d_head, so keys are read
// coalesced; maximum and sum go through a shuffle tree instead of one thread; scores stay in shared memory.
// Should be faster wherever the softmax thread or the strided keys were waited for.
// For every d_head (no lane idles at multiples of 32); seq up to 12,288, a row of scores in 48 KiB of shared
// memory. Deterministic: shuffle tree, parts and keys in order.
#include "args.cuh"
#include "warp.cuh"

constexpr int WARPS = 4;

template <class Combine>
__device__ float block_reduce(float value, float* parts, Combine combine) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (lane == 0) parts[warp] = value;
    __syncthreads();
    float result = parts[0];
#pragma unroll
    for (int i = 1; i < WARPS; ++i) result = combine(result, parts[i]);
    __syncthreads();
    return result;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    attention_parallel(const __grid_constant__ AttentionArgs args) {
    extern __shared__ float scores[];
    __shared__ float parts[WARPS];
    const int query = blockIdx.x, head = blockIdx.y, sequence = blockIdx.z;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int visible = args.seq - args.queries + query + 1;
    const int row = sequence * args.queries + query;
    const float* q = args.q + static_cast<long long>(row) * args.ldq + head * args.d_head;
    const long long first_key = static_cast<long long>(sequence) * args.seq * args.ldkv + head * args.d_head;

    for (int key = warp; key < visible; key += WARPS) {
        const float* k = args.k + first_key + static_cast<long long>(key) * args.ldkv;
        float dot = 0.0f;
        for (int i = lane; i < args.d_head; i += 32) dot += q[i] * k[i];
        dot = warp_sum(dot);
        if (lane == 0) scores[key] = dot * args.scale;
    }
    __syncthreads();

    float peak = LOWEST;
    for (int key = threadIdx.x; key < visible; key += blockDim.x) peak = fmaxf(peak, scores[key]);
    peak = block_reduce(warp_max(peak), parts, [](float x, float y) { return fmaxf(x, y); });
    float sum = 0.0f;
    for (int key = threadIdx.x; key < visible; key += blockDim.x) {
        const float weight = expf(scores[key] - peak);
        scores[key] = weight;
        sum += weight;
    }
    sum = block_reduce(warp_sum(sum), parts, [](float x, float y) { return x + y; });

    for (int i = threadIdx.x; i < args.d_head; i += blockDim.x) {
        const float* v = args.v + first_key + i;
        float value = 0.0f;
        for (int key = 0; key < visible; ++key) value += scores[key] * v[static_cast<long long>(key) * args.ldkv];
        args.out[static_cast<long long>(row) * args.ldo + head * args.d_head + i] = value / sum;
    }
}
