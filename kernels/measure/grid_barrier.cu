// The cost of a grid barrier: a cooperative launch whose blocks do nothing but wait for each other, `barriers`
// times. The time of many less that of none, over their number, is one. The barrier is cooperative groups' own,
// which is the megakernel's (megakernel/17_persistent.cu).
#include <cooperative_groups.h>

struct GridBarrierArgs {
    int barriers;
};

extern "C" __global__ void grid_barriers(const __grid_constant__ GridBarrierArgs args) {
    const auto grid = cooperative_groups::this_grid();
    for (int i = 0; i < args.barriers; ++i) grid.sync();
}
