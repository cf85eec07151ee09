// Programmatic dependent launch (griddepcontrol, sm_90 and up): a grid may start while the grid before it still runs.
// Below sm_90 a grid starts when the one before has ended, and both functions do nothing.
//
// The rule that keeps a chain of such grids correct: every thread of every grid calls griddep_wait() before it reads
// anything except weights, and before it writes anything. Threads that have nothing else to do call it too. When a
// grid has ended, all grids before it have ended then, however many launches back; so the memory that they read may
// be overwritten, and what they wrote is visible. It is always safe to call griddep_launch_dependents() early,
// because the next grid waits for the end of this one.
#pragma once

// Waits until the grids that this grid depends on have ended and their writes are visible.
__device__ __forceinline__ void griddep_wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the next grid start as soon as every block of this grid has called it: the next grid's blocks then use the
// SMs that this grid leaves free.
__device__ __forceinline__ void griddep_launch_dependents() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}
