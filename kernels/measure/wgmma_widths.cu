// Measures the rate of TF32 wgmma by the width of the product: m64nNk8 with A in shared memory and with A in registers,
// two warpgroups a block. A narrow product reads 64 rows of A for few columns, so that it can't fill the pipe.
// As in wgmma.cu, tiles are K-major with the 128-byte swizzle and random, and the same for every step of K.
// arch: 90a
#include "math_probe.cuh"
#include "stamp.cuh"
#include "wgmma.cuh"

constexpr int K_STEPS = 4;            // of 8 floats, in a 128-byte row
constexpr int BATCH = 4 * K_STEPS;    // instructions between two waits; the other warpgroup covers a wait
constexpr int A_BYTES = 64 * SWIZZLE_ROW_BYTES;
constexpr int B_BYTES = 128 * SWIZZLE_ROW_BYTES;

template <int N, bool REGISTERS>
__device__ __forceinline__ void loop(const MathArgs& args) {
    extern __shared__ unsigned char shared[];
    const unsigned misalignment = __cvta_generic_to_shared(shared) & (SWIZZLE_ATOM_BYTES - 1);
    unsigned char* tiles = shared + (SWIZZLE_ATOM_BYTES - misalignment) % SWIZZLE_ATOM_BYTES;
    const Stamp begin = now();
    // In (-1, 1): random sign and mantissa, the exponent of 0.5.
    auto random = [](unsigned seed) { return (noise(seed) & 0x807fffffu) | 0x3f000000u; };
    for (int i = threadIdx.x; i < (2 * A_BYTES + B_BYTES) / 4; i += blockDim.x)
        reinterpret_cast<unsigned*>(tiles)[i] = random(blockIdx.x * 65536u + i);
    fence_proxy_async();
    __syncthreads();
    float acc[N / 2];
#pragma unroll
    for (int i = 0; i < N / 2; ++i) acc[i] = 0.0f;
    unsigned a[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) a[i] = random(threadIdx.x * 4u + i);
    const unsigned long long a_descriptor = wgmma_descriptor(tiles + B_BYTES + (threadIdx.x / 128) * A_BYTES);
    const unsigned long long b_descriptor = wgmma_descriptor(tiles);
#pragma unroll 1
    for (int loop = 0; loop < args.loops; ++loop) {
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < BATCH; ++i) {
            const int k = 2 * (i % K_STEPS);
            if constexpr (REGISTERS) wgmma_tf32_registers<N>(acc, a, b_descriptor + k);
            else wgmma_tf32<N>(acc, a_descriptor + k, b_descriptor + k);
        }
        wgmma_commit_group();
        wgmma_wait_group<0>();
    }
    float total = 0.0f;
#pragma unroll
    for (int i = 0; i < N / 2; ++i) total += acc[i];
    if (total == 1.2345e38f) args.out[0] = total;
    report(begin, args.elapsed);
}

#define WIDTH(n)                                                                                                   \
    extern "C" __global__ void __launch_bounds__(256, 1) wgmma_n##n(const __grid_constant__ MathArgs args) {       \
        loop<n, false>(args);                                                                                      \
    }                                                                                                              \
    extern "C" __global__ void __launch_bounds__(256, 1)                                                           \
        wgmma_n##n##_registers(const __grid_constant__ MathArgs args) {                                            \
        loop<n, true>(args);                                                                                       \
    }

WIDTH(24)
WIDTH(48)
WIDTH(56)
WIDTH(80)
WIDTH(96)
WIDTH(128)
