// Measures the peaks of the warpgroup tensor instructions: wgmma m64n256k8 in TF32 and m64n256k16 in bf16, both
// operands in shared memory, two warpgroups a block so that one reads while the other computes.
// Both operands are K-major in tiles of 128-byte rows with the 128-byte swizzle, as in a GEMM. They are random, and the
// same for every step of K; the result does not matter.
// arch: 90a
#include "math_probe.cuh"
#include "stamp.cuh"
#include "wgmma.cuh"

constexpr int K_STEPS = 4;            // of 32 bytes, in a 128-byte row
constexpr int BATCH = 4 * K_STEPS;    // instructions between two waits; the other warpgroup covers a wait
constexpr int A_BYTES = 64 * SWIZZLE_ROW_BYTES;
constexpr int B_BYTES = 256 * SWIZZLE_ROW_BYTES;

template <bool TF32>
__device__ __forceinline__ void loop(const MathArgs& args) {
    extern __shared__ unsigned char shared[];
    const unsigned misalignment = __cvta_generic_to_shared(shared) & (SWIZZLE_ATOM_BYTES - 1);
    unsigned char* tiles = shared + (SWIZZLE_ATOM_BYTES - misalignment) % SWIZZLE_ATOM_BYTES;
    const Stamp begin = now();
    for (int i = threadIdx.x; i < (2 * A_BYTES + B_BYTES) / 4; i += blockDim.x) {
        const unsigned word = noise(blockIdx.x * 65536u + i);
        // In (-1, 1) in both types: random sign and mantissa, the exponent of 0.5.
        reinterpret_cast<unsigned*>(tiles)[i] = TF32 ? (word & 0x807fffffu) | 0x3f000000u
                                                     : (word & 0x807f807fu) | 0x3f003f00u;
    }
    fence_proxy_async();
    __syncthreads();
    float acc[128];
#pragma unroll
    for (int i = 0; i < 128; ++i) acc[i] = 0.0f;
    const unsigned long long a_descriptor = wgmma_descriptor(tiles + B_BYTES + (threadIdx.x / 128) * A_BYTES);
    const unsigned long long b_descriptor = wgmma_descriptor(tiles);
#pragma unroll 1
    for (int loop = 0; loop < args.loops; ++loop) {
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < BATCH; ++i) {
            if (TF32) wgmma_tf32<256>(acc, a_descriptor + 2 * (i % K_STEPS), b_descriptor + 2 * (i % K_STEPS));
            else wgmma_bf16<256>(acc, a_descriptor + 2 * (i % K_STEPS), b_descriptor + 2 * (i % K_STEPS));
        }
        wgmma_commit_group();
        wgmma_wait_group<0>();
    }
    float total = 0.0f;
#pragma unroll
    for (int i = 0; i < 128; ++i) total += acc[i];
    if (total == 1.2345e38f) args.out[0] = total;
    report(begin, args.elapsed);
}

extern "C" __global__ void __launch_bounds__(256, 1) wgmma_tf32_loop(const __grid_constant__ MathArgs args) {
    loop<true>(args);
}

extern "C" __global__ void __launch_bounds__(256, 1) wgmma_bf16_loop(const __grid_constant__ MathArgs args) {
    loop<false>(args);
}
