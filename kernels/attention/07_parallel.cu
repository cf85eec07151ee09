// Rung 7, parallel attention: one block a (sequence, head, query) row, in one launch.
// Against 01_naive: a warp computes each dot product with its lanes along d_head, so keys are read coalesced; maximum
// and sum go through a shuffle tree instead of one thread; scores stay in shared memory.
// Should be faster when the softmax thread or the strided keys bind.
// Shapes: all d_head (no lane idles if it is a multiple of 32); seq up to 12,288, because a row of scores has 48 KiB
// of shared memory. Deterministic: shuffle tree, then warps and keys in order.
//
//   block (query, head, sequence), 4 warps:
//     scores   warp w computes keys w, w + 4, w + 8, ...; its lanes divide d_head
//     softmax  thread t takes keys t, t + 128, ...
//     values   thread t takes output column t, over all visible keys
#include "args.cuh"
#include "warp.cuh"

constexpr int WARPS = 4;

// Combines one value of each warp, in the order of the warps. All threads get the result.
template <class Combine>
__device__ float block_reduce(float value, float* warp_values, Combine combine) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (lane == 0) warp_values[warp] = value;
    __syncthreads();
    float result = warp_values[0];
#pragma unroll
    for (int i = 1; i < WARPS; ++i) result = combine(result, warp_values[i]);
    __syncthreads();
    return result;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    attention_parallel(const __grid_constant__ AttentionArgs args) {
    extern __shared__ float scores[];  // then exp(score - row_max)
    __shared__ float warp_values[WARPS];
    const int query = blockIdx.x, head = blockIdx.y, sequence = blockIdx.z;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int visible_keys = args.seq - args.queries + query + 1;
    const int row = sequence * args.queries + query;
    const float* q = args.q + static_cast<long long>(row) * args.ldq + head * args.d_head;
    const long long first_key = static_cast<long long>(sequence) * args.seq * args.ldkv + head * args.d_head;

    for (int key = warp; key < visible_keys; key += WARPS) {
        const float* k = args.k + first_key + static_cast<long long>(key) * args.ldkv;
        float dot = 0.0f;
        for (int i = lane; i < args.d_head; i += 32) dot += q[i] * k[i];
        dot = warp_sum(dot);
        if (lane == 0) scores[key] = dot * args.scale;
    }
    __syncthreads();

    float row_max = LOWEST;
    for (int key = threadIdx.x; key < visible_keys; key += blockDim.x) row_max = fmaxf(row_max, scores[key]);
    row_max = block_reduce(warp_max(row_max), warp_values, [](float x, float y) { return fmaxf(x, y); });
    float row_sum = 0.0f;
    for (int key = threadIdx.x; key < visible_keys; key += blockDim.x) {
        const float p = expf(scores[key] - row_max);
        scores[key] = p;
        row_sum += p;
    }
    row_sum = block_reduce(warp_sum(row_sum), warp_values, [](float x, float y) { return x + y; });

    for (int i = threadIdx.x; i < args.d_head; i += blockDim.x) {
        const float* v = args.v + first_key + i;
        float acc = 0.0f;
        for (int key = 0; key < visible_keys; ++key) acc += scores[key] * v[static_cast<long long>(key) * args.ldkv];
        args.out[static_cast<long long>(row) * args.ldo + head * args.d_head + i] = acc / row_sum;
    }
}
