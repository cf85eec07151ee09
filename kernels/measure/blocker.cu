// Kernels that timing puts on the stream in addition to the pass.
//
// blocker: one thread spins until the host raises a flag, so that everything behind it is already queued when it
//   starts. A timeout of the global timer keeps a lost host from hanging the device; `timed_out` then tells the host
//   that the sample is worthless.
// spin: one thread a block runs for a given number of nanoseconds: work of known duration.
// empty: does nothing, to measure the cost of a launch.
// clock_stamp: notes cycles and nanoseconds, and on which SM: two of them on one SM give its clock between them.

struct BlockerArgs {
    const volatile int* released;   // host memory: the last ticket that may pass
    volatile int* timed_out;        // host memory: the last ticket that gave up waiting
    int ticket;
    int timeout_us;
};

struct SpinArgs {
    int* sink;          // written if the clock runs backwards (never): keeps the compiler from removing the loop
    int duration_ns;
};

struct EmptyArgs {
    int* unused;
};

struct ClockStampArgs {
    long long* stamp;   // host memory: cycles, ns, SM
};

__device__ __forceinline__ long long global_ns() {
    long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

extern "C" __global__ void blocker(const __grid_constant__ BlockerArgs args) {
    const long long end = global_ns() + 1000ll * args.timeout_us;
    // The difference is right even if tickets wrap around.
    while (*args.released - args.ticket < 0) {
        if (global_ns() > end) {
            *args.timed_out = args.ticket;
            return;
        }
    }
}

extern "C" __global__ void spin(const __grid_constant__ SpinArgs args) {
    const long long begin = global_ns();
    long long elapsed = 0;
    while (elapsed < args.duration_ns) {
        elapsed = global_ns() - begin;
        if (elapsed < 0) *args.sink = 1;
    }
}

extern "C" __global__ void empty(const __grid_constant__ EmptyArgs args) {}

extern "C" __global__ void clock_stamp(const __grid_constant__ ClockStampArgs args) {
    long long cycles, ns;
    int sm;
    asm volatile("mov.u64 %0, %%clock64;\n\tmov.u64 %1, %%globaltimer;\n\tmov.u32 %2, %%smid;"
                 : "=l"(cycles), "=l"(ns), "=r"(sm));
    args.stamp[0] = cycles;
    args.stamp[1] = ns;
    args.stamp[2] = sm;
}
