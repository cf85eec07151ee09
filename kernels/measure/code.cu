// Measures how fast an SM takes machine code that its instruction cache does not hold. A pass launches kernels in turn
// whose code does not fit there together, so that each kernel's code comes from L2 again at every launch.
// Six kernels of straight code, each executed once by every warp: in turn they miss the cache, one alone does not.

struct CodeArgs {
    float* out;   // written only if the result equals a magic number: keeps the compiler from removing the code
    float x;
};

constexpr int MULTIPLY_ADDS = 512;

template <int ID>
__device__ __forceinline__ void straight_code(const CodeArgs& args) {
    float acc[4] = {threadIdx.x + 0.5f + ID, threadIdx.x + 1.5f, threadIdx.x + 2.5f, threadIdx.x + 3.5f};
#pragma unroll
    for (int i = 0; i < MULTIPLY_ADDS; ++i) acc[i % 4] = __fmaf_rn(acc[i % 4], args.x, i * 0.37f + ID);
    if (acc[0] + acc[1] + acc[2] + acc[3] == 1.2345e38f) args.out[0] = acc[0];
}

#define STRAIGHT_CODE(id)                                                            \
    extern "C" __global__ void straight_code_##id(const __grid_constant__ CodeArgs args) { \
        straight_code<id>(args);                                                     \
    }

STRAIGHT_CODE(0)
STRAIGHT_CODE(1)
STRAIGHT_CODE(2)
STRAIGHT_CODE(3)
STRAIGHT_CODE(4)
STRAIGHT_CODE(5)
