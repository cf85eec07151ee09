// Programmatic dependent launch: a grid that may start while the one before it still runs (sm_90 and up;
// before that a grid starts when the one before has ended, and both calls are nothing).
//
// The rule that makes a chain of such grids right: every thread of every one of them waits before it reads
// anything but weights and before it writes anything, also a thread that has nothing else to do. Then a grid
// that has ended implies that all before it have, so what it read may be overwritten and what it wrote is there,
// however many launches back. Letting the next grid start early is always safe: it waits for this one's end.
#pragma once

// Until the grids that this one depends on have ended and their writes are seen.
__device__ __forceinline__ void wait_for_grid_before() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// The next grid's blocks may come once every block of this one has said so: they take what room it leaves.
__device__ __forceinline__ void let_next_grid_start() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}
