// Rung 14 on tensor cores: flash attention whose two products are mma.sync in TF32.
// Against 14_flash: there, each value loaded from shared memory feeds one or two multiply-adds, and shared
// memory's bandwidth binds; here a fragment feeds a 16x8x8 product. A block owns 16 queries of one head; its
// four warps take the key tiles in turn, each with its own running maximum, and are merged in their order.
// Should be faster for the same shapes; attention of one query has only one row of sixteen to fill.
// For d_head 64, any seq, leading dimensions of 4, plans that allow TF32. Operands are rounded to nearest,
// sums and softmax stay fp32. Deterministic.
#include "dependent_launch.cuh"
#include "flash_split_kv.cuh"
#include "mma_sync.cuh"

constexpr int D = 64, QUERIES = 16, KEYS = 32, WARPS = 4, THREADS = 32 * WARPS;
constexpr int LD = D + 4;        // spreads the rows that a fragment load touches over all banks
constexpr int CHUNKS = D / 4;    // 16-byte chunks in a row
constexpr int DEPTHS = D / 8;    // products along d_head
constexpr int KEY_GROUPS = KEYS / 8;
constexpr int COLUMN_GROUPS = D / 8;

struct Tiles {
    float q[QUERIES][LD];
    float k[WARPS][KEYS][LD];
    float v[WARPS][KEYS][LD];
};

using Parts = FlashParts<WARPS, QUERIES, LD>;  // lies over the tiles once they are used

// Larger of a value among the four lanes that share a row of a result.
__device__ __forceinline__ float row_max(float value) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 1));
    return fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 2));
}

__device__ __forceinline__ float row_sum(float value) {
    value += __shfl_xor_sync(0xffffffffu, value, 1);
    return value + __shfl_xor_sync(0xffffffffu, value, 2);
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
    attention_flash_tensor(const __grid_constant__ AttentionArgs args) {
    extern __shared__ float4 shared4[];
    griddep_launch_dependents();
    griddep_wait();
    Tiles& tiles = *reinterpret_cast<Tiles*>(shared4);
    const int head = blockIdx.y, sequence = blockIdx.z;
    const int first_query = blockIdx.x * QUERIES;
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
    for (int i = threadIdx.x; i < QUERIES * CHUNKS; i += THREADS)
        copy_row_chunk(tiles.q[i / CHUNKS], q, first_query + i / CHUNKS, args.ldq, args.queries, i % CHUNKS);
    if (warp * KEYS < block_keys) fetch(warp * KEYS);
    cp_async_commit_group();
    cp_async_wait_group<0>();
    __syncthreads();

    unsigned queries[DEPTHS][4];
#pragma unroll
    for (int depth = 0; depth < DEPTHS; ++depth) {
        ldmatrix_x4(queries[depth], &tiles.q[fragment_a_row(lane)][fragment_a_k(lane) + depth * 8]);
        cvt_rna_tf32(queries[depth]);
    }

    // A lane holds columns 2c and 2c+1 of rows r and r+8 of every 16x8 result.
    const int row = fragment_c_row(lane), pair = fragment_c_column(lane);
    const int position = skipped + first_query + row;
    float out[COLUMN_GROUPS][4] = {};
    float peak[2] = {LOWEST, LOWEST}, sum[2] = {};
    for (int key0 = warp * KEYS; key0 < block_keys; key0 += WARPS * KEYS) {
        float score[KEY_GROUPS][4] = {};
#pragma unroll
        for (int depth = 0; depth < DEPTHS; ++depth) {
#pragma unroll
            for (int group = 0; group < KEY_GROUPS; group += 2) {
                unsigned keys[4];
                ldmatrix_x4(keys, &tiles.k[warp][fragment_w_column(lane) + group * 8]
                                             [fragment_w_k(lane) + depth * 8]);
                cvt_rna_tf32(keys);
                mma_m16n8k8_tf32(score[group], queries[depth], keys);
                mma_m16n8k8_tf32(score[group + 1], queries[depth], keys + 2);
            }
        }

        float tile_peak[2] = {LOWEST, LOWEST};
#pragma unroll
        for (int group = 0; group < KEY_GROUPS; ++group) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const bool seen = key0 + group * 8 + pair + (i & 1) <= position + (i >> 1) * 8;
                score[group][i] = seen ? score[group][i] * args.scale : LOWEST;
                tile_peak[i >> 1] = fmaxf(tile_peak[i >> 1], score[group][i]);
            }
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float new_peak = fmaxf(peak[half], row_max(tile_peak[half]));
            const float shrink = __expf(peak[half] - new_peak);
            peak[half] = new_peak;
            sum[half] *= shrink;
#pragma unroll
            for (int group = 0; group < COLUMN_GROUPS; ++group) {
                out[group][half * 2] *= shrink;
                out[group][half * 2 + 1] *= shrink;
            }
        }
        unsigned weights[KEY_GROUPS][4];
#pragma unroll
        for (int group = 0; group < KEY_GROUPS; ++group) {
            float weight[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                weight[i] = score[group][i] == LOWEST ? 0.0f : __expf(score[group][i] - peak[i >> 1]);
                sum[i >> 1] += weight[i];
            }
            // As an operand, inner index c stands for key 2c and c + 4 for key 2c + 1: what this lane holds.
            weights[group][0] = __float_as_uint(weight[0]);
            weights[group][1] = __float_as_uint(weight[2]);
            weights[group][2] = __float_as_uint(weight[1]);
            weights[group][3] = __float_as_uint(weight[3]);
            cvt_rna_tf32(weights[group]);
        }
#pragma unroll
        for (int group = 0; group < KEY_GROUPS; ++group) {
            const float* values = &tiles.v[warp][group * 8 + pair][row];
#pragma unroll
            for (int column = 0; column < COLUMN_GROUPS; ++column) {
                unsigned value[2] = {__float_as_uint(values[column * 8]), __float_as_uint(values[LD + column * 8])};
                cvt_rna_tf32(value);
                mma_m16n8k8_tf32(out[column], weights[group], value);
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
    sum[0] = row_sum(sum[0]);
    sum[1] = row_sum(sum[1]);

    __syncthreads();
    Parts& parts = *reinterpret_cast<Parts*>(shared4);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int column = 0; column < COLUMN_GROUPS; ++column)
            *reinterpret_cast<float2*>(&parts.out[warp][row + half * 8][column * 8 + pair]) =
                make_float2(out[column][half * 2], out[column][half * 2 + 1]);
        if ((lane & 3) == 0) {
            parts.peak[warp][row + half * 8] = peak[half];
            parts.sum[warp][row + half * 8] = sum[half];
        }
    }
    __syncthreads();

    merge_parts<D, THREADS>(parts, args, first_query, head, sequence);
}
