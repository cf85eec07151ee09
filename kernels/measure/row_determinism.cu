// Does a library's product give equal rows equal bits? fill_repeating writes noise that repeats every `period` rows,
// and find_mismatch compares the rows of the product. An algorithm that divides the inner axis among blocks by the
// position of a tile adds in a different order from tile to tile, and so rounds differently.

struct RowDeterminismArgs {
    unsigned* data;       // [rows, columns], floats as bits
    unsigned* mismatch;   // find_mismatch: the last row whose bits differ from those of row % period; else unchanged
    int rows, columns, ld;
    int period;
};

__device__ __forceinline__ unsigned noise(long long index) {
    unsigned long long z = (static_cast<unsigned long long>(index) + 1) * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    // Full mantissas of both signs, so that sums in a different order differ somewhere.
    return __float_as_uint(static_cast<float>(static_cast<int>(z >> 40) - (1 << 23)) * 0x1p-23f);
}

// Calls function(row, column) for every element, the grid's threads in turn.
template <class Function>
__device__ __forceinline__ void for_each_element(const RowDeterminismArgs& args, Function function) {
    const long long count = static_cast<long long>(args.rows) * args.columns;
    const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride)
        function(static_cast<int>(i / args.columns), static_cast<int>(i % args.columns));
}

extern "C" __global__ void fill_repeating(const __grid_constant__ RowDeterminismArgs args) {
    for_each_element(args, [&](int row, int column) {
        args.data[static_cast<long long>(row) * args.ld + column] =
            noise(static_cast<long long>(row % args.period) * args.columns + column);
    });
}

extern "C" __global__ void find_mismatch(const __grid_constant__ RowDeterminismArgs args) {
    for_each_element(args, [&](int row, int column) {
        const unsigned bits = args.data[static_cast<long long>(row) * args.ld + column];
        if (bits != args.data[static_cast<long long>(row % args.period) * args.ld + column])
            atomicMax(args.mismatch, static_cast<unsigned>(row));
    });
}
