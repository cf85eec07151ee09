// Fills weights and buffers on the device, so that nothing as large as a model is copied from the host.
//
// fill_weights draws one part of a weight tensor with exactly the values of gputop/model/rng.py: SplitMix64 of (key,
//   index), its top 24 bits centred, times one float scale, rounded once; gains then add 1, rounded once more. It can
//   store the part transposed.
// fold_weights draws a part with a layernorm's gain folded in, and less its mean over each row, since what comes out of
//   a layernorm has mean zero. Computed in double, rounded once; only the mean is rounded by itself.
// fold_bias computes the bias that such a fold adds.
// round_to_bf16 stores floats as bf16, rounded to nearest.
// fill_words writes one bit pattern: zeros, or the gate's poison.
// fill_noise writes random words that are finite and below 1 both as one float and as two bf16: operands to measure a
//   library's peak.

struct FillArgs {
    float* out;          // the tensor's layer, in the plan's layout
    int key_low, key_high;
    int count;           // elements of the part
    int inner;           // row length of the canonical tensor; count for a vector
    int first_row;       // of the part in the tensor
    int rows;            // of the whole tensor
    int transposed;
    int about_one;
    float scale;
};

struct FoldWeightsArgs {
    float* out;          // the tensor's layer, in the plan's layout
    const float* gain;   // [inner]
    int key_low, key_high;
    int inner;
    int first_row;       // of the part in the tensor
    int rows;            // of the whole tensor
    int transposed;
    float scale;
};

struct FoldBiasArgs {
    float* out;           // [rows] of the part
    const float* shift;   // [inner]
    const float* bias;    // [rows] of the part; null if the GEMM has no bias of its own
    int key_low, key_high;
    int rows, inner;
    float scale;
};

struct RoundArgs {
    const float* in;
    unsigned short* out;
    int count_low, count_high;
};

struct FillWordsArgs {
    unsigned* out;
    int count_low, count_high;
    int word;            // the bit pattern; fill_noise: the seed
};

__device__ __forceinline__ unsigned long long join(int low, int high) {
    return (static_cast<unsigned long long>(static_cast<unsigned>(high)) << 32) | static_cast<unsigned>(low);
}

__device__ __forceinline__ float draw(unsigned long long key, unsigned long long index, float scale) {
    unsigned long long z = key + (index + 1) * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    // SplitMix64's last step, z ^= z >> 31, does not change the top 24 bits.
    return __fmul_rn(static_cast<float>(static_cast<int>(z >> 40) - (1 << 23)), scale);
}

// Where an element of a tensor of [rows, inner] is stored.
__device__ __forceinline__ long long stored(int row, int column, int rows, int inner, int transposed) {
    return transposed ? static_cast<long long>(column) * rows + row : static_cast<long long>(row) * inner + column;
}

extern "C" __global__ void fill_weights(const __grid_constant__ FillArgs args) {
    const unsigned long long key = join(args.key_low, args.key_high);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < args.count; i += gridDim.x * blockDim.x) {
        const int row = args.first_row + i / args.inner;
        const int column = i % args.inner;
        float value = draw(key, i, args.scale);
        if (args.about_one) value = __fadd_rn(value, 1.0f);
        args.out[stored(row, column, args.rows, args.inner, args.transposed)] = value;
    }
}

// Sum over the block of 128 threads, in all of them. The order of the tree is fixed, so every run gives the same bits.
__device__ __forceinline__ double block_sum(double value) {
    __shared__ double sums[128];
    sums[threadIdx.x] = value;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    return sums[0];
}

// One block a row of the part.
extern "C" __global__ void fold_weights(const __grid_constant__ FoldWeightsArgs args) {
    const unsigned long long key = join(args.key_low, args.key_high);
    const unsigned long long first = static_cast<unsigned long long>(blockIdx.x) * args.inner;
    auto folded = [&](int column) {
        return static_cast<double>(draw(key, first + column, args.scale)) * args.gain[column];
    };
    double acc = 0.0;
    for (int i = threadIdx.x; i < args.inner; i += blockDim.x) acc += folded(i);
    const float mean = static_cast<float>(block_sum(acc) / args.inner);
    for (int i = threadIdx.x; i < args.inner; i += blockDim.x)
        args.out[stored(args.first_row + blockIdx.x, i, args.rows, args.inner, args.transposed)] =
            static_cast<float>(folded(i) - mean);
}

// One block a row of the part.
extern "C" __global__ void fold_bias(const __grid_constant__ FoldBiasArgs args) {
    const unsigned long long key = join(args.key_low, args.key_high);
    const unsigned long long first = static_cast<unsigned long long>(blockIdx.x) * args.inner;
    double acc = 0.0;
    for (int i = threadIdx.x; i < args.inner; i += blockDim.x) {
        acc += static_cast<double>(draw(key, first + i, args.scale)) * args.shift[i];
    }
    const double carried = block_sum(acc);
    if (threadIdx.x == 0) {
        const double bias = args.bias ? static_cast<double>(args.bias[blockIdx.x]) : 0.0;
        args.out[blockIdx.x] = static_cast<float>(carried + bias);
    }
}

extern "C" __global__ void round_to_bf16(const __grid_constant__ RoundArgs args) {
    const long long count = static_cast<long long>(join(args.count_low, args.count_high));
    const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride)
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(args.out[i]) : "f"(args.in[i]));
}

extern "C" __global__ void fill_words(const __grid_constant__ FillWordsArgs args) {
    const long long count = static_cast<long long>(join(args.count_low, args.count_high));
    const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
        args.out[i] = static_cast<unsigned>(args.word);
    }
}

extern "C" __global__ void fill_noise(const __grid_constant__ FillWordsArgs args) {
    const long long count = static_cast<long long>(join(args.count_low, args.count_high));
    const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
        const unsigned long long bits = (static_cast<unsigned long long>(i) + args.word + 1) * 0x9E3779B97F4A7C15ull;
        const unsigned word = static_cast<unsigned>((bits ^ (bits >> 29)) * 0xBF58476D1CE4E5B9ull >> 32);
        args.out[i] = (word & 0x807f807fu) | 0x3f003f00u;
    }
}
