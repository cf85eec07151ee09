// Rung 14 in fp32 for a d_head of 64: flash attention whose four warps divide the keys.
// Against 14_flash: there, a block's 128 threads go through the key tiles one after another, and wait for memory and
// at a barrier each time (four times for the last queries of 128 tokens). Here the tiles of up to 128 keys are loaded
// and used at the same time: each warp has its own tiles and its own running maximum, and the warps' results are
// merged in order. A lane scores one key for all 8 queries, so a key is read from shared memory once.
// Should be faster for short sequences, whose blocks wait for latency; for long ones the work is the same.
// Shapes: d_head 64, any seq, leading dimensions of 4. Deterministic.
//
// Queries, keys and lanes:
//
//   block (x, y, z) owns queries 8x.. of head y of sequence z; warp w takes keys 32w.. to 32w + 31, then the tile 128
//   keys further, and so on (flash_split_kv.cuh)
//
//   a warp's scores: 8 queries x 32 keys           a warp's output: 8 queries x 64 columns
//
//              key 0   key 1  ...  key 31                     columns 0, 1   2, 3   ...   62, 63
//   query 0    lane 0  lane 1      lane 31          query 0   lane 0         lane 1       lane 31
//     ...        "       "           "                ...       "              "            "
//   query 7    lane 0  lane 1      lane 31          query 7   lane 0         lane 1       lane 31
//
//   p = exp(score - row_max) goes through shared memory from the lane of a key to all lanes.
#include "dependent_launch.cuh"
#include "flash_split_kv.cuh"

constexpr int D = 64, QUERIES = 8, KEYS = 32, WARPS = 4, THREADS = 32 * WARPS;
constexpr int COLUMNS = D / 32;  // of the output, a lane

using Flash = FlashSplitKv<D, QUERIES, KEYS, WARPS>;

struct Tiles : Flash::Tiles {
    float p[WARPS][QUERIES][KEYS];
};

using Partials = FlashPartials<WARPS, QUERIES, D>;  // lies over the tiles after their last use

__device__ __forceinline__ float dot(float4 a, float4 b, float acc) {
    return acc + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
    attention_flash_warps(const __grid_constant__ AttentionArgs args) {
    extern __shared__ float4 shared4[];
    Tiles& tiles = *reinterpret_cast<Tiles*>(shared4);
    griddep_launch_dependents();
    const Flash flash(args, tiles);
    const int lane = flash.lane, warp = flash.warp;
    griddep_wait();
    flash.load_first_tiles();

    float out[QUERIES][COLUMNS] = {};
    float row_max[QUERIES], row_sum[QUERIES];  // row_sum: this lane's keys only
#pragma unroll
    for (int query = 0; query < QUERIES; ++query) row_max[query] = LOWEST, row_sum[query] = 0.0f;
    for (int key0 = warp * KEYS; key0 < flash.block_keys; key0 += WARPS * KEYS) {
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
            const bool visible = key0 + lane <= flash.query_offset + flash.first_query + query;
            const float scaled = visible ? score[query] * args.scale : LOWEST;
            const float new_max = fmaxf(row_max[query], warp_max(scaled));
            const float rescale = __expf(row_max[query] - new_max);
            const float p = visible ? __expf(scaled - new_max) : 0.0f;
            row_max[query] = new_max;
            row_sum[query] = row_sum[query] * rescale + p;
#pragma unroll
            for (int column = 0; column < COLUMNS; ++column) out[query][column] *= rescale;
            tiles.p[warp][query][lane] = p;
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
                const float4 p = *reinterpret_cast<const float4*>(&tiles.p[warp][query][key]);
                out[query][0] += p.x * value[0].x + p.y * value[1].x + p.z * value[2].x + p.w * value[3].x;
                out[query][1] += p.x * value[0].y + p.y * value[1].y + p.z * value[2].y + p.w * value[3].y;
            }
        }
        flash.load_next_tile(key0);
    }

    __syncthreads();
    Partials& partials = *reinterpret_cast<Partials*>(shared4);
#pragma unroll
    for (int query = 0; query < QUERIES; ++query) {
        const float sum = warp_sum(row_sum[query]);
        *reinterpret_cast<float2*>(&partials.out[warp][query][lane * COLUMNS]) =
            make_float2(out[query][0], out[query][1]);
        if (lane == 0) {
            partials.row_max[warp][query] = row_max[query];
            partials.row_sum[warp][query] = sum;
        }
    }
    __syncthreads();

    merge_partials<D, THREADS>(partials, args, flash.first_query, flash.head, flash.sequence);
}
