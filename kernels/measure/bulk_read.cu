// Measures the rate at which one SM takes bytes from L2 by bulk copies into shared memory, the way TMA fills a GEMM's
// stages: one thread starts a copy of a whole stage, the ring holds STAGES of them, and nothing reads what arrives.
// Blocks of the same group read the same words at the same time, as the tiles of a row or a column of a product do.
// arch: 90
#include "read_args.cuh"
#include "stamp.cuh"

constexpr int STAGE_BYTES = 16384, STAGES = 12;

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void start_copy(void* stage, const char* from, unsigned long long* full) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(full)), "r"(STAGE_BYTES)
                 : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(stage)),
                 "l"(from), "r"(STAGE_BYTES), "r"(shared_address(full))
                 : "memory");
}

__device__ __forceinline__ void wait(unsigned long long* full, int parity) {
    unsigned done = 0;
    while (!done) {
        asm volatile("{.reg .pred p;\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;}"
                     : "=r"(done)
                     : "r"(shared_address(full)), "r"(parity)
                     : "memory");
    }
}

extern "C" __global__ void __launch_bounds__(32) bulk_read(const __grid_constant__ ReadArgs args) {
    extern __shared__ __align__(128) char stages[];
    __shared__ __align__(8) unsigned long long full[STAGES];
    if (threadIdx.x != 0) return;
    const Stamp begin = now();
    for (int i = 0; i < STAGES; ++i)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&full[i])) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    const int total = args.steps * args.repeats;
    int fetch = blockIdx.x / args.group % args.steps;
    auto start_next = [&](int done) {
        start_copy(stages + done % STAGES * STAGE_BYTES, args.in + static_cast<long long>(fetch) * STAGE_BYTES,
                   &full[done % STAGES]);
        fetch += args.stride;
        if (fetch >= args.steps) fetch -= args.steps;
    };
#pragma unroll 1
    for (int i = 0; i < min(STAGES, total); ++i) start_next(i);
#pragma unroll 1
    for (int done = 0; done < total; ++done) {
        wait(&full[done % STAGES], done / STAGES & 1);
        if (done + STAGES < total) start_next(done + STAGES);
    }
    report(begin, args.elapsed);
}
