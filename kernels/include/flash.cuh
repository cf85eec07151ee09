// Flash attention of 8 queries of one head by one block: keys and values stream through shared memory in tiles of 32
// that serve all 8 queries, in two buffers; the softmax is computed online with a running maximum.
#pragma once
#include "args.cuh"
#include "cp_async.cuh"
#include "warp.cuh"

namespace flash_shape {
constexpr int QUERIES = 8, KEYS = 32, THREADS = 128;
constexpr int LANES = THREADS / QUERIES;  // threads that share a query: neighbours in one warp
constexpr int SCORES = KEYS / LANES;      // keys of a tile that one thread scores
}  // namespace flash_shape

template <int D>
struct FlashTiles {
    static constexpr int LD = D + 4;  // keeps 16-byte alignment and spreads 8 rows over all banks
    float q[flash_shape::QUERIES][LD];
    float k[2][flash_shape::KEYS][LD];
    float v[2][flash_shape::KEYS][LD];
    float p[flash_shape::QUERIES][flash_shape::KEYS + 1];  // exp(score - row_max) of the current tile
};

// A block that uses `shared` for other work afterwards must synchronise first.
template <int D>
__device__ __forceinline__ void flash(const AttentionArgs& args, FlashTiles<D>& shared, int query_tile, int head,
                                      int sequence) {
    using namespace flash_shape;
    constexpr int CHUNKS = D / 4;               // 16-byte chunks in a row
    constexpr int FLOAT4S = D / (4 * LANES);    // float4s of output columns that a thread owns
    const int first_query = query_tile * QUERIES;
    const int query = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    const int query_offset = args.seq - args.queries;  // tokens before the first query
    const int position = query_offset + first_query + query;
    const int block_keys = min(args.seq, query_offset + min(first_query + QUERIES, args.queries));
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

    float out[FLOAT4S][4] = {};
    float row_max = LOWEST, row_sum = 0.0f;
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
        float tile_max = LOWEST;
#pragma unroll
        for (int j = 0; j < SCORES; ++j) {
            const bool visible = key0 + lane + j * LANES <= position;
            score[j] = visible ? score[j] * args.scale : LOWEST;
            tile_max = fmaxf(tile_max, score[j]);
        }
#pragma unroll
        for (int offset = LANES / 2; offset > 0; offset >>= 1)
            tile_max = fmaxf(tile_max, __shfl_xor_sync(0xffffffffu, tile_max, offset));
        const float new_max = fmaxf(row_max, tile_max);
        const float rescale = __expf(row_max - new_max);
        row_max = new_max;
        row_sum *= rescale;
#pragma unroll
        for (int j = 0; j < SCORES; ++j) {
            const bool visible = key0 + lane + j * LANES <= position;
            const float p = visible ? __expf(score[j] - row_max) : 0.0f;
            shared.p[query][lane + j * LANES] = p;
            row_sum += p;
        }
#pragma unroll
        for (int i = 0; i < FLOAT4S; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j) out[i][j] *= rescale;
        __syncwarp();

#pragma unroll 8
        for (int key = 0; key < KEYS; ++key) {
            const float p = shared.p[query][key];
#pragma unroll
            for (int i = 0; i < FLOAT4S; ++i) {
                const float4 v = *reinterpret_cast<const float4*>(&shared.v[buffer][key][lane * 4 + i * 4 * LANES]);
                out[i][0] += p * v.x;
                out[i][1] += p * v.y;
                out[i][2] += p * v.z;
                out[i][3] += p * v.w;
            }
        }
        __syncwarp();
        buffer ^= 1;
    }

#pragma unroll
    for (int offset = LANES / 2; offset > 0; offset >>= 1) row_sum += __shfl_xor_sync(0xffffffffu, row_sum, offset);
    if (first_query + query >= args.queries) return;
    const long long row = static_cast<long long>(sequence) * args.queries + first_query + query;
    float* target = args.out + row * args.ldo + head * D;
#pragma unroll
    for (int i = 0; i < FLOAT4S; ++i)
        *reinterpret_cast<float4*>(target + lane * 4 + i * 4 * LANES) =
            make_float4(out[i][0] / row_sum, out[i][1] / row_sum, out[i][2] / row_sum, out[i][3] / row_sum);
}
