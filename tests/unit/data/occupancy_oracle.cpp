// NVIDIA's occupancy calculator behind stdin and stdout, for tests/unit/test_occupancy.py.
//
// A line `limits MAJOR MINOR` answers: status, blocks per SM, register unit, partitions, shared memory unit,
// largest shared memory split in KiB.
// A line `occupancy MAJOR MINOR WARPS SMEM_SM SMEM_OPTIN THREADS REGISTERS STATIC DYNAMIC BARRIERS`
// answers: status, blocks per SM, limiting factors.

#include <cuda_occupancy.h>

#include <cstdio>
#include <cstring>

static cudaOccDeviceProp device(int major, int minor) {
    cudaOccDeviceProp prop;
    prop.computeMajor = major;
    prop.computeMinor = minor;
    prop.maxThreadsPerBlock = 1024;
    prop.regsPerBlock = 65536;
    prop.regsPerMultiprocessor = 65536;
    prop.warpSize = 32;
    prop.sharedMemPerBlock = 48 * 1024;
    prop.numSms = 1;
    prop.reservedSharedMemPerBlock = 1024;
    return prop;
}

static void print_limits(int major, int minor) {
    cudaOccDeviceProp prop = device(major, minor);
    int blocks = 0, register_unit = 0, partitions = 0, smem_unit = 0;
    int status = cudaOccMaxBlocksPerMultiprocessor(&blocks, &prop);
    status |= cudaOccRegAllocationGranularity(&register_unit, &prop);
    status |= cudaOccSubPartitionsPerMultiprocessor(&partitions, &prop);
    status |= cudaOccSMemAllocationGranularity(&smem_unit, &prop);
    int largest_kib = 0;
    for (int kib = 1; kib <= 512; ++kib) {
        size_t split = size_t(kib) * 1024;
        if (cudaOccAlignUpShmemSizeVoltaPlus(&split, &prop) == CUDA_OCC_SUCCESS) largest_kib = int(split / 1024);
    }
    std::printf("%d %d %d %d %d %d\n", status, blocks, register_unit, partitions, smem_unit, largest_kib);
}

static void print_occupancy(int major, int minor, int warps, int smem_sm, int smem_optin, int threads,
                            int registers, int static_smem, int dynamic_smem, int barriers) {
    cudaOccDeviceProp prop = device(major, minor);
    prop.maxThreadsPerMultiprocessor = warps * 32;
    prop.sharedMemPerMultiprocessor = size_t(smem_sm);
    prop.sharedMemPerBlockOptin = size_t(smem_optin);

    cudaOccFuncAttributes attributes;
    attributes.maxThreadsPerBlock = 1024;
    attributes.numRegs = registers;
    attributes.sharedSizeBytes = size_t(static_smem);
    attributes.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    attributes.maxDynamicSharedSizeBytes = size_t(dynamic_smem);
    attributes.numBlockBarriers = barriers;

    cudaOccDeviceState state;
    cudaOccResult result;
    std::memset(&result, 0, sizeof result);
    int status = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &prop, &attributes, &state, threads,
                                                         size_t(dynamic_smem));
    std::printf("%d %d %u\n", status, result.activeBlocksPerMultiprocessor, result.limitingFactors);
}

int main() {
    char word[16];
    int major, minor;
    while (std::scanf("%15s %d %d", word, &major, &minor) == 3) {
        if (std::strcmp(word, "limits") == 0) {
            print_limits(major, minor);
            continue;
        }
        int v[8];
        for (int& value : v) {
            if (std::scanf("%d", &value) != 1) return 1;
        }
        print_occupancy(major, minor, v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]);
    }
    return 0;
}
