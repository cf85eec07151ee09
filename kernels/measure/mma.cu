// Measures the peaks of the warp-level tensor instructions on registers only: mma.sync m16n8k8 in TF32 and m16n8k16 in
// bf16, eight independent accumulators a warp. Operands are random: zeros draw less power and would show a clock that
// no GEMM reaches.
#include "math_probe.cuh"
#include "stamp.cuh"

constexpr int CHAINS = 8;
constexpr int UNROLL = 8;

// Returns the bits of a float in (-1, 1) with a random mantissa.
__device__ __forceinline__ unsigned word_tf32(unsigned seed) {
    return __float_as_uint(static_cast<float>(static_cast<int>(noise(seed))) * (1.0f / 2147483648.0f));
}

// Returns two bf16 in (-1, 1): random sign and mantissa, the exponent of 0.5.
__device__ __forceinline__ unsigned word_bf16(unsigned seed) {
    return (noise(seed) & 0x807f807fu) | 0x3f003f00u;
}

__device__ __forceinline__ void mma_tf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ void mma_bf16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <bool TF32>
__device__ __forceinline__ void loop(const MathArgs& args) {
    const Stamp begin = now();
    const unsigned seed = (blockIdx.x * blockDim.x + threadIdx.x) * 16u;
    unsigned a[2][4], b[4][2];
    float d[CHAINS][4] = {};
#pragma unroll
    for (int i = 0; i < 8; ++i) a[i / 4][i % 4] = TF32 ? word_tf32(seed + i) : word_bf16(seed + i);
#pragma unroll
    for (int i = 0; i < 8; ++i) b[i / 2][i % 2] = TF32 ? word_tf32(seed + 8 + i) : word_bf16(seed + 8 + i);
#pragma unroll 1
    for (int loop = 0; loop < args.loops; ++loop) {
#pragma unroll
        for (int step = 0; step < UNROLL; ++step) {
#pragma unroll
            for (int i = 0; i < CHAINS; ++i) {
                if (TF32) mma_tf32(d[i], a[i / 4], b[i % 4]);
                else mma_bf16(d[i], a[i / 4], b[i % 4]);
            }
        }
    }
    float total = 0.0f;
#pragma unroll
    for (int i = 0; i < CHAINS; ++i) total += d[i][0] + d[i][1] + d[i][2] + d[i][3];
    if (total == 1.2345e38f) args.out[0] = total;
    report(begin, args.elapsed);
}

extern "C" __global__ void __launch_bounds__(512) mma_tf32_loop(const __grid_constant__ MathArgs args) {
    loop<true>(args);
}

extern "C" __global__ void __launch_bounds__(512) mma_bf16_loop(const __grid_constant__ MathArgs args) {
    loop<false>(args);
}
