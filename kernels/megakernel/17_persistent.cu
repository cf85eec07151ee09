// Rung 17, the whole pass as one cooperative launch: every block stays to the end, a grid barrier follows each
// of the pass's tasks, and work items of a task go round the blocks. What a block does for an item is the code
// of the other rungs: 01_warp_per_row, 14_flash, 12_w2_assault's ring of stages (five here) over WMMA, and
// 09_one_row with its inner axis divided among blocks.
// Against the rung of 110 graph nodes: no launch, and parts of a product are added by the block that comes last
// with its part (fixed order, last_block.cuh) instead of in a launch or behind a barrier of their own.
// The barrier is cooperative groups' own: its word lies in memory that the driver keeps for the launch, so it
// survives workspaces filled with anything, needs no reset, and orders every block's writes before every
// block's reads. Tickets lie in the module for the same reason.
//
// Forecast for the 12-layer model at batch 1 on an H200, which missed: docs/findings.md says why.
//   organisation  88 barriers x 1.27 us (264 blocks) = 112 us, against 110 graph nodes x 1.10 us = 121 us: even.
//   footprint     the merged kernel has 168 registers and 92 KB of stages: 2 blocks or 8 warps an SM (shared
//                 memory limits, registers would allow 3). Alone: layernorm 16 blocks or 64 warps, the gather
//                 8 or 64, one_row 2 or 64, flash 5 or 20, the tile product with three stages 4 or 16.
//   its price     at batch 1 small: a product has at most 264 items anyway, flash 192, layernorm a row a block,
//                 and 264 blocks x 4 stages under way are 19 MB where bandwidth x latency asks for 3.5 MB.
//                 The one-row sites have 2.2 MB in flight: a third slower. From batch 4 on it is paid in full.
//   the rest      a product: 1 us to fill, 0.2 us a step, up to 2 us to add parts: about 17 us a layer for the
//                 four, where the library takes 44 us. So faster at batch 1, were steps as short as that.
// For rows a multiple of 64, d_head 64, d_model and d_ff multiples of 64; folded, fused, pruned plans of two
// layers or more. Transposed weights. Any number of co-resident blocks. Deterministic: parts in order.
// One launch at a time for a loaded module: tickets are shared.
#include <cooperative_groups.h>

#include "embed_element.cuh"
#include "flash.cuh"
#include "last_block.cuh"
#include "layernorm_row.cuh"
#include "one_row.cuh"
#include "stamp.cuh"
#include "wmma_pipeline.cuh"

constexpr int D_HEAD = 64, TILE = 64, DEPTH = 32, STAGES = 5;
constexpr int MAX_ARRIVAL_COUNTERS = 16384;

using Pipeline = WmmaPipeline<TILE, TILE, DEPTH, STAGES>;
constexpr int THREADS = Pipeline::THREADS, WARPS = Pipeline::WARPS;
static_assert(THREADS == flash_shape::THREADS, "one block size serves all");

// Tasks in pass order: a layer's, the pruned last layer's with what follows it, and the one before all.
enum Task {
    LN1, QKV, ATTENTION, WO, LN2, W1, W2,
    LN1_LAST, KV, Q_LAST, ATTENTION_LAST, WO_LAST, LN2_LAST, W1_LAST, W2_LAST, LNF, HEAD,
    EMBED
};
constexpr int A_LAYER = LN1_LAST - LN1, AT_THE_END = EMBED - LN1_LAST;

// One for each result that several blocks compute a part of. Not in a workspace, which may be filled with
// anything: zero when the module is loaded, and zero again after each use.
__device__ unsigned arrival_counters[MAX_ARRIVAL_COUNTERS];

// The layer's own slot of an activation of `width` columns.
template <class Word>
__device__ __forceinline__ Word* slot(const PassArgs& pass, Word* first, int layer, int width) {
    return first + (pass.kept ? static_cast<long long>(layer) * pass.batch * pass.seq * width : 0);
}

