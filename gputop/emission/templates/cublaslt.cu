// ---- cuBLASLt. It takes the first algorithm of the library's heuristic.

constexpr size_t LT_WORKSPACE_BYTES = 32 << 20;
cublasLtHandle_t lt;
void* lt_workspace;

void check_lt(cublasStatus_t status, int line) {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    std::fprintf(stderr, "line %d: cuBLASLt answers with status %d\n", line, static_cast<int>(status));
    std::exit(3);
}
#define CHECK_LT(call) check_lt(call, __LINE__)

void open_cublaslt() {
    CHECK_LT(cublasLtCreate(&lt));
    lt_workspace = allocate<char>(LT_WORKSPACE_BYTES);
}

// A product as the library describes it, without the operands' addresses.
#if defined(GELU_TANH)
constexpr cublasLtEpilogue_t LT_ACTIVATION = CUBLASLT_EPILOGUE_GELU, LT_ACTIVATION_BIAS = CUBLASLT_EPILOGUE_GELU_BIAS;
#else
constexpr cublasLtEpilogue_t LT_ACTIVATION = CUBLASLT_EPILOGUE_RELU, LT_ACTIVATION_BIAS = CUBLASLT_EPILOGUE_RELU_BIAS;
#endif

struct LtProduct {
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t w, a, residual, c;
    cublasLtMatmulAlgo_t algorithm;
};

cublasLtMatrixLayout_t lt_layout(int rows, int columns, int ld) {
    cublasLtMatrixLayout_t layout;
    CHECK_LT(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, rows, columns, ld));
    return layout;
}

template <class T>
void lt_set(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute, T value) {
    CHECK_LT(cublasLtMatmulDescSetAttribute(product, attribute, &value, sizeof value));
}

// Row-major c = a w is column-major c' = w' a': the library is given w first, and the bias runs along its rows.
LtProduct lt_describe(const GemmArgs& g) {
    LtProduct p;
    CHECK_LT(cublasLtMatmulDescCreate(&p.product, COMPUTE_TYPE, CUDA_R_32F));
    lt_set(p.product, CUBLASLT_MATMUL_DESC_TRANSA, TRANSPOSED_WEIGHTS ? CUBLAS_OP_N : CUBLAS_OP_T);
    lt_set(p.product, CUBLASLT_MATMUL_DESC_EPILOGUE,
           g.bias ? (g.activate ? LT_ACTIVATION_BIAS : CUBLASLT_EPILOGUE_BIAS)
                  : (g.activate ? LT_ACTIVATION : CUBLASLT_EPILOGUE_DEFAULT));
    if (g.bias) lt_set(p.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, g.bias);
    p.w = TRANSPOSED_WEIGHTS ? lt_layout(g.columns, g.inner, g.ldw) : lt_layout(g.inner, g.columns, g.ldw);
    p.a = lt_layout(g.inner, g.rows, g.lda);
    p.residual = lt_layout(g.columns, g.rows, g.residual ? g.ldr : g.ldc);
    p.c = lt_layout(g.columns, g.rows, g.ldc);

    cublasLtMatmulPreference_t preference;
    CHECK_LT(cublasLtMatmulPreferenceCreate(&preference));
    CHECK_LT(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                  &LT_WORKSPACE_BYTES, sizeof LT_WORKSPACE_BYTES));
    cublasLtMatmulHeuristicResult_t found;
    int count = 0;
    CHECK_LT(cublasLtMatmulAlgoGetHeuristic(lt, p.product, p.w, p.a, p.residual, p.c, preference, 1, &found, &count));
    CHECK_LT(cublasLtMatmulPreferenceDestroy(preference));
    if (count == 0) {
        std::fprintf(stderr, "cuBLASLt has no algorithm for a product of %d x %d x %d\n", g.rows, g.columns, g.inner);
        std::exit(3);
    }
    p.algorithm = found.algo;
    return p;
}

// Products that differ only in where their operands lie share a description.
const LtProduct& lt_product(const GemmArgs& g) {
    static std::map<std::array<int, 10>, LtProduct> described;
    const std::array<int, 10> key = {g.rows, g.columns, g.inner, g.lda,               g.ldw,
                                     g.ldr,  g.ldc,     g.activate,      g.bias != nullptr,   g.residual != nullptr};
    const auto place = described.find(key);
    return place != described.end() ? place->second : described.emplace(key, lt_describe(g)).first->second;
}

void cublaslt_gemm(const GemmArgs& g) {
    const LtProduct& p = lt_product(g);
    if (g.bias) lt_set(p.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, g.bias);
    const float one = 1.0f, beta = g.residual ? 1.0f : 0.0f;
    CHECK_LT(cublasLtMatmul(lt, p.product, &one, g.w, p.w, g.a, p.a, &beta, g.residual ? g.residual : g.c, p.residual,
                            g.c, p.c, &p.algorithm, lt_workspace, LT_WORKSPACE_BYTES, stream));
}
