// Flash attention whose tiles the copy engine brings: what attention/24_flash_tma.cu and attention/29_bf16_flash.cu
// share. A source says by `Products` how its elements are multiplied.
//
// Queries, keys and warps: block (x, y, z) owns queries 16x.. of head y of sequence z
//
//   keys of a round   0.. 16.. 32.. 48.. | 64.. 80.. 96.. 112..     two boxes, a barrier each for keys and for values
//   warp              0   1    2    3      4    5    6    7         lane l: query l / 4 (and + 8), keys l % 4 * 2, + 1
//
// Shared memory: q, keys and values in boxes of 128 bytes of each row, with the 128-byte swizzle; the warps' partial
// results lie over them at the end.
#pragma once
#include "dependent_launch.cuh"
#include "flash_split_kv.cuh"
#include "mma_sync.cuh"
#include "tensor_map.cuh"
#include "wgmma.cuh"

namespace flash_tma {
constexpr int D = 64, QUERIES = 16, KEYS = 16, WARPS = 8, THREADS = 32 * WARPS;
constexpr int ROUND = WARPS * KEYS;      // keys that all warps take at once
constexpr int BOX = 64;                  // keys of a copy
constexpr int BOXES = ROUND / BOX;
constexpr int KEY_FRAGMENTS = KEYS / 8;  // across S
constexpr int COLUMN_FRAGMENTS = D / 8;  // across O

// ROWS rows of a head in shared memory, and the 16 bytes of a row that are its chunk `chunk` of a swizzled row.
template <class Element, int ROWS>
struct Rows {
    static constexpr int COUNT = D * sizeof(Element) / SWIZZLE_ROW_BYTES;  // swizzled rows of each row
    unsigned char bytes[COUNT][ROWS * SWIZZLE_ROW_BYTES];

    __device__ __forceinline__ const void* chunk(int of_row, int row, int chunk) const {
        return bytes[of_row] + swizzle_128b(row, chunk);
    }
};

template <class Element>
struct Tiles {
    Rows<Element, QUERIES> q;
    Rows<Element, BOX> k[BOXES], v[BOXES];
};

using Partials = FlashPartials<WARPS, QUERIES, D + 4>;

template <class Element>
struct Shared {
    union {
        Tiles<Element> tiles;
        Partials partials;  // over the tiles after their last use
    };
    Mbarrier q_full, k_full[BOXES], v_full[BOXES];
};

// Sizes are qualified, since nvcc writes them as they stand here wherever a function takes such an array.
using Scores = float[flash_tma::KEY_FRAGMENTS][4];
using Output = float[flash_tma::COLUMN_FRAGMENTS][4];

// Products: Element; Queries, what a warp holds of its queries; load(queries, q), scores(score, queries, k, first key)
// of one warp's keys, add_values(out, exponentials, v, first key).
template <class Products, class Args>
__device__ __forceinline__ void run(const Args& args) {
    using Element = typename Products::Element;
    constexpr int CHUNKS = Rows<Element, BOX>::COUNT;
    extern __shared__ __align__(SWIZZLE_ATOM_BYTES) unsigned char dynamic[];
    Shared<Element>& shared = *reinterpret_cast<Shared<Element>*>(dynamic);
    const auto& attention = args.attention;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int head = blockIdx.y, sequence = blockIdx.z, first_query = blockIdx.x * QUERIES;
    const int query_offset = attention.seq - attention.queries;  // tokens before the first query
    const int block_keys = min(attention.seq, query_offset + min(first_query + QUERIES, attention.queries));

    auto copy_boxes = [&](Rows<Element, BOX>(&boxes)[BOXES], const TensorMap& map, Mbarrier(&full)[BOXES], int key0) {
#pragma unroll
        for (int i = 0; i < BOXES; ++i) {
            if (key0 + i * BOX >= block_keys) continue;
            mbarrier_arrive_expect_tx(&full[i], sizeof(boxes[i]));
            cp_async_bulk_tensor_4d(&boxes[i], map, key0 + i * BOX, head * CHUNKS, sequence, &full[i]);
        }
    };
    auto copy_keys = [&](int key0) {
        copy_boxes(shared.tiles.k, args.k, shared.k_full, key0);
        copy_boxes(shared.tiles.v, args.v, shared.v_full, key0);
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
        cp_async_bulk_tensor_4d(&shared.tiles.q, args.q, first_query, head * CHUNKS, sequence, &shared.q_full);
        copy_keys(0);
    }

    typename Products::Queries q;
    mbarrier_wait_parity(&shared.q_full, 0);
    Products::load(q, shared.tiles.q, lane);

    const int row = fragment_c_row(lane), pair = fragment_c_column(lane);  // g, 2t
    const int position = query_offset + first_query + row;
    const int box = warp * KEYS / BOX, box_key = warp * KEYS % BOX;  // where this warp's keys lie in a round
    Output out = {};
    float row_max[2] = {LOWEST, LOWEST}, row_sum[2] = {};  // of rows g and g + 8; row_sum: this lane's keys only
    for (int round0 = 0, parity = 0; round0 < block_keys; round0 += ROUND, parity ^= 1) {
        if (round0 > 0) {
            __syncthreads();
            if (threadIdx.x == 0) copy_keys(round0);
        }
        const int key0 = round0 + warp * KEYS;
        if (key0 >= block_keys) continue;

        Scores score;
        mbarrier_wait_parity(&shared.k_full[box], parity);
        Products::scores(score, q, shared.tiles.k[box], box_key, lane);

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
        Scores exponential;
#pragma unroll
        for (int i = 0; i < KEY_FRAGMENTS; ++i) {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                exponential[i][j] = score[i][j] == LOWEST ? 0.0f : __expf(score[i][j] - row_max[j >> 1]);
                row_sum[j >> 1] += exponential[i][j];
            }
        }
        mbarrier_wait_parity(&shared.v_full[box], parity);
        Products::add_values(out, exponential, shared.tiles.v[box], box_key, lane);
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
}  // namespace flash_tma
