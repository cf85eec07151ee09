// c = a w^T + bias, then the model's activation, then + residual: a tile of 16 x 16 outputs a block, one output a thread.
// Start here: it is right for all shapes and slow. `store` of epilogue.cuh writes bias, activation and residual.
#include "epilogue.cuh"

constexpr int TILE = 16;  // as tile, block and grid of the record say
constexpr bool W_BY_ROWS = @W_BY_ROWS@;  // layout of the record: "row" is w as [columns, inner], else [inner, columns]

extern "C" __global__ void __launch_bounds__(TILE * TILE) @ENTRY@(const __grid_constant__ GemmArgs args) {
    __shared__ float a[TILE][TILE], w[TILE][TILE + 1];  // [row][k] and [k][column]
    const int x = threadIdx.x, y = threadIdx.y;
    const int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float acc = 0.0f;
    for (int begin = 0; begin < args.inner; begin += TILE) {
        const int k = begin + x;
        a[y][x] = row < args.rows && k < args.inner ? args.a[static_cast<long long>(row) * args.lda + k] : 0.0f;
        // Neighbouring threads read neighbouring words of w, whichever way it lies.
        if (W_BY_ROWS) {
            const int n = blockIdx.x * TILE + y;
            w[x][y] =
                n < args.columns && k < args.inner ? args.w[static_cast<long long>(n) * args.ldw + k] : 0.0f;
        } else {
            const int deep = begin + y;
            w[y][x] = column < args.columns && deep < args.inner
                          ? args.w[static_cast<long long>(deep) * args.ldw + column]
                          : 0.0f;
        }
        __syncthreads();
        for (int i = 0; i < TILE; ++i) acc += a[y][i] * w[i][x];
        __syncthreads();
    }
    if (row < args.rows && column < args.columns) store(args, acc, row, column);
}
