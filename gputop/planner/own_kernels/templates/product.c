// c = a w^T + bias, then the model's activation, then + residual. Start here: it is right for all shapes and slow.
#include <math.h>

@STRUCT@

static float activation(float x) {
#if defined(GELU_ERF)
    return 0.5f * x * (1.0f + erff(x * 0.707106781f));
#elif defined(GELU_TANH)
    return 0.5f * x * (1.0f + tanhf(0.797884561f * (x + 0.044715f * x * x * x)));
#else
    return x > 0.0f ? x : 0.0f;
#endif
}

void @ENTRY@(const GemmArgs* args) {
    const int w_by_rows = @W_BY_ROWS@;  // layout of the record: "row" is w as [columns, inner], else [inner, columns]
    for (int row = 0; row < args->rows; ++row)
        for (int column = 0; column < args->columns; ++column) {
            const float* a = args->a + (long long)row * args->lda;
            const float* w = w_by_rows ? args->w + (long long)column * args->ldw : args->w + column;
            const long long step = w_by_rows ? 1 : args->ldw;
            float acc = 0.0f;
            for (int k = 0; k < args->inner; ++k) acc += a[k] * w[k * step];
            if (args->bias) acc += args->bias[column];
            if (args->activate) acc = activation(acc);
            if (args->residual) acc += args->residual[(long long)row * args->ldr + column];
            args->c[(long long)row * args->ldc + column] = acc;
        }
}
