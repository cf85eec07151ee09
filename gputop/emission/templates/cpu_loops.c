// ---- Memory

static float* allocate(size_t count) {
    float* const memory = malloc(count * sizeof *memory);
    if (memory == NULL) {
        fprintf(stderr, "no memory for %zu floats\n", count);
        exit(3);
    }
    return memory;
}

// ---- Weights and tokens: the same bits as gputop's, drawn by integer arithmetic.

// FNV-1a 64 of `seed/name`: what a tensor's elements are drawn from.
static uint64_t key_of(const char* name) {
    char text[128];
    snprintf(text, sizeof text, "%lld/%s", SEED, name);
    uint64_t key = 0xCBF29CE484222325u;
    for (const char* byte = text; *byte; ++byte) key = (key ^ (unsigned char)*byte) * 0x100000001B3u;
    return key;
}

// The top 24 bits of SplitMix64.
static uint32_t random_bits(uint64_t key, uint64_t index) {
    uint64_t z = key + (index + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (uint32_t)(z >> 40);
}

static float* of_layer(const Tensor* tensor, int layer) {
    return tensor->memory + (size_t)layer * tensor->rows * tensor->columns;
}

static void draw_weights(const Draw* draw, int layer) {
    char name[64];
    if (draw->tensor->in_layers) {
        snprintf(name, sizeof name, "%d/%s", layer, draw->name);
    } else {
        snprintf(name, sizeof name, "%s", draw->name);
    }
    const uint64_t key = key_of(name);
    const float scale = (float)(draw->std_deviation * sqrt(12.0) / (1 << 24));
    const size_t columns = draw->tensor->columns, count = draw->rows * columns;
    float* const out = of_layer(draw->tensor, layer) + draw->first_row * columns;
    for (size_t i = 0; i < count; ++i) {
        // volatile: the product is rounded before 1 is added, on machines that fuse the two as well.
        volatile float value = (float)((int32_t)random_bits(key, i) - (1 << 23)) * scale;
        out[i] = draw->about_one ? value + 1.0f : value;
    }
}

static void draw_all_weights(void) {
    for (size_t i = 0; i < sizeof TENSORS / sizeof *TENSORS; ++i) {
        Tensor* const tensor = TENSORS[i];
        tensor->memory = allocate((size_t)tensor->layers * tensor->rows * tensor->columns);
    }
    for (size_t i = 0; i < sizeof DRAWS / sizeof *DRAWS; ++i) {
        for (int layer = 0; layer < DRAWS[i].tensor->layers; ++layer) draw_weights(&DRAWS[i], layer);
    }
}

static void draw_tokens(int* tokens) {
    const uint64_t key = key_of("tokens/0/0");
    for (int i = 0; i < SEQ; ++i) tokens[i] = (int)(((uint64_t)random_bits(key, i) * VOCAB) >> 24);
}

// ---- The phases of the pass. Matrices are row-major; weights are [out, in].

// Independent partial sums, which the compiler turns into vector instructions without reordering any addition.
static float dot(const float* a, const float* b, int count) {
    float sums[16] = {0};
    int i = 0;
    for (; i + 16 <= count; i += 16) {
        for (int lane = 0; lane < 16; ++lane) sums[lane] += a[i + lane] * b[i + lane];
    }
    for (; i < count; ++i) sums[0] += a[i] * b[i];
    for (int half = 8; half > 0; half /= 2) {
        for (int lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
    }
    return sums[0];
}

static void embed(const int* tokens, float* x) {
    for (int row = 0; row < SEQ; ++row) {
        const float* const token = embedding.memory + (size_t)tokens[row] * D_MODEL;
        const float* const place = position.memory + (size_t)row * D_MODEL;
        for (int i = 0; i < D_MODEL; ++i) x[(size_t)row * D_MODEL + i] = token[i] + place[i];
    }
}

static void layernorm(const float* x, const float* gain, const float* shift, float* out, int rows) {
    for (int row = 0; row < rows; ++row, x += D_MODEL, out += D_MODEL) {
        float sum = 0.0f, squares = 0.0f;
        for (int i = 0; i < D_MODEL; ++i) sum += x[i];
        const float mean = sum / D_MODEL;
        for (int i = 0; i < D_MODEL; ++i) {
            out[i] = x[i] - mean;
            squares += out[i] * out[i];
        }
        const float factor = 1.0f / sqrtf(squares / D_MODEL + LAYERNORM_EPS);
        for (int i = 0; i < D_MODEL; ++i) out[i] = out[i] * factor * gain[i] + shift[i];
    }
}

static float activation(float x) {
#if defined(GELU_ERF)
    return 0.5f * x * (1.0f + erff(x * 0.707106781f));
#elif defined(GELU_TANH)
    return 0.5f * x * (1.0f + tanhf(0.797884561f * (x + 0.044715f * x * x * x)));
#else
    return x > 0.0f ? x : 0.0f;
#endif
}

// out[rows, columns] = a[rows, inner] w' (+ bias, then the activation) (+ residual). A row of w serves all rows of a.
static void gemm(const float* a, const float* w, const float* bias, const float* residual, bool activate, float* out,
                 int rows, int columns, int inner) {
    for (int column = 0; column < columns; ++column) {
        for (int row = 0; row < rows; ++row) {
            const size_t at = (size_t)row * columns + column;
            float value = dot(a + (size_t)row * inner, w + (size_t)column * inner, inner);
            if (bias != NULL) value += bias[column];
            if (activate) value = activation(value);
            if (residual != NULL) value += residual[at];
            out[at] = value;
        }
    }
}

// Causal softmax(q k' / sqrt(d_head)) v of qkv[SEQ, 3 * D_MODEL], head by head and query by query.
static void attention(const float* qkv, float* scores, float* out) {
    const size_t ld = 3 * D_MODEL;
    const float scale = 1.0f / sqrtf(D_HEAD);
    for (int head = 0; head < HEADS; ++head) {
        const float *q = qkv + head * D_HEAD, *k = q + D_MODEL, *v = k + D_MODEL;
        for (int query = 0; query < SEQ; ++query) {
            float highest = -INFINITY, sum = 0.0f;
            for (int key = 0; key <= query; ++key) {
                scores[key] = dot(q + query * ld, k + key * ld, D_HEAD) * scale;
                if (scores[key] > highest) highest = scores[key];
            }
            float* const mixed = out + (size_t)query * D_MODEL + head * D_HEAD;
            for (int i = 0; i < D_HEAD; ++i) mixed[i] = 0.0f;
            for (int key = 0; key <= query; ++key) {
                const float weight = expf(scores[key] - highest);
                sum += weight;
                for (int i = 0; i < D_HEAD; ++i) mixed[i] += weight * v[key * ld + i];
            }
            for (int i = 0; i < D_HEAD; ++i) mixed[i] /= sum;
        }
    }
}

// ---- The pass

typedef struct {
    float *x, *xn, *qkv, *scores, *att, *x_mid, *h, *logits;
} Activations;

static Activations allocate_activations(void) {
    const size_t rows = SEQ, width = D_MODEL;
    const Activations a = {
        .x = allocate(rows * width),
        .xn = allocate(rows * width),
        .qkv = allocate(rows * 3 * width),
        .scores = allocate(rows),
        .att = allocate(rows * width),
        .x_mid = allocate(rows * width),
        .h = allocate(rows * D_FF),
        .logits = allocate(VOCAB),
    };
    return a;
}

static void pass(const int* tokens, Activations a) {
    embed(tokens, a.x);
    for (int l = 0; l < LAYERS; ++l) {
        layernorm(a.x, of_layer(&gain1, l), of_layer(&shift1, l), a.xn, SEQ);
        gemm(a.xn, of_layer(&wqkv, l), of_layer(&bqkv, l), NULL, false, a.qkv, SEQ, 3 * D_MODEL, D_MODEL);
        attention(a.qkv, a.scores, a.att);
        gemm(a.att, of_layer(&wo, l), of_layer(&bo, l), a.x, false, a.x_mid, SEQ, D_MODEL, D_MODEL);
        layernorm(a.x_mid, of_layer(&gain2, l), of_layer(&shift2, l), a.xn, SEQ);
        gemm(a.xn, of_layer(&w1, l), of_layer(&b1, l), NULL, true, a.h, SEQ, D_FF, D_MODEL);
        gemm(a.h, of_layer(&w2, l), of_layer(&b2, l), a.x_mid, false, a.x, SEQ, D_MODEL, D_FF);
    }
    layernorm(a.x + (size_t)(SEQ - 1) * D_MODEL, gainf.memory, shiftf.memory, a.xn, 1);
    gemm(a.xn, whead.memory, NULL, NULL, false, a.logits, 1, VOCAB, D_MODEL);
}

// Compares the logits with the float64 reference: ||out - reference|| / ||reference||.
static int passes_check(const float* logits) {
    double difference = 0.0, norm = 0.0;
    for (int i = 0; i < REFERENCE_LOGITS; ++i) {
        const double off = logits[i] - REFERENCE[i];
        difference += off * off;
        norm += REFERENCE[i] * REFERENCE[i];
    }
    const double error = sqrt(difference / norm);
    const int good = error <= TOLERANCE;
    printf("logits %.6f %.6f, reference %.6f %.6f, error %.1e of %.0e allowed: %s\n", logits[0], logits[1],
           REFERENCE[0], REFERENCE[1], error, TOLERANCE, good ? "PASS" : "FAIL");
    return good;
}

static double now_ms(void) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return 1e3 * now.tv_sec + 1e-6 * now.tv_nsec;
}

static int by_value(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static void print_time(const int* tokens, Activations a, int passes) {
    double* const times = malloc(passes * sizeof *times);
    if (times == NULL) exit(3);
    for (int i = 0; i < passes; ++i) {
        const double begun = now_ms();
        pass(tokens, a);
        times[i] = now_ms() - begun;
    }
    qsort(times, passes, sizeof *times, by_value);
    printf("time %.3f ms, median of %d passes (%.3f to %.3f)\n", times[passes / 2], passes, times[0],
           times[passes - 1]);
    free(times);
}

int main(int argc, char** argv) {
    const int passes = argc > 1 ? atoi(argv[1]) : 3;
    if (argc > 2 || passes < 0) {
        fprintf(stderr, "usage: %s [PASSES TO TIME, 0 TO CHECK ONLY]\n", argv[0]);
        return 2;
    }
    printf("plan cpu-loops, %s, seed %lld, one core\n", WORKLOAD, SEED);
    draw_all_weights();
    static int tokens[SEQ];
    draw_tokens(tokens);
    const Activations activations = allocate_activations();
    pass(tokens, activations);
    if (!passes_check(activations.logits)) return 1;
    if (passes > 0) print_time(tokens, activations, passes);
    return 0;
}
