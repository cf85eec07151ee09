// Measures the rate at which one SM takes bytes from L2 by cp.async into shared memory, the way our own GEMMs fill their
// stages: all threads copy 16 bytes at a time, the ring holds STAGES stages, and nothing reads what arrives.
// Blocks of the same group read the same words at the same time, as the tiles of a row or a column of a product do.
#include "cp_async.cuh"
#include "read_args.cuh"
#include "stamp.cuh"

constexpr int THREADS = 256, STAGE_BYTES = 16384, STAGES = 8;

extern "C" __global__ void __launch_bounds__(THREADS) async_read(const __grid_constant__ ReadArgs args) {
    extern __shared__ __align__(128) char stages[];
    const Stamp begin = now();
    const int total = args.steps * args.repeats;
    int fetch = blockIdx.x / args.group % args.steps;
    auto start_next = [&](int done) {
        const char* from = args.in + static_cast<long long>(fetch) * STAGE_BYTES;
        char* stage = stages + done % STAGES * STAGE_BYTES;
#pragma unroll
        for (int at = 0; at < STAGE_BYTES; at += THREADS * 16) {
            const int offset = at + threadIdx.x * 16;
            cp_async_16(reinterpret_cast<float*>(stage + offset), reinterpret_cast<const float*>(from + offset));
        }
        fetch += args.stride;
        if (fetch >= args.steps) fetch -= args.steps;
    };
#pragma unroll 1
    for (int i = 0; i < STAGES; ++i) {
        if (i < total) start_next(i);
        cp_async_commit_group();
    }
#pragma unroll 1
    for (int done = 0; done < total; ++done) {
        cp_async_wait_group<STAGES - 1>();
        if (done + STAGES < total) start_next(done + STAGES);
        cp_async_commit_group();
    }
    cp_async_wait_group<0>();
    report(begin, args.elapsed);
}
