// Rung 27: flash attention in which one block has 128 queries of a head, and so all of a sequence of 128 tokens.
// Against 14_flash_tensor: four changes.
//   - Keys and values come from L2 once for 128 queries. There, once for 16, so that a sequence of 128 tokens is read
//     four and a half times.
//   - A warp takes two tiles of 16 queries, one early and one late in the block, whose visible keys add up to the
//     same for all warps; there each of a block's four warps takes a part of the keys, and partial results are merged.
//   - Keys and values are rounded to TF32 once, where they lie in shared memory. There, each time they are loaded, at
//     three instructions a value.
//   - Fragments are loaded 16 bytes a lane, in the order in which the products want them: inner indices and output
//     columns are numbered so, and values of two keys are interleaved when they are rounded. There, values are loaded
//     one word at a time.
// Should be faster for a batch of sequences, whose attention is the time that keys and values take from L2. A single
// sequence has too few blocks: 12 heads on 132 SMs.
// Shapes: d_head 64, any seq, leading dimensions of 4. More than 128 keys are loaded twice, once for each of a warp's
// tiles, and waited for. Operands are rounded to nearest; accumulators and softmax stay fp32. Deterministic.
//
// Queries and warps: block (x, y, z) owns queries 128x.. of head y of sequence z
//
//   queries   0.. 16.. 32.. 48.. 64.. 80.. 96.. 112..    of the block, in tiles of 16
//   warp      0    1    2    3    3    2    1    0        first pass: tiles 0 to 3; second pass: tiles 4 to 7
//
// Shared memory: two buffers of 64 keys and 64 values each, in chunks of 16 bytes. What eight lanes load at once lies in
// all 32 banks:
//
//   key r, 16 chunks                 floats 4c to 4c + 3 at chunk c ^ 4 (r % 2)
//   values 2p and 2p + 1, 32 chunks  columns 2c and 2c + 1, as v[2p][2c] v[2p + 1][2c] v[2p][2c + 1] v[2p + 1][2c + 1],
//                                    at chunk c ^ (p % 4)
//
// Fragments of mma.sync m16n8k8 (mma_sync.cuh), g = lane / 4, t = lane % 4; j = 0..3, h = 0..1:
//
//   S = Q K^T: a lane loads floats 16j + 4t + {0, 1, 2, 3} of rows g and g + 8 of Q and of key g of eight.
//              Step (j, h) takes floats 2h and 2h + 1 of each four: k = t stands for the first, k = t + 4 for the second.
//   O += P V:  k = t stands for key 2t of eight and k = t + 4 for key 2t + 1, which is what the lane holds of P.
//              A lane loads floats 8g + {0, ..., 7} of these two rows of V. Product i takes float i: its column g stands
//              for column 8g + i of O, so that the lane ends with columns 16t to 16t + 15 of rows g and g + 8.
#include "args.cuh"
#include "cp_async.cuh"
#include "dependent_launch.cuh"
#include "mma_sync.cuh"
#include "warp.cuh"

constexpr int D = 64, CHUNKS = D / 4;
constexpr int WARPS = 4, THREADS = 32 * WARPS;
constexpr int TILE = 16, TILES = 2 * WARPS, QUERIES = TILE * TILES;
constexpr int KEYS = 64, BUFFERS = 2;  // of a buffer
constexpr int KEY_FRAGMENTS = KEYS / 8;
constexpr int BUFFER = 2 * KEYS * D;        // floats: keys, then values
constexpr int SWEEP = THREADS / CHUNKS;     // rows that one sweep of the threads covers: the swizzles repeat after them
constexpr int AT_ONCE = 4;                  // rows that a thread rounds with all their loads in flight
constexpr float LOG2_E = 1.4426950408889634f;

__device__ __forceinline__ int key_offset(int row, int chunk) { return row * D + (chunk ^ (row & 1) << 2) * 4; }

__device__ __forceinline__ int value_offset(int pair, int chunk) {
    return KEYS * D + pair * 2 * D + (chunk ^ pair & 3) * 4;
}

// Four floats as operands of a product.
__device__ __forceinline__ void load(unsigned (&values)[4], const float* from) {
    const uint4 loaded = *reinterpret_cast<const uint4*>(from);
    values[0] = loaded.x, values[1] = loaded.y, values[2] = loaded.z, values[3] = loaded.w;
}

