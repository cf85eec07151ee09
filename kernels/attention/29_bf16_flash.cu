// Rung 29's attention: 24_flash_tma with queries, keys, values and results in bf16.
// Against it, two changes:
//   - An element is two bytes: a row of a head is one swizzled row of 128 bytes, and a product takes 16 indices at once.
//   - A warp's 16 scores a query are one step of the second product, and lie in its registers as that wants them; values
//     are read by ldmatrix, which transposes, where 24_flash_tma loads single floats.
// Should be faster by half the bytes and fewer than half the instructions; the chain of waits stays: q and k, v, merge.
// Shapes: d_head 64, any seq, leading dimensions of 8. Softmax's weights are rounded to bf16, to nearest, their sum is
// of what they were before; sums and the softmax stay fp32. Deterministic: parts are merged in order.
//
// Queries, keys and warps: block (x, y, z) owns queries 16x.. of head y of sequence z
//
//   keys of a round   0.. 16.. 32.. 48.. | 64.. 80.. 96.. 112..     two boxes, a barrier each for keys and for values
//   warp              0   1    2    3      4    5    6    7         lane l: query l / 4 (and + 8), keys l % 4 * 2, + 1
//
// Shared memory: q, keys and values in boxes of 64 columns, 128-byte rows with the 128-byte swizzle; the warps' partial
// results lie over them at the end.
// arch: 90
#include "bf16.cuh"
#include "dependent_launch.cuh"
#include "flash_split_kv.cuh"
#include "mma_sync.cuh"
#include "tensor_map.cuh"
#include "wgmma.cuh"

constexpr int D = 64, QUERIES = 16, KEYS = 16, WARPS = 8, THREADS = 32 * WARPS;
constexpr int ROUND = WARPS * KEYS;        // keys that all warps take at once
constexpr int BOX = 64;                    // keys of a copy
constexpr int BOXES = ROUND / BOX;
constexpr int K_STEPS = D / 16;            // of S = Q K^T
constexpr int KEY_FRAGMENTS = KEYS / 8;    // across S
constexpr int COLUMN_FRAGMENTS = D / 8;    // across O

using Partials = FlashPartials<WARPS, QUERIES, D + 4>;

struct Tiles {
    Bf16 q[QUERIES][D];
    Bf16 k[BOXES][BOX][D];
    Bf16 v[BOXES][BOX][D];
};

struct Shared {
    union {
        Tiles tiles;
        Partials partials;  // over the tiles after their last use
    };
    Mbarrier q_full, k_full[BOXES], v_full[BOXES];
};

