// Warpgroup matrix multiply-add of Hopper (sm_90a only): acc += A B with both operands in shared memory, K-major in
// rows of 128 bytes with the 128-byte swizzle. Each function is named after the PTX instruction that it issues.
//
// The order of calls that the hardware asks for:
//   threads write the tiles, fence_proxy_async(), __syncthreads();
//   wgmma_fence(); wgmma_tf32<N>(...) as often as needed; wgmma_commit_group();
//   wgmma_wait_group<0>(); wgmma_fence_operand(acc); threads read acc.
#pragma once

constexpr int SWIZZLE_ROW_BYTES = 128;    // 32 floats along K
constexpr int SWIZZLE_ATOM_BYTES = 1024;  // 8 rows: the swizzle permutes within them, and a tile starts at a multiple

// Byte offset of 16-byte chunk `chunk` of row `row` in a swizzled tile.
__device__ __forceinline__ int swizzle_128b(int row, int chunk) {
    return row * SWIZZLE_ROW_BYTES + ((chunk ^ (row & 7)) << 4);
}

// Matrix descriptor of a swizzled tile: its address, and the stride from one atom to the next. To step 8 floats
// (32 bytes) along K, add 2; to step `bytes` in shared memory, add bytes >> 4.
__device__ __forceinline__ unsigned long long wgmma_descriptor(const void* tile) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(tile));
    return static_cast<unsigned long long>((address & 0x3ffffu) >> 4) | (1ull << 16) |
           (static_cast<unsigned long long>(SWIZZLE_ATOM_BYTES >> 4) << 32) | (1ull << 62);
}

// Makes what this thread wrote to shared memory visible to wgmma, which reads it through the async proxy.
__device__ __forceinline__ void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ __forceinline__ void wgmma_commit_group() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits until at most PENDING of this warpgroup's newest committed groups are still running.
template <int PENDING>
__device__ __forceinline__ void wgmma_wait_group() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// Keeps the compiler from moving or copying accumulators before they are complete; otherwise it would insert a wait
// after each wgmma.
template <int COUNT>
__device__ __forceinline__ void wgmma_fence_operand(float (&acc)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) asm volatile("" : "+f"(acc[i])::"memory");
}

// An asm statement needs its operands spelled out. ACC_n(F) is F(i, j, k, l) for every four accumulators after the
// first four of a product of n columns; F makes either their names in the instruction or the operands themselves.
#define ACC_8(F)
#define ACC_16(F) ACC_8(F) F(4, 5, 6, 7)
#define ACC_24(F) ACC_16(F) F(8, 9, 10, 11)
#define ACC_32(F) ACC_24(F) F(12, 13, 14, 15)
#define ACC_40(F) ACC_32(F) F(16, 17, 18, 19)
#define ACC_48(F) ACC_40(F) F(20, 21, 22, 23)
#define ACC_56(F) ACC_48(F) F(24, 25, 26, 27)
#define ACC_64(F) ACC_56(F) F(28, 29, 30, 31)
#define ACC_72(F) ACC_64(F) F(32, 33, 34, 35)
#define ACC_80(F) ACC_72(F) F(36, 37, 38, 39)
#define ACC_88(F) ACC_80(F) F(40, 41, 42, 43)
#define ACC_96(F) ACC_88(F) F(44, 45, 46, 47)
#define ACC_104(F) ACC_96(F) F(48, 49, 50, 51)
#define ACC_112(F) ACC_104(F) F(52, 53, 54, 55)
#define ACC_120(F) ACC_112(F) F(56, 57, 58, 59)
#define ACC_128(F) ACC_120(F) F(60, 61, 62, 63)
#define ACC_136(F) ACC_128(F) F(64, 65, 66, 67)
#define ACC_144(F) ACC_136(F) F(68, 69, 70, 71)
#define ACC_152(F) ACC_144(F) F(72, 73, 74, 75)
#define ACC_160(F) ACC_152(F) F(76, 77, 78, 79)
#define ACC_168(F) ACC_160(F) F(80, 81, 82, 83)
#define ACC_176(F) ACC_168(F) F(84, 85, 86, 87)
#define ACC_184(F) ACC_176(F) F(88, 89, 90, 91)
#define ACC_192(F) ACC_184(F) F(92, 93, 94, 95)
#define ACC_200(F) ACC_192(F) F(96, 97, 98, 99)
#define ACC_208(F) ACC_200(F) F(100, 101, 102, 103)
#define ACC_216(F) ACC_208(F) F(104, 105, 106, 107)
#define ACC_224(F) ACC_216(F) F(108, 109, 110, 111)
#define ACC_232(F) ACC_224(F) F(112, 113, 114, 115)
#define ACC_240(F) ACC_232(F) F(116, 117, 118, 119)
#define ACC_248(F) ACC_240(F) F(120, 121, 122, 123)
#define ACC_256(F) ACC_248(F) F(124, 125, 126, 127)
#define ACC_NAMES(i, j, k, l) ", %" #i ", %" #j ", %" #k ", %" #l
#define ACC_OPERANDS(i, j, k, l) , "+f"(acc[i]), "+f"(acc[j]), "+f"(acc[k]), "+f"(acc[l])

