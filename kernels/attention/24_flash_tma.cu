// Rung 24: flash attention whose tiles the copy engine brings.
// Against 14_flash_tensor, three changes:
//   - One thread asks for boxes of 64 keys and 64 values as soon as the launch ahead has ended; there, all threads copy
//     16 bytes at a time, tile after tile.
//   - Eight warps share the keys, 16 each, so that a sequence of 128 is one round. There, four warps take two.
//   - Operands are read by ldmatrix from swizzled tiles, without bank conflicts.
// Should be faster at batch 1, where a layer's attention is a chain of waits: one for q and k, one for v, one merge.
// `attention_flash_tma_alone` is the same entry with shared memory asked for such that an SM holds one block: 96 blocks
// then spread over 132 SMs, and each has an SM's whole bandwidth.
// Shapes: d_head 64, any seq, leading dimensions of 4. Queries, keys and values are used as stored: the hardware drops
// the bits below TF32. Softmax's weights are rounded to nearest; sums stay fp32. Deterministic: parts are merged in order.
//
// Queries, keys and warps: block (x, y, z) owns queries 16x.. of head y of sequence z
//
//   keys of a round   0.. 16.. 32.. 48.. | 64.. 80.. 96.. 112..     two boxes, a barrier each for keys and for values
//   warp              0   1    2    3      4    5    6    7         lane l: query l / 4 (and + 8), keys l % 4 * 2, + 1
//
// Shared memory: q, keys and values in boxes of 32 columns, 128-byte rows with the 128-byte swizzle; the warps' partial
// results lie over them at the end.
// arch: 90
#include "dependent_launch.cuh"
#include "flash_split_kv.cuh"
#include "mma_sync.cuh"
#include "tensor_map.cuh"
#include "wgmma.cuh"

constexpr int D = 64, QUERIES = 16, KEYS = 16, WARPS = 8, THREADS = 32 * WARPS;
constexpr int ROUND = WARPS * KEYS;        // keys that all warps take at once
constexpr int BOX = 64;                    // keys of a copy
constexpr int BOXES = ROUND / BOX;
constexpr int CHUNK = 32;                  // floats of a swizzled row
constexpr int K_STEPS = D / 8;             // of S = Q K^T
constexpr int KEY_FRAGMENTS = KEYS / 8;    // across S
constexpr int COLUMN_FRAGMENTS = D / 8;    // across O

using Partials = FlashPartials<WARPS, QUERIES, D + 4>;

struct Tiles {
    float q[D / CHUNK][QUERIES][CHUNK];
    float k[BOXES][D / CHUNK][BOX][CHUNK];
    float v[BOXES][D / CHUNK][BOX][CHUNK];
};

struct Shared {
    union {
        Tiles tiles;
        Partials partials;  // over the tiles after their last use
    };
    Mbarrier q_full, k_full[BOXES], v_full[BOXES];
};