// 16 queries of one head by one warp.
struct QueryTile {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    // Where in a buffer this lane's chunks lie of key g, and of values 2t and 2t + 1. Its others lie whole rows or 32
    // floats further.
    const int keys[2] = {key_offset(g, t), key_offset(g, t + 4)};
    const int values[4] = {value_offset(t, g * 4), value_offset(t, g * 4 + 1), value_offset(t, g * 4 + 2),
                           value_offset(t, g * 4 + 3)};

    unsigned q[CHUNKS / 4][2][4];  // step (j, h)
    float out[8][4] = {};          // product i
    float row_max[2] = {LOWEST, LOWEST}, row_sum[2] = {};  // of rows g and g + 8; row_sum: this lane's keys only

    // `scale` turns a product of a query and a key into a power of 2.
    __device__ __forceinline__ void load_queries(const AttentionArgs& args, const float* rows, int first, float scale) {
        const int last = args.queries - 1;  // results of rows beyond it are not stored
        const float* const upper = rows + static_cast<long long>(min(first + g, last)) * args.ldq + t * 4;
        const float* const lower = rows + static_cast<long long>(min(first + g + 8, last)) * args.ldq + t * 4;
#pragma unroll
        for (int j = 0; j < CHUNKS / 4; ++j) {
            unsigned a[2][4];
            load(a[0], upper + j * 16);
            load(a[1], lower + j * 16);
#pragma unroll
            for (int h = 0; h < 2; ++h) {
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    q[j][h][i] = __float_as_uint(__uint_as_float(a[i % 2][2 * h + i / 2]) * scale);
                cvt_rna_tf32(q[j][h]);
            }
        }
    }

    // Goes through the keys of a buffer that begins with key `key0`. `first`: position of the tile's first query.
    __device__ __forceinline__ void attend(const float* buffer, int key0, int first) {
        const int last = first + TILE - 1 - key0;  // key of the buffer that the tile's last query sees last
        float score[KEY_FRAGMENTS][4] = {};
        float buffer_max[2] = {LOWEST, LOWEST};
#pragma unroll
        for (int i = 0; i < KEY_FRAGMENTS; ++i) {
            if (i / 2 * 16 > last) break;
#pragma unroll
            for (int j = 0; j < CHUNKS / 4; ++j) {
                unsigned k[4];
                load(k, buffer + keys[j % 2] + i * 8 * D + j / 2 * 32);
#pragma unroll
                for (int h = 0; h < 2; ++h) mma_m16n8k8_tf32(score[i], q[j][h], k + 2 * h);
            }
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                const bool visible = key0 + i * 8 + t * 2 + c % 2 <= first + g + c / 2 * 8;
                score[i][c] = visible ? score[i][c] : LOWEST;
                buffer_max[c / 2] = fmaxf(buffer_max[c / 2], score[i][c]);
            }
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float new_max = fmaxf(row_max[half], quad_max(buffer_max[half]));
            const float rescale = ex2_approx_ftz(row_max[half] - new_max);
            row_max[half] = new_max;
            row_sum[half] *= rescale;
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                out[i][half * 2] *= rescale;
                out[i][half * 2 + 1] *= rescale;
            }
        }
