// Measures the cost of a grid barrier: a cooperative launch whose blocks only wait for each other, `barriers` times.
// The time of one is the time of many, less that of none, divided by their number. The barrier is that of cooperative
// groups, which the megakernel uses (megakernel/17_persistent.cu).
#include <cooperative_groups.h>

struct GridBarrierArgs {
    int barriers;
};

extern "C" __global__ void grid_barriers(const __grid_constant__ GridBarrierArgs args) {
    const auto grid = cooperative_groups::this_grid();
    for (int i = 0; i < args.barriers; ++i) grid.sync();
}
