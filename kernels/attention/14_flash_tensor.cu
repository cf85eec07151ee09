// Rung 14 on tensor cores, if the plan allows TF32: flash attention whose two products are mma.sync in TF32.
// Against 14_flash_warps: there, each value loaded from shared memory feeds one or two multiply-adds, and shared
// memory's bandwidth binds; here a fragment feeds a 16x8x8 product. A block owns 16 queries of one head, and its four
// warps divide the keys in the same way.
// Should be faster for the same shapes. Attention of one query fills only one row of sixteen.
// Shapes: d_head 64, any seq, leading dimensions of 4. Operands are rounded to nearest; accumulators and softmax stay
// fp32. Deterministic.
//
// Queries, keys, warps and lanes (g = lane / 4, t = lane % 4):
//
//   block (x, y, z) owns queries 16x.. of head y of sequence z; warp w takes keys 32w.. to 32w + 31, then the tile 128
//   keys further, and so on (flash_split_kv.cuh)
//
//   S = Q K^T, 16x32: 4 fragments of 16x8,         O += P V, 16x64: 8 fragments of 16x8, K = 32 keys in 4 steps
//   K = d_head in 8 steps
//                 key  2t      2t + 1                             column  2t     2t + 1
//   query g       score[.][0]  score[.][1]         query g        out[.][0]      out[.][1]
//   query g + 8   score[.][2]  score[.][3]         query g + 8    out[.][2]      out[.][3]
//
//   P = exp(S - row_max) is the A operand of the second product. There a lane must hold k = t and t + 4, but it has
//   keys 2t and 2t + 1: so k = t stands for key 2t and k = t + 4 for key 2t + 1, in P and in V alike, and P never
//   leaves its registers.
#include "dependent_launch.cuh"
#include "flash_split_kv.cuh"
#include "mma_sync.cuh"

constexpr int D = 64, QUERIES = 16, KEYS = 32, WARPS = 4, THREADS = 32 * WARPS;
constexpr int K_STEPS = D / 8;             // of S = Q K^T
constexpr int KEY_FRAGMENTS = KEYS / 8;    // across S
constexpr int COLUMN_FRAGMENTS = D / 8;    // across O

using Flash = FlashSplitKv<D, QUERIES, KEYS, WARPS>;
using Partials = FlashPartials<WARPS, QUERIES, Flash::LD>;  // lies over the tiles after their last use

extern "C" __global__ void __launch_bounds__(THREADS, 2)
    attention_flash_tensor(const __grid_constant__ AttentionArgs args) {
    extern __shared__ float4 shared4[];
    griddep_launch_dependents();
    griddep_wait();
    Flash::Tiles& tiles = *reinterpret_cast<Flash::Tiles*>(shared4);
    const Flash flash(args, tiles);
    const int lane = flash.lane, warp = flash.warp;
    flash.load_first_tiles();

    unsigned q[K_STEPS][4];
#pragma unroll
    for (int step = 0; step < K_STEPS; ++step) {
        ldmatrix_x4(q[step], &tiles.q[fragment_a_row(lane)][fragment_a_k(lane) + step * 8]);
        cvt_rna_tf32(q[step]);
    }

    const int row = fragment_c_row(lane), pair = fragment_c_column(lane);  // g, 2t
    const int position = flash.query_offset + flash.first_query + row;
    float out[COLUMN_FRAGMENTS][4] = {};
    float row_max[2] = {LOWEST, LOWEST}, row_sum[2] = {};  // of rows g and g + 8; row_sum: this lane's keys only
    for (int key0 = warp * KEYS; key0 < flash.block_keys; key0 += WARPS * KEYS) {
        float score[KEY_FRAGMENTS][4] = {};
#pragma unroll
        for (int step = 0; step < K_STEPS; ++step) {
#pragma unroll
            for (int i = 0; i < KEY_FRAGMENTS; i += 2) {
                unsigned k[4];
                ldmatrix_x4(k, &tiles.k[warp][fragment_w_column(lane) + i * 8][fragment_w_k(lane) + step * 8]);
                cvt_rna_tf32(k);
                mma_m16n8k8_tf32(score[i], q[step], k);
                mma_m16n8k8_tf32(score[i + 1], q[step], k + 2);
            }
        }

        float tile_max[2] = {LOWEST, LOWEST};
#pragma unroll
        for (int i = 0; i < KEY_FRAGMENTS; ++i) {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const bool visible = key0 + i * 8 + pair + (j & 1) <= position + (j >> 1) * 8;
                score[i][j] = visible ? score[i][j] * args.scale : LOWEST;
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
        unsigned p[KEY_FRAGMENTS][4];
#pragma unroll
        for (int i = 0; i < KEY_FRAGMENTS; ++i) {
            float exponential[4];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                exponential[j] = score[i][j] == LOWEST ? 0.0f : __expf(score[i][j] - row_max[j >> 1]);
                row_sum[j >> 1] += exponential[j];
            }
            p[i][0] = __float_as_uint(exponential[0]);
            p[i][1] = __float_as_uint(exponential[2]);
            p[i][2] = __float_as_uint(exponential[1]);
            p[i][3] = __float_as_uint(exponential[3]);
            cvt_rna_tf32(p[i]);
        }
#pragma unroll
        for (int i = 0; i < KEY_FRAGMENTS; ++i) {
            const float* v_row = &tiles.v[warp][i * 8 + pair][row];  // key 2t; key 2t + 1 is the next row
#pragma unroll
            for (int j = 0; j < COLUMN_FRAGMENTS; ++j) {
                unsigned v[2] = {__float_as_uint(v_row[j * 8]), __float_as_uint(v_row[Flash::LD + j * 8])};
                cvt_rna_tf32(v);
                mma_m16n8k8_tf32(out[j], p[i], v);
            }
        }
        flash.load_next_tile(key0);
    }
    row_sum[0] = quad_sum(row_sum[0]);
    row_sum[1] = quad_sum(row_sum[1]);

    __syncthreads();
    Partials& partials = *reinterpret_cast<Partials*>(shared4);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int i = 0; i < COLUMN_FRAGMENTS; ++i)
            *reinterpret_cast<float2*>(&partials.out[warp][row + half * 8][i * 8 + pair]) =
                make_float2(out[i][half * 2], out[i][half * 2 + 1]);
        if ((lane & 3) == 0) {
            partials.row_max[warp][row + half * 8] = row_max[half];
            partials.row_sum[warp][row + half * 8] = row_sum[half];
        }
    }
    __syncthreads();

    merge_partials<D, THREADS>(partials, args, flash.first_query, flash.head, flash.sequence);
}
