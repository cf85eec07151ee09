"""The rungs of every backend, each after the one it changes, and the toggles."""

from __future__ import annotations

from gputop.phases import rungs_cpu, rungs_cuda
from gputop.plan.rungs import Rung, Toggle

RUNGS: tuple[Rung, ...] = rungs_cpu.RUNGS + rungs_cuda.RUNGS

ON_OFF = ("on", "off")

TOGGLES = (
    Toggle(
        "layout",
        "layout",
        ("row", "transposed"),
        "how a weight lies in memory: an output's weights together, or an input's",
        ("cpu", "cuda"),
    ),
    Toggle(
        "math",
        "math",
        ("fp32", "tf32", "bf16"),
        "what the products are computed in, and in bf16 weights and activations stored in; sums stay fp32",
        ("cpu", "cuda"),
    ),
    Toggle(
        "fused_qkv",
        "fused_qkv",
        ON_OFF,
        "queries, keys and values in one product instead of three",
        ("cpu", "cuda"),
    ),
    Toggle(
        "fold",
        "fold",
        ON_OFF,
        "layernorm gain and shift folded into the weights that follow, beforehand",
        ("cpu", "cuda"),
    ),
    Toggle(
        "fused_stores",
        "fused_stores",
        ON_OFF,
        "bias, activation and residual in the product's own store, where its kernel can",
        ("cuda",),
    ),
    Toggle(
        "prune",
        "prune",
        ON_OFF,
        "the last layer computed for each sequence's last token only, with full keys and values",
        ("cpu", "cuda"),
    ),
    Toggle("graph", "graph", ON_OFF, "all launches of a pass submitted as one captured graph", ("cuda",)),
    Toggle(
        "pdl",
        "pdl",
        ON_OFF,
        "programmatic dependent launch: a kernel starts while the one before drains",
        ("cuda",),
    ),
    Toggle(
        "carveout",
        "carveout",
        ("auto", "shared"),
        "an SM's memory: divided as each kernel needs it, or all that can be as shared memory throughout",
        ("cuda",),
    ),
    Toggle("threads", "threads", ("1", "all"), "BLAS threads", ("cpu",)),
    Toggle("batch", "batch", (), "sequences a pass", ("cpu", "cuda")),
)
