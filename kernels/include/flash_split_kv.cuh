// Flash attention whose WARPS warps divide the keys of a block's queries: what 14_flash_warps and 14_flash_tensor
// share. Each warp goes through key tiles of its own with its own running maximum; the warps' partial results are
// merged in their order at the end.
//
//   keys      0..31   32..63  64..95  96..127  128..159  ...        tiles of KEYS = 32, with 4 warps
//   warp        0       1       2       3         0      ...
//
//   shared memory:  q [QUERIES][D]    k and v [WARPS][KEYS][D], a tile of each warp; rows padded by 4 floats
#pragma once
#include "args.cuh"
#include "bf16.cuh"
#include "cp_async.cuh"
#include "warp.cuh"

template <int D, int QUERIES, int KEYS, int WARPS>
struct FlashSplitKv {
    static constexpr int THREADS = 32 * WARPS;
    static constexpr int LD = D + 4;      // rows begin 4 banks apart: 16-byte loads of 8 rows do not conflict
    static constexpr int CHUNKS = D / 4;  // 16-byte chunks in a row

    struct Tiles {
        float q[QUERIES][LD];
        float k[WARPS][KEYS][LD];
        float v[WARPS][KEYS][LD];
    };

    const AttentionArgs& args;
    Tiles& tiles;
    const int head = blockIdx.y, sequence = blockIdx.z, first_query = blockIdx.x * QUERIES;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int query_offset = args.seq - args.queries;  // tokens before the first query
    const int block_keys = min(args.seq, query_offset + min(first_query + QUERIES, args.queries));
    const float* const q = args.q + static_cast<long long>(sequence) * args.queries * args.ldq + head * D;
    const long long first_key = static_cast<long long>(sequence) * args.seq * args.ldkv + head * D;
    const float* const k = args.k + first_key;
    const float* const v = args.v + first_key;

    __device__ __forceinline__ FlashSplitKv(const AttentionArgs& args, Tiles& tiles) : args(args), tiles(tiles) {}

    // Loads the queries and each warp's first key tile.
    __device__ __forceinline__ void load_first_tiles() const {
        for (int i = threadIdx.x; i < QUERIES * CHUNKS; i += THREADS)
            copy_chunk(tiles.q[i / CHUNKS], q, first_query + i / CHUNKS, args.ldq, args.queries, i % CHUNKS);
        if (warp * KEYS < block_keys) copy_tile(warp * KEYS);
        cp_async_commit_group();
        cp_async_wait_group<0>();
        __syncthreads();
    }

    // Loads this warp's key tile after the one at `key0`, if it has one.
    __device__ __forceinline__ void load_next_tile(int key0) const {
        if (key0 + WARPS * KEYS < block_keys) {
            __syncwarp();
            copy_tile(key0 + WARPS * KEYS);
            cp_async_commit_group();
            cp_async_wait_group<0>();
            __syncwarp();
        }
    }

private:
    // Starts the copy of this warp's keys and values from `key0` on.
    __device__ __forceinline__ void copy_tile(int key0) const {
#pragma unroll 4
        for (int i = lane; i < KEYS * CHUNKS; i += 32) {
            copy_chunk(tiles.k[warp][i / CHUNKS], k, key0 + i / CHUNKS, args.ldkv, args.seq, i % CHUNKS);
            copy_chunk(tiles.v[warp][i / CHUNKS], v, key0 + i / CHUNKS, args.ldkv, args.seq, i % CHUNKS);
        }
    }

    // Copies 16 bytes of row `index`, or zeros if there are only `count` rows.
    static __device__ __forceinline__ void copy_chunk(float (&to)[LD], const float* rows, int index, int ld, int count,
                                                      int chunk) {
        const bool inside = index < count;
        cp_async_16_zfill(to + chunk * 4, rows + static_cast<long long>(inside ? index : 0) * ld + chunk * 4, inside);
    }
};

// What each warp has of the block's queries: sum of p v, and maximum and sum of its row of scores.
template <int WARPS, int QUERIES, int LD>
struct FlashPartials {
    float out[WARPS][QUERIES][LD];
    float row_max[WARPS][QUERIES];
    float row_sum[WARPS][QUERIES];
};

// Merges the warps' partial results and stores them, by all threads of the block: each partial result is rescaled to
// the largest of the maxima.
template <int D, int THREADS, int WARPS, int QUERIES, int LD, class Args>
__device__ __forceinline__ void merge_partials(const FlashPartials<WARPS, QUERIES, LD>& partials, const Args& args,
                                               int first_query, int head, int sequence) {
    constexpr int CHUNKS = D / 4;
    for (int i = threadIdx.x; i < QUERIES * CHUNKS; i += THREADS) {
        const int query = i / CHUNKS, column = i % CHUNKS * 4;
        if (first_query + query >= args.queries) continue;
        float row_max = LOWEST;
#pragma unroll
        for (int warp = 0; warp < WARPS; ++warp) row_max = fmaxf(row_max, partials.row_max[warp][query]);
        float row_sum = 0.0f;
        float4 acc = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int warp = 0; warp < WARPS; ++warp) {
            const float rescale = __expf(partials.row_max[warp][query] - row_max);
            const float4 out = *reinterpret_cast<const float4*>(&partials.out[warp][query][column]);
            row_sum += partials.row_sum[warp][query] * rescale;
            acc.x += out.x * rescale;
            acc.y += out.y * rescale;
            acc.z += out.z * rescale;
            acc.w += out.w * rescale;
        }
        const long long row = static_cast<long long>(sequence) * args.queries + first_query + query;
        const float scale = 1.0f / row_sum;
        store_four(args.out + row * args.ldo + head * D + column,
                   make_float4(acc.x * scale, acc.y * scale, acc.z * scale, acc.w * scale));
    }
}