__device__ __forceinline__ GemmArgs product_of(const PassArgs& p, Task task, int layer) {
    const int d = p.d_model, ff = p.d_ff, n = p.batch * p.seq, b = p.batch, row = p.seq * d;
    const long long square = static_cast<long long>(layer) * d * d, wide = static_cast<long long>(layer) * d * ff;
    const long long last = row - d;  // from a sequence's first row to its last
    const float *wqkv = p.wqkv + 3 * square, *bqkv = p.bqkv + layer * 3 * d;
    const float *wo = p.wo + square, *bo = p.bo + layer * d;
    const float *w1 = p.w1 + wide, *b1 = p.b1 + layer * ff, *w2 = p.w2 + wide, *b2 = p.b2 + layer * d;
    const float *x = slot(p, p.x, layer, d), *xn1 = slot(p, p.xn1, layer, d), *att = slot(p, p.att, layer, d);
    const float* xn2 = slot(p, p.xn2, layer, d);
    float *qkv = slot(p, p.qkv, layer, 3 * d), *x_mid = slot(p, p.x_mid, layer, d), *h = slot(p, p.h, layer, ff);
    float* x_next = slot(p, p.x, layer + 1, d);
    // a, w, bias, residual, c, partial; rows, columns, inner; lda, ldw, ldr, ldc; relu; splits
    switch (task) {
    case QKV:
        return {xn1, wqkv, bqkv, nullptr, qkv, p.partial, n, 3 * d, d, d, 3 * d, 0, 3 * d, 0, p.splits_qkv};
    case KV:
        return {xn1, wqkv + d, bqkv + d, nullptr, qkv + d, p.partial, n, 2 * d, d, d, 3 * d, 0, 3 * d, 0, p.splits_kv};
    case WO:
        return {att, wo, bo, x, x_mid, p.partial, n, d, d, d, d, d, d, 0, p.splits_wo};
    case W1:
        return {xn2, w1, b1, nullptr, h, p.partial, n, ff, d, d, ff, 0, ff, 1, p.splits_w1};
    case W2:
        return {h, w2, b2, x_mid, x_next, p.partial, n, d, ff, ff, d, d, d, 0, p.splits_w2};
    case Q_LAST:
        return {xn1 + last, wqkv, bqkv, nullptr, p.q_last, p.partial, b, d, d, row, 3 * d, 0, d, 0, p.splits_q_last};
    case WO_LAST:
        return {p.att_last, wo, bo, x + last, p.x_mid_last, p.partial, b, d, d, d, d, row, d, 0, p.splits_wo_last};
    case W1_LAST:
        return {p.xn2_last, w1, b1, nullptr, p.h_last, p.partial, b, ff, d, d, ff, 0, ff, 1, p.splits_w1_last};
    case W2_LAST:
        return {p.h_last, w2, b2, p.x_mid_last, p.x_last, p.partial, b, d, ff, ff, d, d, d, 0, p.splits_w2_last};
    default:  // HEAD
        return {p.xnf, p.whead, p.bhead, nullptr, p.logits, p.partial, b, p.vocab, d, d, p.vocab, 0, p.vocab, 0,
                p.splits_head};
    }
}

__device__ __forceinline__ LayernormArgs layernorm_of(const PassArgs& p, Task task, int layer) {
    const int d = p.d_model, n = p.batch * p.seq, b = p.batch;
    switch (task) {
    case LN2:
        return {slot(p, p.x_mid, layer, d), nullptr, nullptr, slot(p, p.xn2, layer, d), n, d, d, d, p.eps};
    case LN2_LAST:
        return {p.x_mid_last, nullptr, nullptr, p.xn2_last, b, d, d, d, p.eps};
    case LNF:
        return {p.x_last, nullptr, nullptr, p.xnf, b, d, d, d, p.eps};
    default:  // LN1, LN1_LAST
        return {slot(p, p.x, layer, d), nullptr, nullptr, slot(p, p.xn1, layer, d), n, d, d, d, p.eps};
    }
}

__device__ __forceinline__ AttentionArgs attention_of(const PassArgs& p, Task task, int layer) {
    const int d = p.d_model;
    const float* qkv = slot(p, p.qkv, layer, 3 * d);
    const bool all = task == ATTENTION;
    return {all ? qkv : p.q_last, qkv + d, qkv + 2 * d, all ? slot(p, p.att, layer, d) : p.att_last, nullptr,
            p.batch, p.seq, p.heads, D_HEAD, all ? p.seq : 1, all ? 3 * d : d, 3 * d, d, p.scale};
}

// In each of these, work items go round the blocks: right for any number of them.

