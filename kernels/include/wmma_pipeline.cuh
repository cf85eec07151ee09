// A block's ROWS x COLUMNS tile of a product by WMMA, with K staged through a ring of STAGES buffers: STAGES - 1
// copies are in flight while one stage is multiplied. Warps own 32x32 each, COLUMNS / 32 of them across.
#pragma once
#include "staged_tile.cuh"
#include "wmma_tile.cuh"

template <int ROWS, int COLUMNS, int DEPTH, int STAGES>
struct WmmaPipeline {
    static constexpr int WARPS_X = COLUMNS / WarpTile::COLUMNS;
    static constexpr int WARPS = WARPS_X * (ROWS / WarpTile::ROWS);
    static constexpr int THREADS = 32 * WARPS;
    using Stage = StagedTile<ROWS, COLUMNS, DEPTH, THREADS, 4, 8>;
    static constexpr int FLOATS = STAGES * Stage::FLOATS;  // of shared memory
    static_assert(FLOATS >= WARPS * WarpTile::STORE_FLOATS, "the tile is stored through the same memory");

    // Multiplies split `split` of the tile at (row0, column0) and stores it: to args.partial, or with the epilogue if
    // there is one split. A block that uses `shared` for other work afterwards must synchronise first.
    static __device__ __forceinline__ void multiply(const GemmArgs& args, float* shared, int row0, int column0,
                                                    int split) {
        const int warp = threadIdx.x >> 5;
        const int warp_row = warp / WARPS_X * WarpTile::ROWS, warp_column = warp % WARPS_X * WarpTile::COLUMNS;
        const int begin = split_begin(args, split, DEPTH);
        const int steps = (split_begin(args, split + 1, DEPTH) - begin) / DEPTH;

        WarpTile tile;
        tile.clear();
#pragma unroll
        for (int stage = 0; stage < STAGES - 1; ++stage) {
            if (stage < steps)
                Stage::fetch(args, shared + stage * Stage::FLOATS, row0, column0, begin + stage * DEPTH);
            cp_async_commit_group();
        }
        int stage = 0, fetch_stage = STAGES - 1;
#pragma unroll 1
        for (int step = 0; step < steps; ++step) {
            cp_async_wait_group<STAGES - 2>();
            __syncthreads();
            if (step + STAGES - 1 < steps)
                Stage::fetch(args, shared + fetch_stage * Stage::FLOATS, row0, column0,
                             begin + (step + STAGES - 1) * DEPTH);
            cp_async_commit_group();
            float* stage_tiles = shared + stage * Stage::FLOATS;
            tile.mma<DEPTH, Stage::A_LD, Stage::W_LD>(Stage::a_tile(stage_tiles) + warp_row * Stage::A_LD,
                                                      Stage::w_tile(stage_tiles) + warp_column);
            stage = stage + 1 == STAGES ? 0 : stage + 1;
            fetch_stage = fetch_stage + 1 == STAGES ? 0 : fetch_stage + 1;
        }
        __syncthreads();
        tile.store_tile(args, split, shared + warp * WarpTile::STORE_FLOATS, row0 + warp_row, column0 + warp_column);
    }
};
