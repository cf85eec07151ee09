"""The words that the screen uses, each in a sentence. Help and search show them."""

GLOSSARY = (
    ("rung", "A named plan of the ladder, written as its change against another rung."),
    ("plan", "Everything that fixes a runnable pass: kernels by site, layout, math, folds, graph, batch."),
    ("site", "A phase at its number of rows, where a kernel is chosen: w1, and w1@1 in a pruned last layer."),
    ("window", "One stretch of measurement in which plans run alternately. Only its times are compared."),
    ("gate", "The check of the answer against float64. A plan that fails it gets no time."),
    ("pinned", "The plan that the current one is paired with."),
    ("A/A floor", "What two independently prepared copies of one plan differ by. Less than that is noise."),
    ("ceiling", "A peak that was measured on this device, with its clock."),
    (
        "floor",
        "The least time that physics allows for a phase's work: arithmetic or memory, whichever is longer.",
    ),
    (
        "reach",
        "The least that launches which wait for each other can take: launch, first load, floor, last store.",
    ),
    ("excess", "The time above reach, or above the floor if reach is unknown: what could be won at most."),
    ("binds", "The term with the largest share of the time; unknown if more than half of it is unexplained."),
    ("feed", "What the busiest SM takes from L2, at the rate of one SM, or all bytes at that of all SMs."),
    ("unexplained", "Time that no term of the model accounts for."),
    (
        "occupancy",
        "Warps that an SM holds at once, of the most it could. A small grid gives it fewer than the limit.",
    ),
    ("wave", "Blocks of a grid over the blocks that the whole device holds at once."),
    ("device and wall", "Device: the pass without waiting for the host. Wall: as used, the host included."),
    ("host bound", "The host submits more slowly than the device works: wall exceeds device."),
    (
        "split-K",
        "The inner axis of a product is divided among blocks, and the parts are added in a fixed order.",
    ),
    ("flash attention", "Keys and values stream through shared memory; no score matrix goes to memory."),
    ("fold", "A layernorm's gain and shift are multiplied into the weights that follow, beforehand."),
    ("prune", "The last layer is computed for the last token only, with all of its keys and values."),
    ("pdl", "Programmatic dependent launch: a kernel starts while the one before it drains."),
    ("baseline", "A library or a framework that is measured beside the ladder: cuBLAS, PyTorch."),
)
"""(word, meaning)."""
