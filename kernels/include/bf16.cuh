// bf16, the upper 16 bits of a float: a format to store in, two elements a word. Arithmetic is in float.
// Functions that load and store take float or Bf16 alike, so that a kernel can be written for both.
#pragma once

struct Bf16 {
    unsigned short bits;
};

// The elements of a word, which lie in memory in this order.
__device__ __forceinline__ float low_bf16(unsigned word) { return __uint_as_float(word << 16); }
__device__ __forceinline__ float high_bf16(unsigned word) { return __uint_as_float(word & 0xffff0000u); }

// Both rounded to nearest, ties to even.
__device__ __forceinline__ unsigned cvt_rn_bf16x2(float low, float high) {
    unsigned word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
}

// Two elements that follow each other. The first one's place is even.
__device__ __forceinline__ float2 load_pair(const float* from) { return *reinterpret_cast<const float2*>(from); }
__device__ __forceinline__ float2 load_pair(const Bf16* from) {
    const unsigned word = *reinterpret_cast<const unsigned*>(from);
    return make_float2(low_bf16(word), high_bf16(word));
}
__device__ __forceinline__ void store_pair(float* to, float2 values) { *reinterpret_cast<float2*>(to) = values; }
__device__ __forceinline__ void store_pair(Bf16* to, float2 values) {
    *reinterpret_cast<unsigned*>(to) = cvt_rn_bf16x2(values.x, values.y);
}

// Four elements that follow each other. The first one's place is a multiple of 4.
__device__ __forceinline__ void store_four(float* to, float4 values) { *reinterpret_cast<float4*>(to) = values; }
__device__ __forceinline__ void store_four(Bf16* to, float4 values) {
    *reinterpret_cast<uint2*>(to) = make_uint2(cvt_rn_bf16x2(values.x, values.y), cvt_rn_bf16x2(values.z, values.w));
}

// One element.
__device__ __forceinline__ float load_one(const float* from) { return *from; }
__device__ __forceinline__ float load_one(const Bf16* from) { return __uint_as_float(unsigned{from->bits} << 16); }
__device__ __forceinline__ void store_one(float* to, float value) { *to = value; }
__device__ __forceinline__ void store_one(Bf16* to, float value) {
    to->bits = static_cast<unsigned short>(cvt_rn_bf16x2(value, 0.0f));
}