// Elements 8 chunk to 8 chunk + 7 of a row of a swizzled tile.
template <int ROWS>
__device__ __forceinline__ const void* chunk_of(const Bf16 (&tile)[ROWS][D], int row, int chunk) {
    return reinterpret_cast<const char*>(tile) + swizzle_128b(row, chunk);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    attention_bf16_flash(const __grid_constant__ TmaAttentionBf16Args args) {
    extern __shared__ __align__(SWIZZLE_ATOM_BYTES) unsigned char dynamic[];
    Shared& shared = *reinterpret_cast<Shared*>(dynamic);
    const AttentionBf16Args& attention = args.attention;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int head = blockIdx.y, sequence = blockIdx.z, first_query = blockIdx.x * QUERIES;
    const int query_offset = attention.seq - attention.queries;  // tokens before the first query
    const int block_keys = min(attention.seq, query_offset + min(first_query + QUERIES, attention.queries));

    auto copy_keys = [&](int key0) {
#pragma unroll
        for (int i = 0; i < BOXES; ++i) {
            if (key0 + i * BOX >= block_keys) continue;
            mbarrier_arrive_expect_tx(&shared.k_full[i], sizeof(shared.tiles.k[i]));
            cp_async_bulk_tensor_4d(shared.tiles.k[i], args.k, key0 + i * BOX, head, sequence, &shared.k_full[i]);
        }
#pragma unroll
        for (int i = 0; i < BOXES; ++i) {
            if (key0 + i * BOX >= block_keys) continue;
            mbarrier_arrive_expect_tx(&shared.v_full[i], sizeof(shared.tiles.v[i]));
            cp_async_bulk_tensor_4d(shared.tiles.v[i], args.v, key0 + i * BOX, head, sequence, &shared.v_full[i]);
        }
    };

    griddep_launch_dependents();
    if (threadIdx.x == 0) {
        prefetch_tensormap(args.q), prefetch_tensormap(args.k), prefetch_tensormap(args.v);
        mbarrier_init(&shared.q_full, 1);
        for (int i = 0; i < BOXES; ++i) mbarrier_init(&shared.k_full[i], 1), mbarrier_init(&shared.v_full[i], 1);
        fence_mbarrier_init();
    }
    __syncthreads();
    griddep_wait();
    if (threadIdx.x == 0) {
        mbarrier_arrive_expect_tx(&shared.q_full, sizeof(shared.tiles.q));
        cp_async_bulk_tensor_4d(shared.tiles.q, args.q, first_query, head, sequence, &shared.q_full);
        copy_keys(0);
    }

    unsigned q[K_STEPS][4];
    mbarrier_wait_parity(&shared.q_full, 0);
#pragma unroll
    for (int step = 0; step < K_STEPS; ++step)
        ldmatrix_x4(q[step], chunk_of(shared.tiles.q, fragment_a_row(lane), step * 2 + fragment_a_k(lane) / 4));

    const int row = fragment_c_row(lane), pair = fragment_c_column(lane);  // g, 2t
    const int position = query_offset + first_query + row;
    const int box = warp * KEYS / BOX, box_key = warp * KEYS % BOX;  // where this warp's keys lie in a round
    float out[COLUMN_FRAGMENTS][4] = {};
    float row_max[2] = {LOWEST, LOWEST}, row_sum[2] = {};  // of rows g and g + 8; row_sum: this lane's keys only
    for (int round0 = 0, parity = 0; round0 < block_keys; round0 += ROUND, parity ^= 1) {
        if (round0 > 0) {
            __syncthreads();
            if (threadIdx.x == 0) copy_keys(round0);
        }
        const int key0 = round0 + warp * KEYS;
        if (key0 >= block_keys) continue;

        float score[KEY_FRAGMENTS][4] = {};
        mbarrier_wait_parity(&shared.k_full[box], parity);
#pragma unroll
        for (int step = 0; step < K_STEPS; ++step) {
            unsigned k[4];
            ldmatrix_x4(k, chunk_of(shared.tiles.k[box], box_key + fragment_w_column(lane),
                                    step * 2 + fragment_w_k(lane) / 4));
            mma_m16n8k16_bf16(score[0], q[step], k);
            mma_m16n8k16_bf16(score[1], q[step], k + 2);
        }

        float tile_max[2] = {LOWEST, LOWEST};
#pragma unroll
        for (int i = 0; i < KEY_FRAGMENTS; ++i) {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const bool visible = key0 + i * 8 + pair + (j & 1) <= position + (j >> 1) * 8;
                score[i][j] = visible ? score[i][j] * attention.scale : LOWEST;
                tile_max[j >> 1] = fmaxf(tile_max[j >> 1], score[i][j]);
            }
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float new_max = fmaxf(row_max[half], quad_max(tile_max[half]));
            const float rescale = __expf(row_max[half] - new_max);
            row_max[half] = new_max;
            row_sum[half] *= rescale;
#pragma unroll
            for (int i = 0; i < COLUMN_FRAGMENTS; ++i) {
                out[i][half * 2] *= rescale;
                out[i][half * 2 + 1] *= rescale;
            }
        }
        unsigned p[4];  // this warp's 16 keys, in the order of a fragment of A
#pragma unroll
        for (int i = 0; i < KEY_FRAGMENTS; ++i) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                float exponential[2];
#pragma unroll
                for (int j = 0; j < 2; ++j) {
                    const float s = score[i][half * 2 + j];
                    exponential[j] = s == LOWEST ? 0.0f : __expf(s - row_max[half]);
                    row_sum[half] += exponential[j];
                }
                p[i * 2 + half] = cvt_rn_bf16x2(exponential[0], exponential[1]);
            }
        }
        mbarrier_wait_parity(&shared.v_full[box], parity);
        // Keys 0-7 and 8-15 of eight columns, then of the next eight.
        const int key = box_key + fragment_a_row(lane);
#pragma unroll
        for (int i = 0; i < COLUMN_FRAGMENTS; i += 2) {
            unsigned v[4];
            ldmatrix_x4_trans(v, chunk_of(shared.tiles.v[box], key, i + fragment_a_k(lane) / 4));
            mma_m16n8k16_bf16(out[i], p, v);
            mma_m16n8k16_bf16(out[i + 1], p, v + 2);
        }
    }
    row_sum[0] = quad_sum(row_sum[0]);
    row_sum[1] = quad_sum(row_sum[1]);

    __syncthreads();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int i = 0; i < COLUMN_FRAGMENTS; ++i)
            *reinterpret_cast<float2*>(&shared.partials.out[warp][row + half * 8][i * 8 + pair]) =
                make_float2(out[i][half * 2], out[i][half * 2 + 1]);
        if ((lane & 3) == 0) {
            shared.partials.row_max[warp][row + half * 8] = row_max[half];
            shared.partials.row_sum[warp][row + half * 8] = row_sum[half];
        }
    }
    __syncthreads();

    merge_partials<D, THREADS>(shared.partials, attention, first_query, head, sequence);
}
