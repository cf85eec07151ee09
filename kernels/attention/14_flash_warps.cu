// Rung 14 in fp32 with the key tiles shared out: each of a block's four warps takes tiles of its own.
// Against 14_flash: there, a block's 128 threads go through the tiles one after another and wait for memory and
// at a barrier each time, four times for the last queries of 128 tokens; here the tiles of up to 128 keys are
// on their way and worked on at the same time, each warp with its own running maximum, and are merged in the
// order of the warps. A lane scores one key for all 8 queries, so that a key is read from shared memory once.
// Should be faster for short sequences, where a block's steps are latency; the same work where they are long.
// For d_head 64, any seq, leading dimensions of 4. Deterministic.
#include "dependent_launch.cuh"
#include "flash_split_kv.cuh"

constexpr int D = 64, QUERIES = 8, KEYS = 32, WARPS = 4, THREADS = 32 * WARPS;
constexpr int LD = D + 4;      // 16-byte reads of 8 neighbouring rows meet no bank twice
constexpr int CHUNKS = D / 4;  // 16-byte chunks in a row
constexpr int COLUMNS = D / 32;  // of the result, a lane

struct Tiles {
    float q[QUERIES][LD];
    float k[WARPS][KEYS][LD];
    float v[WARPS][KEYS][LD];
    float weight[WARPS][QUERIES][KEYS];
};

using Parts = FlashParts<WARPS, QUERIES, D>;  // lies over the tiles once they are used

__device__ __forceinline__ float dot(float4 a, float4 b, float sum) {
    return sum + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
    attention_flash_warps(const __grid_constant__ AttentionArgs args) {
    extern __shared__ float4 shared4[];
    Tiles& tiles = *reinterpret_cast<Tiles*>(shared4);
    griddep_launch_dependents();
    const int head = blockIdx.y, sequence = blockIdx.z, first_query = blockIdx.x * QUERIES;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int skipped = args.seq - args.queries;  // tokens before the first query
    const int block_keys = min(args.seq, skipped + min(first_query + QUERIES, args.queries));
    const float* q = args.q + static_cast<long long>(sequence) * args.queries * args.ldq + head * D;
    const long long first_key = static_cast<long long>(sequence) * args.seq * args.ldkv + head * D;
    const float* k = args.k + first_key;
    const float* v = args.v + first_key;

    auto fetch = [&](int key0) {  // this warp's tile
#pragma unroll 4
        for (int i = lane; i < KEYS * CHUNKS; i += 32) {
            copy_row_chunk(tiles.k[warp][i / CHUNKS], k, key0 + i / CHUNKS, args.ldkv, args.seq, i % CHUNKS);
            copy_row_chunk(tiles.v[warp][i / CHUNKS], v, key0 + i / CHUNKS, args.ldkv, args.seq, i % CHUNKS);
        }
    };
    griddep_wait();
    for (int i = threadIdx.x; i < QUERIES * CHUNKS; i += THREADS)
        copy_row_chunk(tiles.q[i / CHUNKS], q, first_query + i / CHUNKS, args.ldq, args.queries, i % CHUNKS);
    if (warp * KEYS < block_keys) fetch(warp * KEYS);
    cp_async_commit_group();
    cp_async_wait_group<0>();
    __syncthreads();

    float out[QUERIES][COLUMNS] = {};
    float peak[QUERIES], sum[QUERIES];  // a lane's own share of the sum
#pragma unroll
    for (int query = 0; query < QUERIES; ++query) peak[query] = LOWEST, sum[query] = 0.0f;
    for (int key0 = warp * KEYS; key0 < block_keys; key0 += WARPS * KEYS) {
        float score[QUERIES] = {};
#pragma unroll 4
        for (int i = 0; i < D; i += 4) {
            const float4 key = *reinterpret_cast<const float4*>(&tiles.k[warp][lane][i]);
#pragma unroll
            for (int query = 0; query < QUERIES; ++query)
                score[query] = dot(*reinterpret_cast<const float4*>(&tiles.q[query][i]), key, score[query]);
        }
#pragma unroll
        for (int query = 0; query < QUERIES; ++query) {
            const bool seen = key0 + lane <= skipped + first_query + query;
            const float scaled = seen ? score[query] * args.scale : LOWEST;
            const float new_peak = fmaxf(peak[query], warp_max(scaled));
            const float shrink = __expf(peak[query] - new_peak);
            const float weight = seen ? __expf(scaled - new_peak) : 0.0f;
            peak[query] = new_peak;
            sum[query] = sum[query] * shrink + weight;
#pragma unroll
            for (int column = 0; column < COLUMNS; ++column) out[query][column] *= shrink;
            tiles.weight[warp][query][lane] = weight;
        }
        __syncwarp();
#pragma unroll 2
        for (int key = 0; key < KEYS; key += 4) {
            float2 value[4];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                value[i] = *reinterpret_cast<const float2*>(&tiles.v[warp][key + i][lane * COLUMNS]);
#pragma unroll
            for (int query = 0; query < QUERIES; ++query) {
                const float4 weight = *reinterpret_cast<const float4*>(&tiles.weight[warp][query][key]);
                out[query][0] += weight.x * value[0].x + weight.y * value[1].x + weight.z * value[2].x +
                                 weight.w * value[3].x;
                out[query][1] += weight.x * value[0].y + weight.y * value[1].y + weight.z * value[2].y +
                                 weight.w * value[3].y;
            }
        }
        if (key0 + WARPS * KEYS < block_keys) {
            __syncwarp();
            fetch(key0 + WARPS * KEYS);
            cp_async_commit_group();
            cp_async_wait_group<0>();
            __syncwarp();
        }
    }

    __syncthreads();
    Parts& parts = *reinterpret_cast<Parts*>(shared4);
#pragma unroll
    for (int query = 0; query < QUERIES; ++query) {
        const float total = warp_sum(sum[query]);
        *reinterpret_cast<float2*>(&parts.out[warp][query][lane * COLUMNS]) =
            make_float2(out[query][0], out[query][1]);
        if (lane == 0) {
            parts.peak[warp][query] = peak[query];
            parts.sum[warp][query] = total;
        }
    }
    __syncthreads();

    merge_parts<D, THREADS>(parts, args, first_query, head, sequence);
}
