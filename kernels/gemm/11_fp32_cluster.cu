// Rung 11 in fp32 on Hopper: 11_fp32_k_major's idea with the partial results added inside a cluster.
// Against 11_fp32_k_major: two changes.
//   - Partial results stay in shared memory, and each block of the cluster, one a split, finishes a share of the
//     tile. There, partial results go through L2, and the block that finishes a tile last reads all of them. So there
//     is no fence, no arrival counter, and no block that adds while the others have left.
//   - The loop reads its operands ahead, quadrant by quadrant, from a ring of four stages (fp32_quadrants.cuh).
// Should be faster for all products of a batch of 1, whose launch is only three or four blocks an SM: 8x8 and 8x6 if
// columns are many, 8x4 for wo and w2.
// Shapes: rows a multiple of 64, columns of 64 (8x6: 48, 8x4: 32), inner of 32, leading dimensions of 4; clusters of
// up to MAX_SPLITS blocks. Row layout. Deterministic: partial results are added in order.
// The ladder uses 8x4; 8x8 and 8x6 are further choices in this rung's menu.
//
// Tile, cluster and threads:
//
//   cluster x of row y owns rows 64y.. and columns 64x.. (8x6: 48x.., 8x4: 32x..) of c
//
//            K  | rank 0 | rank 1 | ... | rank splits - 1 |     one block of the cluster a split of K, in steps of 32
//                   |        |                 |
//               64 x COLUMNS partial tile in the shared memory of each block
//                   |        |                 |
//               rank 0 adds and stores the first 1/splits of the tile's float4s, rank 1 the next, ...
//
//   A block's 128 threads, their accumulators and the order in which they walk K: see fp32_quadrants.cuh.
// arch: 90
#include "cluster.cuh"
#include "epilogue.cuh"
#include "fp32_quadrants.cuh"

constexpr int MAX_SPLITS = 8;
constexpr int UNROLL = 2;  // float4s of the tile that a thread adds in one iteration, all their loads in flight

// Adds the partial tiles of all blocks of the cluster for this block's share of the tile, and stores it. `partial` is
// the partial tile in this block's shared memory.
template <class Tile>
__device__ __forceinline__ void add_partials(const GemmArgs& args, const float* partial, int block_row,
                                             int block_column, int rank) {
    const int share = (Tile::FLOAT4S + args.splits - 1) / args.splits;
    const int end = min(share * (rank + 1), Tile::FLOAT4S);
    bool must_wait = true;
#pragma unroll 1
    for (int next = share * rank + threadIdx.x; next < end || must_wait; next += UNROLL * Tile::THREADS) {
        float4 acc[UNROLL];
        EpilogueOperands operands[UNROLL];
        int row[UNROLL], column[UNROLL], offset[UNROLL];
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) {
            const int index = min(next + i * Tile::THREADS, end - 1);  // beyond the share: its last, not stored
            row[i] = block_row + Tile::float4_row(index), column[i] = block_column + Tile::float4_column(index);
            offset[i] = Tile::float4_offset(index);
            operands[i] = load_epilogue_operands(args, row[i], column[i]);
            acc[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        }
        if (must_wait) cluster_wait_acquire();
        must_wait = false;
        float4 value[MAX_SPLITS][UNROLL] = {};
#pragma unroll
        for (int split = 0; split < MAX_SPLITS; ++split)
            if (split < args.splits)
#pragma unroll
                for (int i = 0; i < UNROLL; ++i) value[split][i] = ld_shared_cluster_float4(partial + offset[i], split);
#pragma unroll
        for (int split = 0; split < MAX_SPLITS; ++split)
#pragma unroll
            for (int i = 0; i < UNROLL; ++i)
                acc[i] = make_float4(acc[i].x + value[split][i].x, acc[i].y + value[split][i].y,
                                     acc[i].z + value[split][i].z, acc[i].w + value[split][i].w);
#pragma unroll
        for (int i = 0; i < UNROLL; ++i)
            if (next + i * Tile::THREADS < end) store_float4(args, acc[i], operands[i], row[i], column[i]);
    }
}

template <int MICRO_COLUMNS>
__device__ __forceinline__ void fp32_cluster(const GemmArgs& args) {
    using Tile = Fp32Quadrants<MICRO_COLUMNS, 4>;
    extern __shared__ float4 shared4[];
    float* const shared = reinterpret_cast<float*>(shared4);
    griddep_launch_dependents();

    const int rank = cluster_ctarank();
    const int block_row = blockIdx.y * Tile::ROWS, block_column = clusterid_x() * Tile::COLUMNS;
    const unsigned all_steps = static_cast<unsigned>(args.inner) / Tile::DEPTH, splits = args.splits;
    const int steps = all_steps / splits, remainder = all_steps % splits;  // the first ranks have one step more
    Tile::multiply(args, shared, block_row, block_column, rank * steps + min(rank, remainder),
                   steps + (rank < remainder));
    cluster_arrive_release();
    add_partials<Tile>(args, shared, block_row, block_column, rank);
    // No block may leave while another one may still read its shared memory.
    cluster_arrive_relaxed();
    cluster_wait_acquire();
}

extern "C" __global__ void __launch_bounds__(128, 3) gemm_fp32_cluster_8x8(const __grid_constant__ GemmArgs args) {
    fp32_cluster<8>(args);
}

extern "C" __global__ void __launch_bounds__(128, 4) gemm_fp32_cluster_8x6(const __grid_constant__ GemmArgs args) {
    fp32_cluster<6>(args);
}

extern "C" __global__ void __launch_bounds__(128, 4) gemm_fp32_cluster_8x4(const __grid_constant__ GemmArgs args) {
    fp32_cluster<4>(args);
}
