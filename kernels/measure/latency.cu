// Measures load latency by pointer chasing: one thread loads an address, and finds there the next address to load.
// Nothing overlaps, so the time of many such loads divided by their number is the time of one.
// Nodes lie `stride_bytes` apart, in windows whose number of nodes is a power of two. link_nodes points each node at
// another one of its window, in an order without an address pattern, and the last of a window at the first of the next
// window. The chase stays in a window until it has visited all of it, so that it misses few address translations.
// A launch continues where the one before stopped: no node is visited again before all have been.
#include "stamp.cuh"

struct LinkArgs {
    char* nodes;
    void** current;   // node at which the next launch continues
    int windows;
    int window_nodes;   // a power of two
    int stride_bytes;
};

struct ChaseArgs {
    void** current;
    long long* elapsed;   // cycles, ns
    int loads;            // a multiple of UNROLL
};

constexpr int UNROLL = 16;

extern "C" __global__ void link_nodes(const __grid_constant__ LinkArgs args) {
    const int count = args.windows * args.window_nodes;
    if (blockIdx.x == 0 && threadIdx.x == 0) *args.current = args.nodes;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        const int window = i / args.window_nodes, node_in_window = i % args.window_nodes;
        // A linear congruence with a full period modulo any power of two: the factor is 1 modulo 4, the addend odd.
        const int next = static_cast<int>(node_in_window * 1664525u + 1013904223u) & (args.window_nodes - 1);
        const int next_window = next == 0 ? (window + 1) % args.windows : window;
        const long long node = static_cast<long long>(next_window) * args.window_nodes + next;
        *reinterpret_cast<void**>(args.nodes + static_cast<long long>(i) * args.stride_bytes) =
            args.nodes + node * args.stride_bytes;
    }
}

// ld.cg bypasses L1.
__device__ __forceinline__ void* follow(void* node) {
    return reinterpret_cast<void*>(__ldcg(static_cast<const unsigned long long*>(node)));
}

extern "C" __global__ void chase(const __grid_constant__ ChaseArgs args) {
    void* node = *args.current;
    const Stamp begin = now();
#pragma unroll 1
    for (int done = 0; done < args.loads; done += UNROLL) {
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) node = follow(node);
    }
    *args.current = node;
    report(begin, args.elapsed);
}
