// c = a w^T + bias, then ReLU, then + residual. Start here: it is right for all shapes and slow.
@STRUCT@

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
            if (args->relu && acc < 0.0f) acc = 0.0f;
            if (args->residual) acc += args->residual[(long long)row * args->ldr + column];
            args->c[(long long)row * args->ldc + column] = acc;
        }
}
