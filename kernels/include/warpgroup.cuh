// Hopper's warpgroup products in TF32: wgmma m64nNk8, both operands in shared memory, K-major in rows of
// 128 bytes with the 128-byte swizzle (sm_90a only).
#pragma once

constexpr int SWIZZLE_ROW_BYTES = 128;   // 32 floats along the inner axis
constexpr int SWIZZLE_ATOM_BYTES = 1024;  // 8 rows, which the swizzle permutes within; tiles start at a multiple

// Where 16-byte chunk `chunk` of row `row` lies in a swizzled tile.
__device__ __forceinline__ int swizzled(int row, int chunk) {
    return row * SWIZZLE_ROW_BYTES + ((chunk ^ (row & 7)) << 4);
}

// Matrix descriptor of a swizzled tile: its address, and the stride between atoms. A step of 8 floats along
// the inner axis is 2 more.
__device__ __forceinline__ unsigned long long tile_descriptor(const void* tile) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(tile));
    return static_cast<unsigned long long>((address & 0x3ffffu) >> 4) | (1ull << 16) |
           (static_cast<unsigned long long>(SWIZZLE_ATOM_BYTES >> 4) << 32) | (1ull << 62);
}

// What threads wrote to shared memory becomes visible to the products' own path to it.
__device__ __forceinline__ void show_to_products() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ __forceinline__ void products_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ __forceinline__ void products_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Until every product that this warpgroup has committed is done.
__device__ __forceinline__ void products_wait() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }

// Keeps the compiler from touching sums before they are complete: were it to, each product would be waited for.
template <int COUNT>
__device__ __forceinline__ void hold(float (&sum)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) asm volatile("" : "+f"(sum[i])::"memory");
}

#define SUMS_4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SUMS_28 SUMS_4(0), SUMS_4(4), SUMS_4(8), SUMS_4(12), SUMS_4(16), SUMS_4(20), SUMS_4(24)
#define SUMS_40 SUMS_28, SUMS_4(28), SUMS_4(32), SUMS_4(36)
#define SUMS_48 SUMS_40, SUMS_4(40), SUMS_4(44)
#define SUMS_52 SUMS_48, SUMS_4(48)
#define SUMS_56 SUMS_52, SUMS_4(52)
#define NAMES_28 \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27"
#define NAMES_40 NAMES_28 ",%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39"
#define NAMES_48 NAMES_40 ",%40,%41,%42,%43,%44,%45,%46,%47"
#define NAMES_52 NAMES_48 ",%48,%49,%50,%51"
#define NAMES_56 NAMES_52 ",%52,%53,%54,%55"
#define MULTIPLY(columns, names, a_name, w_name, ...)                                                            \
    if constexpr (COLUMNS == columns)                                                                            \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" #columns "k8.f32.tf32.tf32 {" names "}, " a_name ", " w_name \
                 ", 1, 1, 1;"                                                                                    \
                 : __VA_ARGS__                                                                                   \
                 : "l"(a), "l"(w))

// d += a w for 64 rows, COLUMNS columns and 8 inner indices, by one warpgroup, under way when it returns.
// A thread's sums: rows r and r + 8 of columns 8j + c and 8j + c + 1 in d[4j] to d[4j + 3], where
// r = 16 warp + lane / 4 and c = lane % 4 * 2.
template <int COLUMNS>
__device__ __forceinline__ void multiply_warpgroup(float (&d)[COLUMNS / 2], unsigned long long a,
                                                   unsigned long long w) {
    static_assert(COLUMNS == 56 || COLUMNS == 80 || COLUMNS == 96 || COLUMNS == 104 || COLUMNS == 112,
                  "widths that have their instruction here");
    MULTIPLY(56, NAMES_28, "%28", "%29", SUMS_28);
    MULTIPLY(80, NAMES_40, "%40", "%41", SUMS_40);
    MULTIPLY(96, NAMES_48, "%48", "%49", SUMS_48);
    MULTIPLY(104, NAMES_52, "%52", "%53", SUMS_52);
    MULTIPLY(112, NAMES_56, "%56", "%57", SUMS_56);
}

#undef MULTIPLY
#undef SUMS_4
#undef SUMS_28
#undef SUMS_40
#undef SUMS_48
#undef SUMS_52
#undef SUMS_56
#undef NAMES_28
#undef NAMES_40
#undef NAMES_48
#undef NAMES_52
#undef NAMES_56
