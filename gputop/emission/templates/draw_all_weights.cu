void draw_all_weights() {
    for (Tensor* const tensor : TENSORS) tensor->memory = allocate<float>(tensor->layers * tensor->elements());
    for (const Draw& draw : DRAWS) {
        for (int layer = 0; layer < draw.tensor->layers; ++layer) draw_weights(draw, layer);
    }
    for (const Fold& fold : FOLDS) {
        for (const Draw& draw : DRAWS) {
            if (draw.tensor != fold.weight) continue;
            for (int layer = 0; layer < draw.tensor->layers; ++layer) fold_shift(fold, draw, layer);
        }
    }
}