__device__ __forceinline__ void embed(const EmbedArgs& args) {
    const int elements = args.rows * args.columns;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < elements; i += gridDim.x * THREADS)
        embed_element(args, i / args.columns, i % args.columns);
}

// Rows first go to different blocks, then to a block's other warps: few rows use all SMs.
__device__ __forceinline__ void normalise(const LayernormArgs& args) {
    for (int row = (threadIdx.x >> 5) * gridDim.x + blockIdx.x; row < args.rows; row += gridDim.x * WARPS)
        layernorm_row(args, row);
}

__device__ __forceinline__ void attend(const AttentionArgs& args, float* shared) {
    const int tiles = (args.queries + flash_shape::QUERIES - 1) / flash_shape::QUERIES;
    for (int item = blockIdx.x; item < tiles * args.heads * args.batch; item += gridDim.x) {
        flash<D_HEAD>(args, *reinterpret_cast<FlashTiles<D_HEAD>*>(shared), item % tiles, item / tiles % args.heads,
                      item / tiles / args.heads);
        __syncthreads();
    }
}

// Tiles of one column follow each other, so that a weight read from DRAM serves all of them from L2.
__device__ __forceinline__ void multiply(const GemmArgs& args, float* shared) {
    const int down = args.rows / TILE, tiles = down * (args.columns / TILE);
    for (int item = blockIdx.x; item < tiles * args.splits; item += gridDim.x) {
        const int tile = item % tiles, row0 = tile % down * TILE, column0 = tile / down * TILE;
        Pipeline::multiply(args, shared, row0, column0, item / tiles);
        if (args.splits > 1 && is_last_block(&arrival_counters[tile], args.splits))
            reduce_and_store_tile<TILE, TILE, THREADS>(args, row0, column0);
        __syncthreads();
    }
}

__device__ __forceinline__ void multiply_rows(const GemmArgs& args, float* shared) {
    const int groups = (args.columns + 31) / 32, results = groups * args.rows;
    for (int item = blockIdx.x; item < results * args.splits; item += gridDim.x) {
        const int result = item % results, split = item / results, row = result / groups;
        const int column = result % groups * 32 + (threadIdx.x & 31);
        const bool mine = threadIdx.x < 32 && column < args.columns;
        const int begin = split_begin(args, split, WARPS), end = split_begin(args, split + 1, WARPS);
        float sum = one_row_sum<WARPS, 16>(args, row, column, begin, end, reinterpret_cast<float(*)[32]>(shared));
        bool done = args.splits == 1;
        if (!done) {
            if (mine) partial_tile(args, split)[static_cast<long long>(row) * args.columns + column] = sum;
            done = is_last_block(&arrival_counters[result], args.splits);
            if (done && mine) sum = reduce_partials(args, row, column);
        }
        if (done && mine) store(args, sum, row, column);
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) megakernel(const __grid_constant__ PassArgs pass) {
    extern __shared__ float4 shared4[];
    float* shared = reinterpret_cast<float*>(shared4);
    const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    Stamp* stamp = reinterpret_cast<Stamp*>(pass.stamps);
    const bool stamps = blockIdx.x == 0 && threadIdx.x == 0;
    const int full_layers = pass.layers - 1, count = 1 + full_layers * A_LAYER + AT_THE_END;

    if (stamps) *stamp++ = now();
    for (int i = 0; i < count; ++i) {
        const int layer = i == 0 ? 0 : min((i - 1) / A_LAYER, full_layers);
        const int within = i - 1 - layer * A_LAYER;
        const Task task = i == 0 ? EMBED : static_cast<Task>(layer < full_layers ? within : LN1_LAST + within);
        switch (task) {
        case EMBED:
            embed({pass.tokens, pass.embedding, pass.position, pass.x, pass.batch * pass.seq, pass.seq, pass.d_model,
                   pass.d_model});
            break;
        case LN1: case LN2: case LN1_LAST: case LN2_LAST: case LNF:
            normalise(layernorm_of(pass, task, layer));
            break;
        case ATTENTION: case ATTENTION_LAST:
            attend(attention_of(pass, task, layer), shared);
            break;
        case QKV: case KV: case WO: case W1: case W2:
            multiply(product_of(pass, task, layer), shared);
            break;
        default:
            multiply_rows(product_of(pass, task, layer), shared);
        }
        grid.sync();
        if (stamps) *stamp++ = now();
    }
}
