// Attention of 8 queries of one head by one block: keys and values stream through shared memory in tiles of
// 32 that serve all 8, two buffers; the softmax is computed online with a running maximum.
#pragma once
#include "args.cuh"
#include "cp_async.cuh"
#include "warp.cuh"

namespace flash_shape {
constexpr int QUERIES = 8, KEYS = 32, THREADS = 128;
constexpr int LANES = THREADS / QUERIES;  // threads that share a query, neighbours in one warp
constexpr int SCORES = KEYS / LANES;      // keys that one of them scores
}  // namespace flash_shape

template <int D>
struct FlashTiles {
    static constexpr int LD = D + 4;  // keeps 16-byte alignment and spreads 8 rows over all banks
    float q[flash_shape::QUERIES][LD];
    float k[2][flash_shape::KEYS][LD];
    float v[2][flash_shape::KEYS][LD];
    float weights[flash_shape::QUERIES][flash_shape::KEYS + 1];
};

// A block that goes on to other work in `shared` must synchronise first.
template <int D>
__device__ __forceinline__ void flash(const AttentionArgs& args, FlashTiles<D>& shared, int query_tile, int head,
                                      int sequence) {
    using namespace flash_shape;
    constexpr int CHUNKS = D / 4;              // 16-byte chunks in a row
    constexpr int GROUPS = D / (4 * LANES);    // groups of 4 columns that a thread owns
    const int first_query = query_tile * QUERIES;
    const int query = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const int skipped = args.seq - args.queries;  // tokens before the first query
    const int position = skipped + first_query + query;
    const int block_keys = min(args.seq, skipped + min(first_query + QUERIES, args.queries));
    const float* q = args.q + static_cast<long long>(sequence) * args.queries * args.ldq + head * D;
    const long long first_key = static_cast<long long>(sequence) * args.seq * args.ldkv + head * D;

    auto fetch = [&](int buffer, int key0) {
#pragma unroll
        for (int i = 0; i < KEYS * CHUNKS / THREADS; ++i) {
            const int chunk = threadIdx.x + i * THREADS;
            const int row = chunk / CHUNKS, column = chunk % CHUNKS * 4;
            const bool inside = key0 + row < args.seq;
            const long long offset = first_key + static_cast<long long>(inside ? key0 + row : 0) * args.ldkv + column;
            cp_async_16_zfill(&shared.k[buffer][row][column], args.k + offset, inside);
            cp_async_16_zfill(&shared.v[buffer][row][column], args.v + offset, inside);
        }
    };

#pragma unroll
    for (int i = 0; i < QUERIES * CHUNKS / THREADS; ++i) {
        const int chunk = threadIdx.x + i * THREADS;
        const int row = chunk / CHUNKS, column = chunk % CHUNKS * 4;
        const bool inside = first_query + row < args.queries;
        const long long offset = static_cast<long long>(inside ? first_query + row : 0) * args.ldq + column;
        cp_async_16_zfill(&shared.q[row][column], q + offset, inside);
    }
    fetch(0, 0);
    cp_async_commit_group();

    float out[GROUPS][4] = {};
    float peak = LOWEST, sum = 0.0f;
    int buffer = 0;
    for (int key0 = 0; key0 < block_keys; key0 += KEYS) {
        cp_async_wait_group<0>();
        __syncthreads();
        if (key0 + KEYS < block_keys) fetch(buffer ^ 1, key0 + KEYS);
        cp_async_commit_group();

        float score[SCORES] = {};
#pragma unroll 4
        for (int i = 0; i < D; i += 4) {
            const float4 a = *reinterpret_cast<const float4*>(&shared.q[query][i]);
#pragma unroll
            for (int j = 0; j < SCORES; ++j) {
                const float4 b = *reinterpret_cast<const float4*>(&shared.k[buffer][lane + j * LANES][i]);
                score[j] += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
            }
        }
        float tile_peak = LOWEST;
#pragma unroll
        for (int j = 0; j < SCORES; ++j) {
            const bool seen = key0 + lane + j * LANES <= position;
            score[j] = seen ? score[j] * args.scale : LOWEST;
            tile_peak = fmaxf(tile_peak, score[j]);
        }
#pragma unroll
        for (int offset = LANES / 2; offset > 0; offset >>= 1)
            tile_peak = fmaxf(tile_peak, __shfl_xor_sync(0xffffffffu, tile_peak, offset));
        const float new_peak = fmaxf(peak, tile_peak);
        const float shrink = __expf(peak - new_peak);
        peak = new_peak;
        sum *= shrink;
#pragma unroll
        for (int j = 0; j < SCORES; ++j) {
            const bool seen = key0 + lane + j * LANES <= position;
            const float weight = seen ? __expf(score[j] - peak) : 0.0f;
            shared.weights[query][lane + j * LANES] = weight;
            sum += weight;
        }
#pragma unroll
        for (int group = 0; group < GROUPS; ++group)
#pragma unroll
            for (int j = 0; j < 4; ++j) out[group][j] *= shrink;
        __syncwarp();

#pragma unroll 8
        for (int key = 0; key < KEYS; ++key) {
            const float weight = shared.weights[query][key];
#pragma unroll
            for (int group = 0; group < GROUPS; ++group) {
                const float4 v =
                    *reinterpret_cast<const float4*>(&shared.v[buffer][key][lane * 4 + group * 4 * LANES]);
                out[group][0] += weight * v.x;
                out[group][1] += weight * v.y;
                out[group][2] += weight * v.z;
                out[group][3] += weight * v.w;
            }
        }
        __syncwarp();
        buffer ^= 1;
    }

#pragma unroll
    for (int offset = LANES / 2; offset > 0; offset >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    if (first_query + query >= args.queries) return;
    const long long row = static_cast<long long>(sequence) * args.queries + first_query + query;
    float* target = args.out + row * args.ldo + head * D;
#pragma unroll
    for (int group = 0; group < GROUPS; ++group)
        *reinterpret_cast<float4*>(target + lane * 4 + group * 4 * LANES) =
            make_float4(out[group][0] / sum, out[group][1] / sum, out[group][2] / sum, out[group][3] / sum);
}
