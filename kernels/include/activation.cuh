// The activation function between the feed-forward products. The model chooses it when a source is compiled: with
// neither macro it is ReLU, so that a ReLU build's machine code has nothing of the others.
#pragma once

__device__ __forceinline__ float activation(float x) {
#if defined(GELU_ERF)
    // x times the share of a standard normal distribution below x (Hendrycks and Gimpel 2016, arXiv:1606.08415).
    constexpr float SQRT_HALF = 0.70710678118654752f;
    return 0.5f * x * (1.0f + erff(x * SQRT_HALF));
#elif defined(GELU_TANH)
    // The same paper's approximation x (1 + tanh u) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3), as
    // x / (1 + exp(-2 u)): one exponential and one division, and no difference of nearly equal numbers.
    constexpr float MINUS_2_SQRT_2_OVER_PI = -1.59576912160573071f;
    const float minus_2_u = MINUS_2_SQRT_2_OVER_PI * x * (1.0f + 0.044715f * x * x);
    return __fdividef(x, 1.0f + __expf(minus_2_u));
#else
    return fmaxf(x, 0.0f);
#endif
}
