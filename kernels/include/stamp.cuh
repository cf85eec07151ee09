// Timestamps taken inside a kernel. Cycles over nanoseconds of its first block give the SM clock during the kernel.
#pragma once

struct Stamp {
    long long cycles, ns;
};

__device__ __forceinline__ Stamp now() {
    Stamp stamp;
    asm volatile("mov.u64 %0, %%clock64;\n\tmov.u64 %1, %%globaltimer;" : "=l"(stamp.cycles), "=l"(stamp.ns));
    return stamp;
}

// Adds this launch's cycles and nanoseconds to elapsed[0] and elapsed[1].
__device__ __forceinline__ void report(Stamp begin, long long* elapsed) {
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        const Stamp end = now();
        elapsed[0] += end.cycles - begin.cycles;
        elapsed[1] += end.ns - begin.ns;
    }
}
