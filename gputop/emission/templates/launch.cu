// Ends the program with exit code 3 if a CUDA call fails.
void check(cudaError_t status, int line) {
    if (status == cudaSuccess) return;
    std::fprintf(stderr, "line %d: %s\n", line, cudaGetErrorString(status));
    std::exit(3);
}
#define CHECK(call) check(call, __LINE__)

cudaStream_t stream;
int sm_count;

// Device memory full of NaN, so that a value that nobody writes shows in the logits.
template <class T>
T* allocate(long long count) {
    T* memory = nullptr;
    CHECK(cudaMalloc(&memory, count * sizeof(T)));
    CHECK(cudaMemsetAsync(memory, 0xff, count * sizeof(T), stream));
    return memory;
}

// A kernel's workspace. It becomes a pointer of the type that the kernel's struct asks for.
struct Workspace {
    void* memory;
    template <class T>
    operator T*() const {
        return static_cast<T*>(memory);
    }
};

enum Flags : unsigned {
    PLAIN = 0,
    COOPERATIVE = 1,  // all blocks are resident at once, and may wait for each other
    DEPENDENT = 2,    // programmatic dependent launch: may start while the launch before it drains
    MOST_SMEM = 4,    // asks for as much of an SM's memory as shared memory as can be
};

struct Shape {
    dim3 grid;  // {0, 0, 0}: one wave, as many blocks as the device holds at once
    dim3 block;
    int smem_bytes = 0;  // dynamic shared memory of a block
    int cluster = 1;     // blocks of a cluster, along x
    unsigned flags = PLAIN;
};

dim3 one_wave(const void* kernel, const Shape& shape) {
    int blocks_per_sm = 0;
    const int threads = shape.block.x * shape.block.y * shape.block.z;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_per_sm, kernel, threads, shape.smem_bytes));
    if (blocks_per_sm == 0) {
        std::fprintf(stderr, "no block of the kernel fits on an SM of this device\n");
        std::exit(3);
    }
    return dim3(blocks_per_sm * sm_count);
}

template <class T>
struct Same {
    using Type = T;
};

// Every kernel takes one struct by value, and its type says which: the struct's fields may stand in bare braces.
template <class Args>
void launch(void (*kernel)(Args), const Shape& shape, typename Same<Args>::Type args) {
    const void* const function = reinterpret_cast<const void*>(kernel);
    if (shape.smem_bytes > 0) {
        CHECK(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, shape.smem_bytes));
    }
    if (shape.cluster > 8) CHECK(cudaFuncSetAttribute(function, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));

    cudaLaunchAttribute attributes[4];
    unsigned count = 0;
    if (shape.flags & COOPERATIVE) {
        attributes[count].id = cudaLaunchAttributeCooperative;
        attributes[count++].val.cooperative = 1;
    }
    if (shape.cluster > 1) {
        attributes[count].id = cudaLaunchAttributeClusterDimension;
        attributes[count].val.clusterDim.x = shape.cluster;
        attributes[count].val.clusterDim.y = 1;
        attributes[count++].val.clusterDim.z = 1;
    }
    if (shape.flags & DEPENDENT) {
        attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attributes[count++].val.programmaticStreamSerializationAllowed = 1;
    }
    if (shape.flags & MOST_SMEM) {
        attributes[count].id = cudaLaunchAttributePreferredSharedMemoryCarveout;
        attributes[count++].val.sharedMemCarveout = cudaSharedmemCarveoutMaxShared;
    }
    cudaLaunchConfig_t config = {};
    config.gridDim = shape.grid.x > 0 ? shape.grid : one_wave(function, shape);
    config.blockDim = shape.block;
    config.dynamicSmemBytes = shape.smem_bytes;
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = count;
    void* parameters[] = {&args};
    CHECK(cudaLaunchKernelExC(&config, function, parameters));
}
