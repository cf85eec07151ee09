// Measures the peaks of memory: reads of DRAM, copies through DRAM, reads of L2. 16-byte accesses, consecutive threads
// on consecutive words, eight loads in flight a thread.
#include "stamp.cuh"

struct BandwidthArgs {
    const float4* in;
    float4* out;          // copy: as long as `in`; reads: one float4, written only if the sum equals a magic number,
                          // which keeps the compiler from removing the loads
    long long* elapsed;   // cycles, ns
    int blocks16_low, blocks16_high;   // number of 16-byte words of `in`
    int repeats;   // l2_read: how often it reads all steps of `in`
    int stride;    // l2_read: distance from one step to the next; has no factor in common with the number of steps
    int group;     // l2_read: blocks that read the same step at the same time
};

constexpr int IN_FLIGHT = 8;

__device__ __forceinline__ long long words(const BandwidthArgs& args) {
    return static_cast<long long>((static_cast<unsigned long long>(static_cast<unsigned>(args.blocks16_high)) << 32) |
                                  static_cast<unsigned>(args.blocks16_low));
}

__device__ __forceinline__ void add(float4& acc, const float4& value) {
    acc.x += value.x;
    acc.y += value.y;
    acc.z += value.z;
    acc.w += value.w;
}

__device__ __forceinline__ void keep_alive(const BandwidthArgs& args, const float4& acc) {
    if (acc.x + acc.y + acc.z + acc.w == 1.2345e38f) args.out[0] = acc;
}

extern "C" __global__ void __launch_bounds__(512, 2) dram_read(const __grid_constant__ BandwidthArgs args) {
    const Stamp begin = now();
    const long long count = words(args);
    const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    float4 acc = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (; i + (IN_FLIGHT - 1) * stride < count; i += IN_FLIGHT * stride) {
        float4 value[IN_FLIGHT];
#pragma unroll
        for (int j = 0; j < IN_FLIGHT; ++j) value[j] = __ldcs(args.in + i + j * stride);
#pragma unroll
        for (int j = 0; j < IN_FLIGHT; ++j) add(acc, value[j]);
    }
    for (; i < count; i += stride) add(acc, __ldcs(args.in + i));
    keep_alive(args, acc);
    report(begin, args.elapsed);
}

extern "C" __global__ void __launch_bounds__(512, 2) dram_copy(const __grid_constant__ BandwidthArgs args) {
    const Stamp begin = now();
    const long long count = words(args);
    const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
    long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    for (; i + (IN_FLIGHT - 1) * stride < count; i += IN_FLIGHT * stride) {
        float4 value[IN_FLIGHT];
#pragma unroll
        for (int j = 0; j < IN_FLIGHT; ++j) value[j] = __ldcs(args.in + i + j * stride);
#pragma unroll
        for (int j = 0; j < IN_FLIGHT; ++j) __stcs(args.out + i + j * stride, value[j]);
    }
    for (; i < count; i += stride) __stcs(args.out + i, __ldcs(args.in + i));
    report(begin, args.elapsed);
}

// Each block copies a tile of consecutive words at a time, so that whole DRAM pages are read and written at once.
template <bool STREAMED>
__device__ __forceinline__ void copy_tiles(const BandwidthArgs& args) {
    const Stamp begin = now();
    const long long count = words(args);
    const long long tile = static_cast<long long>(blockDim.x) * IN_FLIGHT;
    for (long long base = blockIdx.x * tile; base < count; base += gridDim.x * tile) {
        const float4* in = args.in + base + threadIdx.x;
        float4* out = args.out + base + threadIdx.x;
        if (base + tile > count) {
            for (long long i = threadIdx.x; base + i < count; i += blockDim.x) args.out[base + i] = args.in[base + i];
            break;
        }
        float4 value[IN_FLIGHT];
#pragma unroll
        for (int j = 0; j < IN_FLIGHT; ++j) value[j] = STREAMED ? __ldcs(in + j * blockDim.x) : in[j * blockDim.x];
#pragma unroll
        for (int j = 0; j < IN_FLIGHT; ++j) {
            if (STREAMED)
                __stcs(out + j * blockDim.x, value[j]);
            else
                out[j * blockDim.x] = value[j];
        }
    }
    report(begin, args.elapsed);
}

extern "C" __global__ void __launch_bounds__(512, 2) dram_copy_tiles(const __grid_constant__ BandwidthArgs args) {
    copy_tiles<true>(args);
}

extern "C" __global__ void __launch_bounds__(512, 2) dram_copy_cached(const __grid_constant__ BandwidthArgs args) {
    copy_tiles<false>(args);
}

// Every block reads all steps of `in`, which lies in L2, in the same order. Blocks of different groups begin at different
// steps, so that they do not read the same words at once; L2 could serve those with one access. ld.cg bypasses L1.
extern "C" __global__ void __launch_bounds__(512, 2) l2_read(const __grid_constant__ BandwidthArgs args) {
    const Stamp begin = now();
    const int step = blockDim.x * IN_FLIGHT;
    const int steps = static_cast<int>(words(args)) / step;
    int current = blockIdx.x / args.group % steps;
    float4 acc = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 1
    for (int done = 0; done < args.repeats * steps; ++done) {
        const float4* in = args.in + static_cast<long long>(current) * step + threadIdx.x;
        float4 value[IN_FLIGHT];
#pragma unroll
        for (int j = 0; j < IN_FLIGHT; ++j) value[j] = __ldcg(in + j * blockDim.x);
#pragma unroll
        for (int j = 0; j < IN_FLIGHT; ++j) add(acc, value[j]);
        current += args.stride;
        if (current >= steps) current -= steps;
    }
    keep_alive(args, acc);
    report(begin, args.elapsed);
}
