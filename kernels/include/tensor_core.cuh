// mma.sync m16n8k8 in TF32 and the fragments that ldmatrix reads for it from tiles along the inner axis.
// ldmatrix moves 8 rows of 16 bytes four times: for this instruction each is 8 rows of 4 floats.
#pragma once

// Where a lane points for four 8x4 matrices of a 16x8 fragment of a: rows 0-7 and 8-15, then inner 4-7.
__device__ __forceinline__ int fragment_a_row(int lane) { return (lane & 7) + (lane >> 3 & 1) * 8; }
__device__ __forceinline__ int fragment_a_k(int lane) { return (lane >> 4) * 4; }

// And for two 8x8 fragments of w stored [columns, inner]: columns 0-7 at inner 0-3 and 4-7, then 8-15.
__device__ __forceinline__ int fragment_w_column(int lane) { return (lane & 7) + (lane >> 4) * 8; }
__device__ __forceinline__ int fragment_w_k(int lane) { return (lane >> 3 & 1) * 4; }

// First of the two neighbouring sums that a lane holds of a 16x8 result; the other two are 8 rows below.
__device__ __forceinline__ int fragment_c_row(int lane) { return lane >> 2; }
__device__ __forceinline__ int fragment_c_column(int lane) { return (lane & 3) * 2; }

__device__ __forceinline__ void load_fragments(unsigned (&fragments)[4], const float* shared) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(fragments[0]), "=r"(fragments[1]), "=r"(fragments[2]), "=r"(fragments[3])
                 : "r"(address));
}

// To the nearest value that TF32 has; without it the hardware drops the bits below.
template <int COUNT>
__device__ __forceinline__ void round_to_tf32(unsigned (&fragments)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(fragments[i]) : "f"(__uint_as_float(fragments[i])));
}

// sum += a w: a 16x8, w 8x8, bits below TF32 ignored.
__device__ __forceinline__ void multiply_tf32(float (&sum)[4], const unsigned* a, const unsigned* w) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};\n"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(w[0]), "r"(w[1]));
}