// One width: `a` and `b` are the operand numbers of the descriptors, which follow the n / 2 accumulators.
#define WGMMA(n, a, b, types, immediates)                                                                 \
    if constexpr (N == n)                                                                                 \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #n types " {%0, %1, %2, %3" ACC_##n(ACC_NAMES)   \
                     "}, %" #a ", %" #b ", " immediates ";"                                               \
                     : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3]) ACC_##n(ACC_OPERANDS)       \
                     : "l"(a_descriptor), "l"(b_descriptor));

#define WGMMA_A_IN_REGISTERS(n, a0, a1, a2, a3, b, types, immediates)                                      \
    if constexpr (N == n)                                                                                  \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #n types " {%0, %1, %2, %3" ACC_##n(ACC_NAMES)    \
                     "}, {%" #a0 ", %" #a1 ", %" #a2 ", %" #a3 "}, %" #b ", " immediates ";"               \
                     : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3]) ACC_##n(ACC_OPERANDS)        \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b_descriptor));

// Its widths that are spelled out here.
#define WGMMA_A_IN_REGISTERS_WIDTHS(...)                                                                   \
    static_assert(N == 24 || N == 40 || N == 48 || N == 72 || N == 80 || N == 96 || N == 104, "add this width here"); \
    WGMMA_A_IN_REGISTERS(24, 12, 13, 14, 15, 16, __VA_ARGS__)                                              \
    WGMMA_A_IN_REGISTERS(40, 20, 21, 22, 23, 24, __VA_ARGS__)                                              \
    WGMMA_A_IN_REGISTERS(48, 24, 25, 26, 27, 28, __VA_ARGS__)                                              \
    WGMMA_A_IN_REGISTERS(72, 36, 37, 38, 39, 40, __VA_ARGS__)                                              \
    WGMMA_A_IN_REGISTERS(80, 40, 41, 42, 43, 44, __VA_ARGS__)                                              \
    WGMMA_A_IN_REGISTERS(96, 48, 49, 50, 51, 52, __VA_ARGS__)                                              \
    WGMMA_A_IN_REGISTERS(104, 52, 53, 54, 55, 56, __VA_ARGS__)

// Every width that the instruction has.
#define WGMMA_WIDTHS(...)                                                                                   \
    WGMMA(8, 4, 5, __VA_ARGS__)       WGMMA(16, 8, 9, __VA_ARGS__)      WGMMA(24, 12, 13, __VA_ARGS__)      \
    WGMMA(32, 16, 17, __VA_ARGS__)    WGMMA(40, 20, 21, __VA_ARGS__)    WGMMA(48, 24, 25, __VA_ARGS__)      \
    WGMMA(56, 28, 29, __VA_ARGS__)    WGMMA(64, 32, 33, __VA_ARGS__)    WGMMA(72, 36, 37, __VA_ARGS__)      \
    WGMMA(80, 40, 41, __VA_ARGS__)    WGMMA(88, 44, 45, __VA_ARGS__)    WGMMA(96, 48, 49, __VA_ARGS__)      \
    WGMMA(104, 52, 53, __VA_ARGS__)   WGMMA(112, 56, 57, __VA_ARGS__)   WGMMA(120, 60, 61, __VA_ARGS__)     \
    WGMMA(128, 64, 65, __VA_ARGS__)   WGMMA(136, 68, 69, __VA_ARGS__)   WGMMA(144, 72, 73, __VA_ARGS__)     \
    WGMMA(152, 76, 77, __VA_ARGS__)   WGMMA(160, 80, 81, __VA_ARGS__)   WGMMA(168, 84, 85, __VA_ARGS__)     \
    WGMMA(176, 88, 89, __VA_ARGS__)   WGMMA(184, 92, 93, __VA_ARGS__)   WGMMA(192, 96, 97, __VA_ARGS__)     \
    WGMMA(200, 100, 101, __VA_ARGS__) WGMMA(208, 104, 105, __VA_ARGS__) WGMMA(216, 108, 109, __VA_ARGS__)   \
    WGMMA(224, 112, 113, __VA_ARGS__) WGMMA(232, 116, 117, __VA_ARGS__) WGMMA(240, 120, 121, __VA_ARGS__)   \
    WGMMA(248, 124, 125, __VA_ARGS__) WGMMA(256, 128, 129, __VA_ARGS__)

