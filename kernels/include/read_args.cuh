// Arguments of the probes that measure how fast one SM takes bytes from L2.
#pragma once

struct ReadArgs {
    const char* in;
    long long* elapsed;   // cycles, ns
    int steps;            // stages' worth of `in`, each block reads all of them `repeats` times
    int repeats;
    int stride;           // from one step to the next; has no factor in common with `steps`
    int group;            // blocks that read the same step at the same time
};
