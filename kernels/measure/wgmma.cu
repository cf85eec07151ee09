// Ceilings of the warpgroup tensor instructions: wgmma m64n256k8 in TF32 and m64n256k16 in bf16, both
// operands in shared memory, two warpgroups a block so that one's reads hide behind the other's math.
// Both operands K-major in tiles of 128-byte rows, 128-byte swizzle: the layout that GEMMs feed them.
// The operands are random numbers, the same for every k-step; what they are summed to is of no interest.
// arch: 90a
#include "math_probe.cuh"
#include "stamp.cuh"
#include "warpgroup.cuh"

constexpr int K_STEPS = 4;            // of 32 bytes, in a 128-byte row
constexpr int BATCH = 4 * K_STEPS;    // instructions between two waits; the other warpgroup fills the drain
constexpr int A_BYTES = 64 * SWIZZLE_ROW_BYTES;
constexpr int B_BYTES = 256 * SWIZZLE_ROW_BYTES;

#define ACCUMULATORS \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, " \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

#define ACCUMULATOR_OPERANDS \
    "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), \
    "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), \
    "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), \
    "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), \
    "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), \
    "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), \
    "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), \
    "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]), \
    "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]), \
    "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]), \
    "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), \
    "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]), \
    "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]), \
    "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]), \
    "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]), \
    "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])

template <bool TF32>
__device__ __forceinline__ void wgmma(float (&d)[128], unsigned long long a, unsigned long long b) {
    if (TF32) {
        asm volatile(
            "wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32 {" ACCUMULATORS "}, %128, %129, 1, 1, 1;"
            : ACCUMULATOR_OPERANDS
            : "l"(a), "l"(b));
    } else {
        asm volatile(
            "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" ACCUMULATORS "}, %128, %129, 1, 1, 1, 0, 0;"
            : ACCUMULATOR_OPERANDS
            : "l"(a), "l"(b));
    }
}

template <bool TF32>
__device__ __forceinline__ void loop(const MathArgs& args) {
    extern __shared__ unsigned char shared[];
    const unsigned beyond_atom = __cvta_generic_to_shared(shared) & (SWIZZLE_ATOM_BYTES - 1);
    unsigned char* tiles = shared + (SWIZZLE_ATOM_BYTES - beyond_atom) % SWIZZLE_ATOM_BYTES;
    const Stamp begin = now();
    for (int i = threadIdx.x; i < (2 * A_BYTES + B_BYTES) / 4; i += blockDim.x) {
        const unsigned word = noise(blockIdx.x * 65536u + i);
        // Finite in (-1, 1) either way: sign and mantissa random, exponent that of a half.
        reinterpret_cast<unsigned*>(tiles)[i] = TF32 ? (word & 0x807fffffu) | 0x3f000000u
                                                     : (word & 0x807f807fu) | 0x3f003f00u;
    }
    show_to_products();
    __syncthreads();
    float d[128];
#pragma unroll
    for (int i = 0; i < 128; ++i) d[i] = 0.0f;
    const unsigned long long a = tile_descriptor(tiles + B_BYTES + (threadIdx.x / 128) * A_BYTES);
    const unsigned long long b = tile_descriptor(tiles);
#pragma unroll 1
    for (int loop = 0; loop < args.loops; ++loop) {
        products_begin();
#pragma unroll
        for (int i = 0; i < BATCH; ++i) wgmma<TF32>(d, a + 2 * (i % K_STEPS), b + 2 * (i % K_STEPS));
        products_commit();
        products_wait();
    }
    float total = 0.0f;
#pragma unroll
    for (int i = 0; i < 128; ++i) total += d[i];
    if (total == 1.2345e38f) args.out[0] = total;
    report(begin, args.elapsed);
}

extern "C" __global__ void __launch_bounds__(256, 1) wgmma_tf32_loop(const __grid_constant__ MathArgs args) {
    loop<true>(args);
}

extern "C" __global__ void __launch_bounds__(256, 1) wgmma_bf16_loop(const __grid_constant__ MathArgs args) {
    loop<false>(args);
}
