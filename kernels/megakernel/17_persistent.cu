// Rung 17, the whole pass as one cooperative launch: every block stays until the end, a grid barrier follows each task
// of the pass, and the blocks take the work items of a task in turn. For an item a block runs the code of other rungs:
// 01_warp_per_row, 14_flash, 12_w2_assault's ring of stages (five here) over WMMA, and 09_one_row with its inner axis
// divided among blocks.
// Against the captured graph of 110 launches: there are no launches, and the block that finishes a result last adds its
// partial results (last_block.cuh); there, a launch of its own adds them.
// Should be faster if a grid barrier costs less than the launch that it replaces, and the one footprint of all tasks
// does not cost more than that. The forecast is beside the rung, in phases/rungs_cuda.py.
// Shapes: rows a multiple of 64, d_head 64, d_model and d_ff multiples of 64; folded, fused, pruned plans of two layers
// or more. Transposed weights. Any number of co-resident blocks. Deterministic: partial results are added in order.
// A loaded module may have only one launch at a time, because its launches share the arrival counters.
//
// The grid barrier is that of cooperative groups. Its state lies in memory that the driver keeps for the launch, so
// poisoned workspaces cannot harm it, it needs no reset, and it orders all writes before it and all reads after it.
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
static_assert(THREADS == flash_shape::THREADS, "all tasks have the same block size");

// Tasks in the order of the pass: those of a whole layer, those of the pruned last layer and what follows it, and the
// one before all layers.
enum Task {
    LN1, QKV, ATTENTION, WO, LN2, W1, W2,
    LN1_LAST, KV, Q_LAST, ATTENTION_LAST, WO_LAST, LN2_LAST, W1_LAST, W2_LAST, LNF, HEAD,
    EMBED
};
constexpr int TASKS_OF_A_LAYER = LN1_LAST - LN1, TASKS_AT_THE_END = EMBED - LN1_LAST;

// One for each result that several blocks share. They are zero when the module is loaded and zero again after each use;
// a workspace would not do, because the gate fills workspaces with poison.
__device__ unsigned arrival_counters[MAX_ARRIVAL_COUNTERS];

// Where this layer's activation of `width` columns lies, if those of layer 0 lie at `first`.
template <class Word>
__device__ __forceinline__ Word* slot(const PassArgs& pass, Word* first, int layer, int width) {
    return first + (pass.keep_layers ? static_cast<long long>(layer) * pass.batch * pass.seq * width : 0);
}

__device__ __forceinline__ GemmArgs gemm_args(const PassArgs& p, Task task, int layer) {
    const int d = p.d_model, ff = p.d_ff, n = p.batch * p.seq, b = p.batch, row = p.seq * d;
    const long long square = static_cast<long long>(layer) * d * d, wide = static_cast<long long>(layer) * d * ff;
    const long long last = row - d;  // offset from a sequence's first row to its last
    const float *wqkv = p.wqkv + 3 * square, *bqkv = p.bqkv + layer * 3 * d;
    const float *wo = p.wo + square, *bo = p.bo + layer * d;
    const float *w1 = p.w1 + wide, *b1 = p.b1 + layer * ff, *w2 = p.w2 + wide, *b2 = p.b2 + layer * d;
    const float *x = slot(p, p.x, layer, d), *xn1 = slot(p, p.xn1, layer, d), *att = slot(p, p.att, layer, d);
    const float* xn2 = slot(p, p.xn2, layer, d);
    float *qkv = slot(p, p.qkv, layer, 3 * d), *x_mid = slot(p, p.x_mid, layer, d), *h = slot(p, p.h, layer, ff);
    float* x_next = slot(p, p.x, layer + 1, d);
    // a, w, bias, residual, c, partial; rows, columns, inner; lda, ldw, ldr, ldc; activate; splits
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

__device__ __forceinline__ LayernormArgs layernorm_args(const PassArgs& p, Task task, int layer) {
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

__device__ __forceinline__ AttentionArgs attention_args(const PassArgs& p, Task task, int layer) {
    const int d = p.d_model;
    const float* qkv = slot(p, p.qkv, layer, 3 * d);
    const bool all = task == ATTENTION;
    return {all ? qkv : p.q_last, qkv + d, qkv + 2 * d, all ? slot(p, p.att, layer, d) : p.att_last, nullptr,
            p.batch, p.seq, p.heads, D_HEAD, all ? p.seq : 1, all ? 3 * d : d, 3 * d, d, p.scale};
}

// In each of these functions the blocks take work items in turn, so any number of blocks is correct.

__device__ __forceinline__ void embed(const EmbedArgs& args) {
    const int elements = args.rows * args.columns;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < elements; i += gridDim.x * THREADS)
        embed_element(args, i / args.columns, i % args.columns);
}

// Rows go first to different blocks, then to the other warps of a block, so that few rows still use all SMs.
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

// Items follow each other down a column of tiles, so that a weight is read from DRAM once and then served from L2.
__device__ __forceinline__ void multiply(const GemmArgs& args, float* shared) {
    const int tiles_y = args.rows / TILE, tiles = tiles_y * (args.columns / TILE);
    for (int item = blockIdx.x; item < tiles * args.splits; item += gridDim.x) {
        const int tile = item % tiles, row0 = tile % tiles_y * TILE, column0 = tile / tiles_y * TILE;
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
        const bool has_result = threadIdx.x < 32 && column < args.columns;
        const int begin = split_begin(args, split, WARPS), end = split_begin(args, split + 1, WARPS);
        float acc = one_row_sum<WARPS, 16>(args, row, column, begin, end, reinterpret_cast<float(*)[32]>(shared));
        bool complete = args.splits == 1;
        if (!complete) {
            if (has_result) partial_tile(args, split)[static_cast<long long>(row) * args.columns + column] = acc;
            complete = is_last_block(&arrival_counters[result], args.splits);
            if (complete && has_result) acc = reduce_partials(args, row, column);
        }
        if (complete && has_result) store(args, acc, row, column);
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) megakernel(const __grid_constant__ PassArgs pass) {
    extern __shared__ float4 shared4[];
    float* shared = reinterpret_cast<float*>(shared4);
    const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    Stamp* stamp = reinterpret_cast<Stamp*>(pass.stamps);
    const bool stamps = blockIdx.x == 0 && threadIdx.x == 0;
    const int full_layers = pass.layers - 1, count = 1 + full_layers * TASKS_OF_A_LAYER + TASKS_AT_THE_END;

    if (stamps) *stamp++ = now();
    for (int i = 0; i < count; ++i) {
        const int layer = i == 0 ? 0 : min((i - 1) / TASKS_OF_A_LAYER, full_layers);
        const int within = i - 1 - layer * TASKS_OF_A_LAYER;
        const Task task = i == 0 ? EMBED : static_cast<Task>(layer < full_layers ? within : LN1_LAST + within);
        switch (task) {
        case EMBED:
            embed({pass.tokens, pass.embedding, pass.position, pass.x, pass.batch * pass.seq, pass.seq, pass.d_model,
                   pass.d_model});
            break;
        case LN1: case LN2: case LN1_LAST: case LN2_LAST: case LNF:
            normalise(layernorm_args(pass, task, layer));
            break;
        case ATTENTION: case ATTENTION_LAST:
            attend(attention_args(pass, task, layer), shared);
            break;
        case QKV: case KV: case WO: case W1: case W2:
            multiply(gemm_args(pass, task, layer), shared);
            break;
        default:
            multiply_rows(gemm_args(pass, task, layer), shared);
        }
        grid.sync();
        if (stamps) *stamp++ = now();
    }
}
