// Warp-level tensor cores: mma.sync m16n8k8 in TF32 and m16n8k16 in bf16, and ldmatrix to load their operands from
// shared memory tiles whose rows lie along K. Functions that issue one PTX instruction are named after it.
//
// Which elements lane l holds, with g = l / 4 and t = l % 4:
//
//   A, 16x8 (row, k)             B, 8x8 (k, column)           C, 16x8 (row, column)
//        k = t   k = t + 4            column = g                      2t     2t + 1
//   g      a[0]    a[2]          k = t      w[0]              g      c[0]    c[1]
//   g + 8  a[1]    a[3]          k = t + 4  w[1]              g + 8  c[2]    c[3]
//
// ldmatrix loads four 8x8 matrices of 16-bit elements. Each of their rows is 16 bytes, here 4 floats, so that one
// matrix is 8 rows by 4 floats. Lanes 8i to 8i + 7 give the row addresses of matrix i.
//
// In bf16 a word holds two neighbours along K, and everything else is the same: word t stands for k = 2t and 2t + 1,
// word t + 4 for k = 2t + 8 and 2t + 9. 16 bytes are then 8 elements. If w's rows lie along the columns instead,
// ldmatrix_x4_trans gives the same fragments of w.
#pragma once

// Row and k to which a lane points for a 16x8 fragment of A: rows 0-7 and 8-15 at k 0-3, then both at k 4-7.
__device__ __forceinline__ int fragment_a_row(int lane) { return (lane & 7) + (lane >> 3 & 1) * 8; }
__device__ __forceinline__ int fragment_a_k(int lane) { return (lane >> 4) * 4; }

// Column and k to which a lane points for two 8x8 fragments of w, stored [columns, inner]: columns 0-7 at k 0-3 and
// k 4-7, then columns 8-15.
__device__ __forceinline__ int fragment_w_column(int lane) { return (lane & 7) + (lane >> 4) * 8; }
__device__ __forceinline__ int fragment_w_k(int lane) { return (lane >> 3 & 1) * 4; }

// Row and column of c[0]. c[1] is the next column; c[2] and c[3] are 8 rows below.
__device__ __forceinline__ int fragment_c_row(int lane) { return lane >> 2; }
__device__ __forceinline__ int fragment_c_column(int lane) { return (lane & 3) * 2; }

__device__ __forceinline__ void ldmatrix_x4(unsigned (&fragments)[4], const void* shared) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(fragments[0]), "=r"(fragments[1]), "=r"(fragments[2]), "=r"(fragments[3])
                 : "r"(address));
}

__device__ __forceinline__ void ldmatrix_x4_trans(unsigned (&fragments)[4], const void* shared) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(fragments[0]), "=r"(fragments[1]), "=r"(fragments[2]), "=r"(fragments[3])
                 : "r"(address));
}

// Rounds to the nearest TF32 value. Without it mma.sync drops the low bits.
template <int COUNT>
__device__ __forceinline__ void cvt_rna_tf32(unsigned (&fragments)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(fragments[i]) : "f"(__uint_as_float(fragments[i])));
}

// acc += a w. Bits below TF32 are ignored.
__device__ __forceinline__ void mma_m16n8k8_tf32(float (&acc)[4], const unsigned* a, const unsigned* w) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};\n"
        : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(w[0]), "r"(w[1]));
}

__device__ __forceinline__ void mma_m16n8k16_bf16(float (&acc)[4], const unsigned* a, const unsigned* w) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};\n"
        : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(w[0]), "r"(w[1]));
}
