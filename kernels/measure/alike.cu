// Whether a library's product gives equal rows equal bits: noise that repeats every `period` rows, and the
// comparison of what comes out. An algorithm that divides the inner axis among blocks by where a tile lies
// rounds in another order from tile to tile.

struct AlikeArgs {
    unsigned* data;    // [rows, columns], floats as bits
    unsigned* unlike;  // find_unlike: the largest number of a row whose bits are not those of row % period
    int rows, columns, ld;
    int period;
};

__device__ __forceinline__ unsigned noise(long long index) {
    unsigned long long z = (static_cast<unsigned long long>(index) + 1) * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    // Full mantissas of either sign: sums in another order then differ somewhere.
    return __float_as_uint(static_cast<float>(static_cast<int>(z >> 40) - (1 << 23)) * 0x1p-23f);
}

template <class Each>
__device__ __forceinline__ void each_element(const AlikeArgs& args, Each each) {
    const long long count = static_cast<long long>(args.rows) * args.columns;
    const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride)
        each(static_cast<int>(i / args.columns), static_cast<int>(i % args.columns));
}

extern "C" __global__ void fill_alike(const __grid_constant__ AlikeArgs args) {
    each_element(args, [&](int row, int column) {
        args.data[static_cast<long long>(row) * args.ld + column] =
            noise(static_cast<long long>(row % args.period) * args.columns + column);
    });
}

extern "C" __global__ void find_unlike(const __grid_constant__ AlikeArgs args) {
    each_element(args, [&](int row, int column) {
        const unsigned mine = args.data[static_cast<long long>(row) * args.ld + column];
        if (mine != args.data[static_cast<long long>(row % args.period) * args.ld + column])
            atomicMax(args.unlike, static_cast<unsigned>(row));
    });
}