#pragma unroll
        for (int i = 0; i < KEY_FRAGMENTS; ++i) {
            if (i / 2 * 16 > last) break;
            float weight[4];
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                weight[c] = score[i][c] == LOWEST ? 0.0f : ex2_approx_ftz(score[i][c] - row_max[c / 2]);
                row_sum[c / 2] += weight[c];
            }
            unsigned p[4] = {__float_as_uint(weight[0]), __float_as_uint(weight[2]), __float_as_uint(weight[1]),
                             __float_as_uint(weight[3])};
            cvt_rna_tf32(p);
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                unsigned v[4];
                load(v, buffer + values[c] + i * 8 * D);
                mma_m16n8k8_tf32(out[c * 2], p, v);
                mma_m16n8k8_tf32(out[c * 2 + 1], p, v + 2);
            }
        }
    }

    __device__ __forceinline__ void store(const AttentionArgs& args, float* rows, int first) const {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float factor = 1.0f / quad_sum(row_sum[half]);
            const int row = first + g + half * 8;
            if (row >= args.queries) continue;
            float* const to = rows + static_cast<long long>(row) * args.ldo + t * 16;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int c = half * 2 + i / 2, from = i % 2 * 4;
                *reinterpret_cast<float4*>(to + i * 4) =
                    make_float4(out[from][c] * factor, out[from + 1][c] * factor, out[from + 2][c] * factor,
                                out[from + 3][c] * factor);
            }
        }
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, 3)
    attention_flash_head(const __grid_constant__ AttentionArgs args) {
    extern __shared__ float4 shared4[];
    float* const shared = reinterpret_cast<float*>(shared4);
    griddep_launch_dependents();

    const int head = blockIdx.y, sequence = blockIdx.z, block_query = blockIdx.x * QUERIES;
    const int warp = threadIdx.x / 32;
    const int query_offset = args.seq - args.queries;  // tokens before the first query
    const int block_keys = min(args.seq, query_offset + min(block_query + QUERIES, args.queries));
    const int buffers = (block_keys + KEYS - 1) / KEYS;
    const bool resident = buffers <= BUFFERS;  // both passes find all keys in shared memory
    const float* const q = args.q + static_cast<long long>(sequence) * args.queries * args.ldq + head * D;
    float* const out = args.out + static_cast<long long>(sequence) * args.queries * args.ldo + head * D;

    const int copy_row = threadIdx.x / CHUNKS, copy_chunk = threadIdx.x % CHUNKS;
    const int key_to = key_offset(copy_row, copy_chunk);
    const int value_to[2] = {value_offset(copy_row, copy_chunk * 2), value_offset(copy_row, copy_chunk * 2 + 1)};
    const long long column = static_cast<long long>(sequence) * args.seq * args.ldkv + head * D + copy_chunk * 4;
    auto copy_chunk_of = [&](const float* rows, int key, float* to) {
        const bool inside = key < args.seq;
        cp_async_16_zfill(to, rows + column + static_cast<long long>(inside ? key : 0) * args.ldkv, inside);
    };
    auto copy = [&](float* buffer, int key0) {
#pragma unroll
        for (int i = 0; i < KEYS; i += SWEEP) copy_chunk_of(args.k, key0 + copy_row + i, buffer + key_to + i * D);
#pragma unroll
        for (int i = 0; i < KEYS / 2; i += SWEEP)
#pragma unroll
            for (int j = 0; j < 2; ++j)
                copy_chunk_of(args.v, key0 + (copy_row + i) * 2 + j, buffer + value_to[j] + i * 2 * D);
    };
    // Of what this thread copied itself, so that it need not wait for others.
    auto round_and_interleave = [&](float* buffer) {
        unsigned values[AT_ONCE][4];
#pragma unroll
        for (int i = 0; i < KEYS; i += AT_ONCE * SWEEP) {
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) load(values[j], buffer + key_to + (i + j * SWEEP) * D);
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) {
                cvt_rna_tf32(values[j]);
                *reinterpret_cast<uint4*>(buffer + key_to + (i + j * SWEEP) * D) =
                    make_uint4(values[j][0], values[j][1], values[j][2], values[j][3]);
            }
        }
#pragma unroll
        for (int i = 0; i < KEYS / 2; i += AT_ONCE / 2 * SWEEP) {
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) load(values[j], buffer + value_to[j % 2] + (i + j / 2 * SWEEP) * 2 * D);
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) cvt_rna_tf32(values[j]);
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) {
                const unsigned(&even)[4] = values[j / 2 * 2], (&odd)[4] = values[j / 2 * 2 + 1];
                *reinterpret_cast<uint4*>(buffer + value_to[j % 2] + (i + j / 2 * SWEEP) * 2 * D) =
                    make_uint4(even[j % 2 * 2], odd[j % 2 * 2], even[j % 2 * 2 + 1], odd[j % 2 * 2 + 1]);
            }
        }
    };

    griddep_wait();
    if (resident)
#pragma unroll 1
        for (int i = 0; i < BUFFERS; ++i) {
            if (i < buffers) copy(shared + i * BUFFER, i * KEYS);
            cp_async_commit_group();
        }
#pragma unroll 1
    for (int pass = 0; pass < 2; ++pass) {
        const int first = block_query + (pass == 0 ? warp : TILES - 1 - warp) * TILE;
        QueryTile tile;
        tile.load_queries(args, q, first, args.scale * LOG2_E);
#pragma unroll 1
        for (int i = 0; i < buffers; ++i) {
            float* const buffer = shared + (resident ? i * BUFFER : 0);
            if (!resident || pass == 0) {
                if (!resident) {
                    __syncthreads();  // all have used the buffer
                    copy(buffer, i * KEYS);
                    cp_async_commit_group();
                }
                if (resident && i == 0)
                    cp_async_wait_group<1>();
                else
                    cp_async_wait_group<0>();
                round_and_interleave(buffer);
                __syncthreads();
            }
            if (i * KEYS < query_offset + first + TILE)
                tile.attend(buffer, i * KEYS, query_offset + first);
        }
        tile.store(args, out, first);
    }
}
