// A row of a layernorm in the registers of one warp: 16 bytes a load, all loads in flight together.
//
//   lane l holds columns 4l to 4l + 3, and the same of every further 128 columns
#pragma once
#include "args.cuh"
#include "warp.cuh"

struct RowInRegisters {
    static constexpr int CHUNKS = 8;  // of 4 columns that a lane can hold

    float4 row[CHUNKS];

    __device__ __forceinline__ void load(const LayernormArgs& args, int index) {
        const float* x = args.x + static_cast<long long>(index) * args.ldx;
#pragma unroll
        for (int i = 0; i < CHUNKS; ++i) {
            const int column = threadIdx.x * 4 + i * 128;
            row[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (column < args.columns) row[i] = *reinterpret_cast<const float4*>(x + column);
        }
    }

    // Computes the mean, then the squared deviations from it, then the output, with gain and shift if present.
    __device__ __forceinline__ void normalise(const LayernormArgs& args, int index) {
        float* out = args.out + static_cast<long long>(index) * args.ldo;
        float row_sum = 0.0f;
#pragma unroll
        for (int i = 0; i < CHUNKS; ++i) row_sum += (row[i].x + row[i].y) + (row[i].z + row[i].w);
        const float mean = warp_sum(row_sum) / args.columns;
        float square_sum = 0.0f;
#pragma unroll
        for (int i = 0; i < CHUNKS; ++i) {
            if (threadIdx.x * 4 + i * 128 >= args.columns) continue;
            row[i] = make_float4(row[i].x - mean, row[i].y - mean, row[i].z - mean, row[i].w - mean);
            square_sum += (row[i].x * row[i].x + row[i].y * row[i].y) + (row[i].z * row[i].z + row[i].w * row[i].w);
        }
        const float scale = rsqrtf(warp_sum(square_sum) / args.columns + args.eps);
#pragma unroll
        for (int i = 0; i < CHUNKS; ++i) {
            const int column = threadIdx.x * 4 + i * 128;
            if (column >= args.columns) continue;
            float4 value = make_float4(row[i].x * scale, row[i].y * scale, row[i].z * scale, row[i].w * scale);
            if (args.gain) {
                const float4 gain = *reinterpret_cast<const float4*>(args.gain + column);
                value = make_float4(value.x * gain.x, value.y * gain.y, value.z * gain.z, value.w * gain.w);
            }
            if (args.shift) {
                const float4 shift = *reinterpret_cast<const float4*>(args.shift + column);
                value = make_float4(value.x + shift.x, value.y + shift.y, value.z + shift.z, value.w + shift.w);
            }
            *reinterpret_cast<float4*>(out + column) = value;
        }
    }
};