// Element (row, 4 chunk + word) of 32 columns of a swizzled tile.
template <int ROWS>
__device__ __forceinline__ const float* element(const float (&tile)[ROWS][CHUNK], int row, int chunk) {
    return reinterpret_cast<const float*>(reinterpret_cast<const char*>(tile) + swizzle_128b(row, chunk));
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    attention_flash_tma(const __grid_constant__ TmaAttentionArgs args) {
    extern __shared__ __align__(SWIZZLE_ATOM_BYTES) unsigned char dynamic[];
    Shared& shared = *reinterpret_cast<Shared*>(dynamic);
    const AttentionArgs& attention = args.attention;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int head = blockIdx.y, sequence = blockIdx.z, first_query = blockIdx.x * QUERIES;
    const int query_offset = attention.seq - attention.queries;  // tokens before the first query
    const int block_keys = min(attention.seq, query_offset + min(first_query + QUERIES, attention.queries));

    auto copy_keys = [&](int key0) {
#pragma unroll
        for (int i = 0; i < BOXES; ++i) {
            if (key0 + i * BOX >= block_keys) continue;
            mbarrier_arrive_expect_tx(&shared.k_full[i], sizeof(shared.tiles.k[i]));
            cp_async_bulk_tensor_4d(shared.tiles.k[i], args.k, key0 + i * BOX, head * (D / CHUNK), sequence,
                                    &shared.k_full[i]);
        }
#pragma unroll
        for (int i = 0; i < BOXES; ++i) {
            if (key0 + i * BOX >= block_keys) continue;
            mbarrier_arrive_expect_tx(&shared.v_full[i], sizeof(shared.tiles.v[i]));
            cp_async_bulk_tensor_4d(shared.tiles.v[i], args.v, key0 + i * BOX, head * (D / CHUNK), sequence,
                                    &shared.v_full[i]);
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
        cp_async_bulk_tensor_4d(shared.tiles.q, args.q, first_query, head * (D / CHUNK), sequence, &shared.q_full);
        copy_keys(0);
    }

    unsigned q[K_STEPS][4];
    mbarrier_wait_parity(&shared.q_full, 0);
#pragma unroll
    for (int step = 0; step < K_STEPS; ++step)
        ldmatrix_x4(q[step], element(shared.tiles.q[step / 4], fragment_a_row(lane), step % 4 * 2 + fragment_a_k(lane) / 4));

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

        float score[2][KEY_FRAGMENTS][4] = {};  // of even and of odd steps: two chains of products beside each other
        mbarrier_wait_parity(&shared.k_full[box], parity);
#pragma unroll
        for (int step = 0; step < K_STEPS; ++step) {
            unsigned k[4];
            ldmatrix_x4(k, element(shared.tiles.k[box][step / 4], box_key + fragment_w_column(lane),
                                   step % 4 * 2 + fragment_w_k(lane) / 4));
            mma_m16n8k8_tf32(score[step % 2][0], q[step], k);
            mma_m16n8k8_tf32(score[step % 2][1], q[step], k + 2);
        }

        float tile_max[2] = {LOWEST, LOWEST};
#pragma unroll
        for (int i = 0; i < KEY_FRAGMENTS; ++i) {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const bool visible = key0 + i * 8 + pair + (j & 1) <= position + (j >> 1) * 8;
                score[0][i][j] = visible ? (score[0][i][j] + score[1][i][j]) * attention.scale : LOWEST;
                tile_max[j >> 1] = fmaxf(tile_max[j >> 1], score[0][i][j]);
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
        unsigned p[KEY_FRAGMENTS][4];
#pragma unroll
        for (int i = 0; i < KEY_FRAGMENTS; ++i) {
            float exponential[4];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                exponential[j] = score[0][i][j] == LOWEST ? 0.0f : __expf(score[0][i][j] - row_max[j >> 1]);
                row_sum[j >> 1] += exponential[j];
            }
            p[i][0] = __float_as_uint(exponential[0]);
            p[i][1] = __float_as_uint(exponential[2]);
            p[i][2] = __float_as_uint(exponential[1]);
            p[i][3] = __float_as_uint(exponential[3]);
            cvt_rna_tf32(p[i]);
        }
        mbarrier_wait_parity(&shared.v_full[box], parity);
#pragma unroll
        for (int i = 0; i < KEY_FRAGMENTS; ++i) {
            const int key = box_key + i * 8 + pair;
#pragma unroll
            for (int j = 0; j < COLUMN_FRAGMENTS; ++j) {
                const auto& tile = shared.tiles.v[box][j / 4];
                const int chunk = j % 4 * 2 + row / 4;
                const unsigned v[2] = {__float_as_uint(element(tile, key, chunk)[row % 4]),
                                       __float_as_uint(element(tile, key + 1, chunk)[row % 4])};
                mma_m16n8k8_tf32(out[j], p[i], v);
            }
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