// acc += A B for 64 rows of A, N columns of B and 8 indices of K, by one warpgroup; still running when it returns.
// A thread's accumulators, with warp 0 to 3 of the warpgroup, r = 16 warp + lane / 4 and c = lane % 4 * 2:
//
//            column 8j + c    8j + c + 1
//   row r        acc[4j]       acc[4j + 1]
//   row r + 8    acc[4j + 2]   acc[4j + 3]
template <int N>
__device__ __forceinline__ void wgmma_tf32(float (&acc)[N / 2], unsigned long long a_descriptor,
                                           unsigned long long b_descriptor) {
    static_assert(N % 8 == 0 && N >= 8 && N <= 256, "wgmma has multiples of 8 columns up to 256");
    WGMMA_WIDTHS("k8.f32.tf32.tf32", "1, 1, 1")
}

// The same with A in registers: a thread has rows r and r + 8, and of K the indices lane % 4 and lane % 4 + 4, in the
// order of mma_sync.cuh. `a` may be overwritten once wgmma_wait_group says that the product is done.
template <int N>
__device__ __forceinline__ void wgmma_tf32(float (&acc)[N / 2], const unsigned (&a)[4],
                                           unsigned long long b_descriptor) {
    WGMMA_A_IN_REGISTERS_WIDTHS("k8.f32.tf32.tf32", "1, 1, 1")
}

// With both operands in shared memory, in bf16 with 16 indices of K.
template <int N>
__device__ __forceinline__ void wgmma_bf16(float (&acc)[N / 2], unsigned long long a_descriptor,
                                           unsigned long long b_descriptor) {
    static_assert(N % 8 == 0 && N >= 8 && N <= 256, "wgmma has multiples of 8 columns up to 256");
    WGMMA_WIDTHS("k16.f32.bf16.bf16", "1, 1, 1, 0, 0")
}

// The same with A in registers, in the order of mma_sync.cuh's bf16 fragments.
template <int N>
__device__ __forceinline__ void wgmma_bf16(float (&acc)[N / 2], const unsigned (&a)[4],
                                           unsigned long long b_descriptor) {
    WGMMA_A_IN_REGISTERS_WIDTHS("k16.f32.bf16.bf16", "1, 1, 1, 0")
}

// One width with A in registers: `b` is the operand number of B's descriptor, the four before it are A's registers.
#define WGMMA_REGISTERS(n, a0, a1, a2, a3, b)                                                                        \
    if constexpr (N == n)                                                                                            \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #n "k8.f32.tf32.tf32 {%0, %1, %2, %3" ACC_##n(ACC_NAMES)    \
                     "}, {%" #a0 ", %" #a1 ", %" #a2 ", %" #a3 "}, %" #b ", 1, 1, 1;"                                \
                     : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3]) ACC_##n(ACC_OPERANDS)                  \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b_descriptor));

// As wgmma_tf32, with A in registers. Lane l of warp w of the warpgroup holds, with r = 16w + l / 4 and k = l % 4:
// a[0] (r, k), a[1] (r + 8, k), a[2] (r, k + 4), a[3] (r + 8, k + 4).
template <int N>
__device__ __forceinline__ void wgmma_tf32_registers(float (&acc)[N / 2], const unsigned (&a)[4],
                                                     unsigned long long b_descriptor) {
    static_assert(N == 24 || N == 48 || N == 56 || N == 80 || N == 96 || N == 128, "add this width below");
    WGMMA_REGISTERS(24, 12, 13, 14, 15, 16)
    WGMMA_REGISTERS(48, 24, 25, 26, 27, 28)
    WGMMA_REGISTERS(56, 28, 29, 30, 31, 32)
    WGMMA_REGISTERS(80, 40, 41, 42, 43, 44)
    WGMMA_REGISTERS(96, 48, 49, 50, 51, 52)
    WGMMA_REGISTERS(128, 64, 65, 66, 67, 68)
}

#undef WGMMA_REGISTERS
#undef WGMMA_WIDTHS
#undef WGMMA_A_IN_REGISTERS_WIDTHS
#undef WGMMA_A_IN_REGISTERS
#undef WGMMA
#undef ACC_OPERANDS
#undef ACC_NAMES
