// setmaxnreg (sm_90a only): registers move from warpgroups that need few to those that need many. Each function is named
// after the PTX instruction that it issues.
//
// All warps of a warpgroup call it together, in a branch of their own, of a kernel whose registers are bounded by
// __launch_bounds__. REGISTERS, of a thread, is a multiple of 8 from 24 to 256.
#pragma once

// Gives up registers above this number.
template <int REGISTERS>
__device__ __forceinline__ void setmaxnreg_dec() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

// Waits until there are as many registers.
template <int REGISTERS>
__device__ __forceinline__ void setmaxnreg_inc() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}
