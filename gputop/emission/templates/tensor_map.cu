// ---- Tensor maps: what the copy engine (TMA, sm_90 and later) is told of a tensor before it can bring boxes of it.

// The driver's own function, asked for at run time, so that the program need not be linked with the driver.
PFN_cuTensorMapEncodeTiled_v12000 tensor_map_encoder() {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
    CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found));
    if (found != cudaDriverEntryPointSuccess) {
        std::fprintf(stderr, "the driver has no tensor maps\n");
        std::exit(3);
    }
    return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
}

// `sizes` and `box` in elements, innermost dimension first; `strides` in elements, without the innermost dimension's.
// float32, rounded to TF32 on its way; rows of 128 bytes in shared memory, with the 128-byte swizzle.
TensorMap tensor_map(const float* tensor, const std::vector<cuuint64_t>& sizes, std::vector<cuuint64_t> strides,
                     const std::vector<cuuint32_t>& box) {
    static const PFN_cuTensorMapEncodeTiled_v12000 encode = tensor_map_encoder();
    for (cuuint64_t& stride : strides) stride *= sizeof(float);
    const std::vector<cuuint32_t> steps(sizes.size(), 1);
    CUtensorMap encoded;
    const CUresult status =
        encode(&encoded, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, static_cast<cuuint32_t>(sizes.size()),
               const_cast<float*>(tensor), sizes.data(), strides.data(), box.data(), steps.data(),
               CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (status != CUDA_SUCCESS) {
        std::fprintf(stderr, "the driver refuses a tensor map with error %d\n", static_cast<int>(status));
        std::exit(3);
    }
    static_assert(sizeof(TensorMap) == sizeof(CUtensorMap), "a kernel takes the map as the driver encodes it");
    TensorMap map;
    std::memcpy(&map, &encoded, sizeof map);
    return map;
}
