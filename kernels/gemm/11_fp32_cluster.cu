// Rung 11's candidate in fp32 on Hopper: 11_fp32_k_major's products with their parts added inside a cluster.
// Against 11_fp32_k_major: there parts go through L2, and the block that finishes a tile last reads them all. Here
// they stay in shared memory, where the blocks of a cluster, one a part, each finish a share of the tile: no fence,
// no ticket, no block that adds while others have left.
// Should be faster for all products of a batch of 1, where three or four blocks an SM make up the whole launch: 8x8
// and 8x6 where columns are many, 8x4 for wo and w2.
// For rows a multiple of 64, columns of 64 (8x6: 48, 8x4: 32), inner of 32, leading dimensions of 4; clusters of up
// to MOST_PARTS. Row layout. Deterministic: parts are added in order.
// arch: 90
#include "cluster.cuh"
#include "fp32_quadrants.cuh"
#include "epilogue.cuh"

constexpr int MAX_SPLITS = 8;
constexpr int TURNS = 2;  // fours of columns that a thread finishes at once, all parts' loads under way

// Each block of the cluster finishes a share of the tile whose parts lie at `part` in each.
template <class Tile>
__device__ __forceinline__ void add_parts(const GemmArgs& args, const float* part, int block_row, int block_column,
                                          int rank) {
    const int share = (Tile::FOURS + args.splits - 1) / args.splits;
    const int last = min(share * (rank + 1), Tile::FOURS);
    bool waiting = true;
#pragma unroll 1
    for (int next = share * rank + threadIdx.x; next < last || waiting; next += TURNS * Tile::THREADS) {
        float4 total[TURNS];
        EpilogueOperands terms[TURNS];
        int row[TURNS], column[TURNS], place[TURNS];
#pragma unroll
        for (int t = 0; t < TURNS; ++t) {
            const int four = min(next + t * Tile::THREADS, last - 1);  // beyond the share: its last, and not stored
            row[t] = block_row + Tile::four_row(four), column[t] = block_column + Tile::four_column(four);
            place[t] = Tile::four_place(four);
            terms[t] = load_epilogue_operands(args, row[t], column[t]);
            total[t] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        }
        if (waiting) cluster_wait_acquire();
        waiting = false;
        float4 value[MAX_SPLITS][TURNS] = {};
#pragma unroll
        for (int other = 0; other < MAX_SPLITS; ++other)
            if (other < args.splits)
#pragma unroll
                for (int t = 0; t < TURNS; ++t) value[other][t] = ld_shared_cluster_float4(part + place[t], other);
#pragma unroll
        for (int other = 0; other < MAX_SPLITS; ++other)
#pragma unroll
            for (int t = 0; t < TURNS; ++t)
                total[t] = make_float4(total[t].x + value[other][t].x, total[t].y + value[other][t].y,
                                       total[t].z + value[other][t].z, total[t].w + value[other][t].w);
#pragma unroll
        for (int t = 0; t < TURNS; ++t)
            if (next + t * Tile::THREADS < last) store_float4(args, total[t], terms[t], row[t], column[t]);
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
    const unsigned every = static_cast<unsigned>(args.inner) / Tile::DEPTH, splits = args.splits;
    const int few = every / splits, more = every % splits;  // the first `more` parts have one step more
    Tile::multiply(args, shared, block_row, block_column, rank * few + min(rank, more), few + (rank < more));
    cluster_arrive_release();
    add_parts<Tile>(args, shared, block_row, block_column, rank);
    // No block leaves while another may still read its shared memory.
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
