// out = embedding of the token + position. Start here: it is right for all shapes.
@STRUCT@

void @ENTRY@(const EmbedArgs* args) {
    for (int row = 0; row < args->rows; ++row)
        for (int i = 0; i < args->columns; ++i)
            args->out[(long long)row * args->ldo + i] =
                args->embedding[(long long)args->tokens[row] * args->columns + i] +
                args->position[(long long)(row % args->seq) * args->columns + i];
}
