// ---- cuBLAS

constexpr size_t CUBLAS_WORKSPACE_BYTES = 32 << 20;
cublasHandle_t cublas;

void check_cublas(cublasStatus_t status, int line) {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    std::fprintf(stderr, "line %d: cuBLAS answers with status %d\n", line, static_cast<int>(status));
    std::exit(3);
}
#define CHECK_CUBLAS(call) check_cublas(call, __LINE__)

void open_cublas() {
    CHECK_CUBLAS(cublasCreate(&cublas));
    // The stream first: setting it takes a workspace away.
    CHECK_CUBLAS(cublasSetStream(cublas, stream));
    CHECK_CUBLAS(cublasSetWorkspace(cublas, allocate<char>(CUBLAS_WORKSPACE_BYTES), CUBLAS_WORKSPACE_BYTES));
}

// Row-major c = a w is column-major c' = w' a': cuBLAS is given w first.
void cublas_gemm(const GemmArgs& g) {
    const float one = 1.0f, zero = 0.0f;
    CHECK_CUBLAS(cublasGemmEx(cublas, TRANSPOSED_WEIGHTS ? CUBLAS_OP_N : CUBLAS_OP_T, CUBLAS_OP_N, g.columns, g.rows,
                              g.inner, &one, g.w, CUDA_R_32F, g.ldw, g.a, CUDA_R_32F, g.lda, &zero, g.c, CUDA_R_32F,
                              g.ldc, COMPUTE_TYPE, CUBLAS_GEMM_DEFAULT));
}
