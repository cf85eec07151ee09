// Flash attention whose warps each take key tiles of their own: rows on their way into a tile, and the merge of
// what the warps have in their order.
#pragma once
#include "args.cuh"
#include "cp_async.cuh"
#include "warp.cuh"

// 16 bytes of row `index`, or zeros beyond `count` rows.
template <int LD>
__device__ __forceinline__ void copy_row_chunk(float (&row)[LD], const float* rows, int index, int ld, int count,
                                               int chunk) {
    const bool inside = index < count;
    cp_async_16_zfill(row + chunk * 4, rows + static_cast<long long>(inside ? index : 0) * ld + chunk * 4, inside);
}

template <int WARPS, int QUERIES, int LD>
struct FlashParts {
    float out[WARPS][QUERIES][LD];
    float peak[WARPS][QUERIES];
    float sum[WARPS][QUERIES];
};

// D columns of the block's queries, by all its threads, each part scaled to the highest of the peaks.
template <int D, int THREADS, int WARPS, int QUERIES, int LD>
__device__ __forceinline__ void merge_parts(const FlashParts<WARPS, QUERIES, LD>& parts, const AttentionArgs& args,
                                            int first_query, int head, int sequence) {
    constexpr int CHUNKS = D / 4;
    for (int i = threadIdx.x; i < QUERIES * CHUNKS; i += THREADS) {
        const int query = i / CHUNKS, column = i % CHUNKS * 4;
        if (first_query + query >= args.queries) continue;
        float highest = LOWEST;
#pragma unroll
        for (int part = 0; part < WARPS; ++part) highest = fmaxf(highest, parts.peak[part][query]);
        float total = 0.0f;
        float4 mixed = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int part = 0; part < WARPS; ++part) {
            const float share = __expf(parts.peak[part][query] - highest);
            const float4 value = *reinterpret_cast<const float4*>(&parts.out[part][query][column]);
            total += parts.sum[part][query] * share;
            mixed.x += value.x * share;
            mixed.y += value.y * share;
            mixed.z += value.z * share;
            mixed.w += value.w * share;
        }
        const long long at = static_cast<long long>(sequence) * args.queries + first_query + query;
        *reinterpret_cast<float4*>(args.out + at * args.ldo + head * D + column) =
            make_float4(mixed.x / total, mixed.y / total, mixed.z / total, mixed.w / total);
    }
}
