"""What hardware counters say of our kernels, beside what the model declares of them.

    python -m benchmarks.counters docs/counters.json [RUNG...]

counts each kernel and shape of the rungs with Nsight Compute, all of ours if none is named, in one run.
`make results` writes docs/counters.md: those figures beside the rows of the shipped recordings.
"""
