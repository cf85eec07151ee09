// The GEMM's epilogue: bias, then the activation function, then residual, in this fixed order. Each one is applied only
// if the arguments ask for it.
#pragma once
#include "activation.cuh"
#include "args.cuh"

__device__ __forceinline__ float epilogue(const GemmArgs& args, float acc, int row, int column) {
    if (args.bias) acc += args.bias[column];
    if (args.activate) acc = activation(acc);
    if (args.residual) acc += args.residual[static_cast<long long>(row) * args.ldr + column];
    return acc;
}

// Applies the epilogue and stores one element of c.
__device__ __forceinline__ void store(const GemmArgs& args, float acc, int row, int column) {
    args.c[static_cast<long long>(row) * args.ldc + column] = epilogue(args, acc, row, column);
}

// What the epilogue adds to four consecutive columns; zeros if absent. Loaded before the accumulators are complete,
// so that the loads overlap with the last products.
struct EpilogueOperands {
    float4 bias, residual;
};

// Needs `column` and args.ldr to be multiples of 4.
__device__ __forceinline__ EpilogueOperands load_epilogue_operands(const GemmArgs& args, int row, int column) {
    EpilogueOperands operands = {};
    if (args.bias) operands.bias = *reinterpret_cast<const float4*>(args.bias + column);
    if (args.residual)
        operands.residual =
            *reinterpret_cast<const float4*>(args.residual + static_cast<long long>(row) * args.ldr + column);
    return operands;
}

__device__ __forceinline__ float epilogue(float acc, float bias, bool activate, float residual) {
    acc += bias;
    return (activate ? activation(acc) : acc) + residual;
}

// Applies the epilogue and stores four consecutive columns of c. Needs args.ldc to be a multiple of 4.
__device__ __forceinline__ void store_float4(const GemmArgs& args, float4 acc, const EpilogueOperands& operands,
                                             int row, int column) {
    *reinterpret_cast<float4*>(args.c + static_cast<long long>(row) * args.ldc + column) =
        make_float4(epilogue(acc.x, operands.bias.x, args.activate, operands.residual.x),
                    epilogue(acc.y, operands.bias.y, args.activate, operands.residual.y),
                    epilogue(acc.z, operands.bias.z, args.activate, operands.residual.z),
                    epilogue(acc.w, operands.bias.w, args.activate, operands.residual.w));
}
