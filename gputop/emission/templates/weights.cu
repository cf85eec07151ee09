// ---- Weights and tokens: the same bits as gputop's, drawn by integer arithmetic.

// FNV-1a 64 of `seed/name`: what a tensor's elements are drawn from.
unsigned long long key_of(const std::string& name) {
    unsigned long long key = 0xCBF29CE484222325ull;
    for (const unsigned char byte : std::to_string(SEED) + "/" + name) key = (key ^ byte) * 0x100000001B3ull;
    return key;
}

int low_half(unsigned long long key) { return static_cast<int>(static_cast<unsigned>(key)); }
int high_half(unsigned long long key) { return static_cast<int>(static_cast<unsigned>(key >> 32)); }

// The factor that gives centred 24-bit integers this standard deviation.
float scale_of(double std_deviation) { return static_cast<float>(std_deviation * std::sqrt(12.0) / (1 << 24)); }

struct Tensor {
    bool in_layers;
    int layers, rows, columns;  // [rows, columns] = [out, in] of each layer; a vector has one row
    bool transposed;            // stored [columns, rows]
    float* memory;              // set when the weights are drawn

    long long elements() const { return static_cast<long long>(rows) * columns; }  // of one layer
    float* operator[](int layer) const { return memory + layer * elements(); }
};

// Rows of a tensor that are drawn with a key of their own.
struct Draw {
    Tensor* tensor;
    const char* name;  // as hashed, behind the layer
    int first_row, rows;
    double std_deviation;
    bool about_one;          // 1 is added
    Tensor* gain = nullptr;  // layernorm gain that is folded in
};

// What a layernorm shifts by goes through the weight into the bias.
struct Fold {
    Tensor *weight, *shift, *bias;
    bool has_bias;  // whether the unfolded model has this bias
};

std::string full_name(const Draw& draw, int layer) {
    return draw.tensor->in_layers ? std::to_string(layer) + "/" + draw.name : draw.name;
}

void draw_folded(const Draw& draw, int layer) {
    const Tensor& tensor = *draw.tensor;
    const unsigned long long key = key_of(full_name(draw, layer));
    launch(measure_fill::fold_weights, Shape{{static_cast<unsigned>(draw.rows)}, {128}},
           measure_fill::FoldWeightsArgs{tensor[layer], (*draw.gain)[layer], low_half(key), high_half(key),
                                         tensor.columns, draw.first_row, tensor.rows, tensor.transposed,
                                         scale_of(draw.std_deviation)});
}

void draw_weights(const Draw& draw, int layer) {
    if (draw.gain != nullptr) return draw_folded(draw, layer);
    const Tensor& tensor = *draw.tensor;
    const unsigned long long key = key_of(full_name(draw, layer));
    const int count = draw.rows * tensor.columns;
    const unsigned blocks = std::max(1, std::min((count + 255) / 256, 16 * sm_count));
    launch(measure_fill::fill_weights, Shape{{blocks}, {256}},
           measure_fill::FillArgs{tensor[layer], low_half(key), high_half(key), count, tensor.columns, draw.first_row,
                                  tensor.rows, tensor.transposed, draw.about_one, scale_of(draw.std_deviation)});
}

void fold_shift(const Fold& fold, const Draw& draw, int layer) {
    const unsigned long long key = key_of(full_name(draw, layer));
    float* const bias = (*fold.bias)[layer] + draw.first_row;
    launch(measure_fill::fold_bias, Shape{{static_cast<unsigned>(draw.rows)}, {128}},
           measure_fill::FoldBiasArgs{bias, (*fold.shift)[layer], fold.has_bias ? bias : nullptr, low_half(key),
                                      high_half(key), draw.rows, fold.weight->columns,
                                      scale_of(draw.std_deviation)});
}

// [BATCH, SEQ]: token set 0, whose first sequence stands in the whole batch.
std::vector<int> draw_tokens() {
    std::vector<int> ids(BATCH * SEQ);
    const unsigned long long key = key_of("tokens/0/0");
    for (int i = 0; i < BATCH * SEQ; ++i) {
        unsigned long long z = key + (i % SEQ + 1) * 0x9E3779B97F4A7C15ull;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        ids[i] = static_cast<int>(((z >> 40) * VOCAB) >> 24);
    }
    return ids;
}
