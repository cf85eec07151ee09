"""Hardware counters of a pass through Nsight Compute: the run, its report, the process that it profiles."""
