"""The cuda backend's rungs, oracles and peers."""

from __future__ import annotations

from gputop.spec import Prediction, Rung


def _gemms(kernel: str, *phases: str) -> tuple[tuple[str, str], ...]:
    return tuple((phase, kernel) for phase in phases or ("qkv", "wo", "w1", "w2", "head"))


RUNGS = (
    Rung(
        id="naive",
        number=1,
        backend="cuda",
        idea="The CPU code with one thread for each output element; every thread walks its own row of weights.",
        before=None,
        use=(
            ("embed", "embed_gather"),
            ("ln1", "layernorm_warp_per_row"),
            ("ln2", "layernorm_warp_per_row"),
            ("lnf", "layernorm_warp_per_row"),
            ("attention", "attention_naive"),
            *_gemms("gemm_naive"),
        ),
    ),
    Rung(
        id="coalesced",
        number=2,
        backend="cuda",
        idea="Weights stored transposed, so that a warp reads consecutive words: one layout bit.",
        before="naive",
        fields=(("layout", "transposed"),),
        use=_gemms("gemm_coalesced"),
        prediction=Prediction(6.0, 3.5, 12.0, "floor"),
    ),
    Rung(
        id="tiled",
        number=3,
        backend="cuda",
        idea="16x16 tiles in shared memory: each fetched word serves 16 multiply-adds.",
        before="coalesced",
        use=_gemms("gemm_tiled"),
        prediction=Prediction(1.4, 1.0, 2.0, "intuition"),
    ),
    Rung(
        id="register-tiled",
        number=4,
        backend="cuda",
        idea="4x4 sums in each thread's registers, and queries, keys and values in one product.",
        before="tiled",
        fields=(("fused_qkv", True),),
        use=_gemms("gemm_register_tiled"),
        prediction=Prediction(1.1, 0.8, 1.5, "phase table"),
    ),
    Rung(
        id="small-tiles",
        number=5,
        backend="cuda",
        idea="Smaller tiles give the narrow products more blocks, with fewer warps in each.",
        before="register-tiled",
        use=_gemms("gemm_small_tiles"),
        prediction=Prediction(0.95, 0.85, 1.05, "phase table"),
    ),
    Rung(
        id="split-k",
        number=6,
        backend="cuda",
        idea="The narrow products divide their inner axis among blocks and add the parts in order.",
        before="register-tiled",
        use=_gemms("gemm_split_k_8", "wo", "w2", "head") + _gemms("gemm_split_k_4", "qkv", "w1"),
        prediction=Prediction(1.8, 1.3, 2.5, "phase table"),
    ),
    Rung(
        id="oracle-fp32",
        number=6,
        backend="cuda",
        kind="oracle",
        idea="Every product by the vendor's library in fp32: not a step, a price for the headroom.",
        before="split-k",
        use=_gemms("cublas"),
    ),
    Rung(
        id="oracle-tf32",
        number=6,
        backend="cuda",
        kind="oracle",
        idea="The same library on tensor cores in TF32.",
        before="oracle-fp32",
        fields=(("math", "tf32"),),
        prediction=Prediction(1.3, 1.1, 1.8, "floor"),
    ),
    Rung(
        id="attention",
        number=7,
        backend="cuda",
        idea="Attention in one launch a layer: dot products by warps, softmax by shuffle tree.",
        before="split-k",
        use=(("attention", "attention_parallel"),),
        prediction=Prediction(1.3, 1.1, 1.6, "phase table"),
    ),
    Rung(
        id="torch-eager",
        number=13,
        backend="cuda",
        kind="peer",
        idea="PyTorch as it comes, on our weights: a kernel an operation, submitted from Python.",
        before="attention",
        fields=(("peer", "torch-eager"),),
    ),
    Rung(
        id="torch-compile",
        number=13,
        backend="cuda",
        kind="peer",
        idea="torch.compile in reduce-overhead mode: pointwise work fused, the pass replayed as a graph.",
        before="torch-eager",
        fields=(("peer", "torch-compile"),),
    ),
)
