// Rung 11's candidate in fp32: the arithmetic of 08_sass_fp32 on weights stored [columns, inner].
// Against 08_sass_fp32: both operands lie along the inner axis, so a thread reads four inner indices at once of
// its rows and of its columns, as many loads as there for as many multiply-adds, and each in half the time. Loads
// are under way while sums are taken, in registers that are free. Weights are sent for before the wait for what
// comes before. The block that finishes a tile last adds its parts: no second launch does.
// Should be faster than 08_sass_fp32 by the second launch and by what it waited for shared memory: all products of
// 64 and more rows. 8x8 loads least for what it multiplies; 8x6 and half (8x4) for products with few columns, whose tiles
// would need more parts.
// For rows a multiple of 64, columns of 64 (8x6: 48, half: 32), inner of 32, leading dimensions of 4; at most
// MOST_TILES tiles where split. Row layout. Deterministic: parts are added in order.
// One launch at a time for a loaded module: tickets are shared.
#include "fp32_quadrants.cuh"
#include "last_part.cuh"

constexpr int MOST_TILES = 8192;

__device__ unsigned tickets[MOST_TILES];

__device__ __forceinline__ void add(float4& total, float4 value) {
    total = make_float4(total.x + value.x, total.y + value.y, total.z + value.z, total.w + value.w);
}

template <int MICRO_COLUMNS>
__device__ __forceinline__ void fp32_k_major(const GemmArgs& args) {
    using Tile = Fp32Quadrants<MICRO_COLUMNS, 3>;
    constexpr int EACH = Tile::FOURS / Tile::THREADS;  // fours of columns that are a thread's
    extern __shared__ float4 shared4[];
    float* const shared = reinterpret_cast<float*>(shared4);
    let_next_grid_start();

    const int block_row = blockIdx.y * Tile::ROWS, block_column = blockIdx.x * Tile::COLUMNS;
    const unsigned every = static_cast<unsigned>(args.inner) / Tile::DEPTH, splits = args.splits;
    const int few = every / splits, more = every % splits;  // the first `more` parts have one step more
    const int split = blockIdx.z;
    Tile::multiply(args, shared, block_row, block_column, split * few + min(split, more), few + (split < more));
    __syncthreads();

    float4 total[EACH];
#pragma unroll
    for (int i = 0; i < EACH; ++i)
        total[i] = *reinterpret_cast<const float4*>(shared + Tile::four_place(threadIdx.x + i * Tile::THREADS));
    if (args.splits > 1) {
        const int tile = blockIdx.y * gridDim.x + blockIdx.x;
        float4* const parts =
            reinterpret_cast<float4*>(args.partial) + static_cast<long long>(tile) * args.splits * Tile::FOURS + threadIdx.x;
#pragma unroll
        for (int i = 0; i < EACH; ++i) parts[split * Tile::FOURS + i * Tile::THREADS] = total[i];
        if (!last_part(&tickets[tile], args.splits)) return;
        // Parts come from other SMs: they are read from L2, past an L1 that may hold what lay there before.
#pragma unroll
        for (int i = 0; i < EACH; ++i) total[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 2
        for (int other = 0; other < args.splits; ++other) {
#pragma unroll
            for (int i = 0; i < EACH; ++i) add(total[i], __ldcg(parts + other * Tile::FOURS + i * Tile::THREADS));
        }
    }
    StoreTerms terms[EACH];
    int row[EACH], column[EACH];
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
        const int four = threadIdx.x + i * Tile::THREADS;
        row[i] = block_row + Tile::four_row(four), column[i] = block_column + Tile::four_column(four);
        terms[i] = store_terms(args, row[i], column[i]);
    }
#pragma unroll
    for (int i = 0; i < EACH; ++i) store_4(args, total[i], terms[i], row[i], column[i]);
}

extern "C" __global__ void __launch_bounds__(128, 3) gemm_fp32_k_major_8x8(const __grid_constant__ GemmArgs args) {
    fp32_k_major<8>(args);
}

extern "C" __global__ void __launch_bounds__(128, 4) gemm_fp32_k_major_8x6(const __grid_constant__ GemmArgs args) {
    fp32_k_major<6>(args);
}

extern "C" __global__ void __launch_bounds__(128, 4) gemm_fp32_k_major_half(const __grid_constant__ GemmArgs args) {
    fp32_k_major<4>(args);
}
