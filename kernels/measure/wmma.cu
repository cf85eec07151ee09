// Measures the peak of TF32 products as WMMA issues them: the compiler makes instructions of a quarter of mma.sync's
// inner indices of them, at a rate of their own. Fragments stay in registers and are random; eight accumulators a warp.
#include <mma.h>

#include "math_probe.cuh"
#include "stamp.cuh"

constexpr int CHAINS = 4;
constexpr int UNROLL = 4;

using namespace nvcuda;

extern "C" __global__ void __launch_bounds__(256) wmma_tf32_loop(const __grid_constant__ MathArgs args) {
    const Stamp begin = now();
    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> a[2];
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> b[2];
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> acc[CHAINS];
    const unsigned seed = (blockIdx.x * blockDim.x + threadIdx.x) * 16u;
    auto random = [](unsigned index) {
        return wmma::__float_to_tf32(static_cast<float>(static_cast<int>(noise(index))) * (1.0f / 2147483648.0f));
    };
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < a[i].num_elements; ++j) a[i].x[j] = random(seed + i * 8 + j);
#pragma unroll
        for (int j = 0; j < b[i].num_elements; ++j) b[i].x[j] = random(seed + i * 8 + j + 4);
    }
#pragma unroll
    for (int i = 0; i < CHAINS; ++i) wmma::fill_fragment(acc[i], 0.0f);
#pragma unroll 1
    for (int loop = 0; loop < args.loops; ++loop) {
#pragma unroll
        for (int step = 0; step < UNROLL; ++step) {
#pragma unroll
            for (int i = 0; i < CHAINS; ++i) wmma::mma_sync(acc[i], a[i / 2], b[i % 2], acc[i]);
        }
    }
    float total = 0.0f;
#pragma unroll
    for (int i = 0; i < CHAINS; ++i)
#pragma unroll
        for (int j = 0; j < acc[i].num_elements; ++j) total += acc[i].x[j];
    if (total == 1.2345e38f) args.out[0] = total;
    report(begin, args.elapsed);
}
