"""The cpu backend's rungs."""

from __future__ import annotations

from gputop.plan.rungs import Prediction, Rung

LOOPS = (
    ("embed", "cpu_embed"),
    ("ln1", "cpu_layernorm"),
    ("qkv", "cpu_loops_gemm"),
    ("attention", "cpu_loops_attention"),
    ("wo", "cpu_loops_gemm"),
    ("ln2", "cpu_layernorm"),
    ("w1", "cpu_loops_gemm"),
    ("w2", "cpu_loops_gemm"),
    ("lnf", "cpu_layernorm"),
    ("head", "cpu_loops_gemm"),
)
BLAS = (
    ("qkv", "cpu_blas_gemm"),
    ("attention", "cpu_blas_attention"),
    ("wo", "cpu_blas_gemm"),
    ("w1", "cpu_blas_gemm"),
    ("w2", "cpu_blas_gemm"),
    ("head", "cpu_blas_gemm"),
)

RUNGS = (
    Rung(
        id="cpu-loops",
        number=0,
        backend="cpu",
        idea="The baseline in place of a naive C port: single-core loops without BLAS (NumPy's einsum, "
        "vectorised by its own inner loop).",
        before=None,
        use=LOOPS,
    ),
    Rung(
        id="cpu-transposed",
        number=1,
        backend="cpu",
        idea="The same loops over weights stored transposed: a CPU forgives a layout, so little should move.",
        before="cpu-loops",
        fields=(("layout", "transposed"),),
        prediction=Prediction(1.2, 0.8, 1.6, "intuition"),
    ),
    Rung(
        id="cpu-blas",
        number=2,
        backend="cpu",
        idea="Every product by BLAS on one thread: blocked so that a value fetched is used many times. It "
        "packs what it reads, so weights lie as they were drawn.",
        before="cpu-transposed",
        fields=(("layout", "row"),),
        use=BLAS,
        prediction=Prediction(8.0, 3.0, 20.0, "intuition"),
    ),
    Rung(
        id="cpu-threads",
        number=3,
        backend="cpu",
        idea="The same products on all cores: each owns a share of the outputs.",
        before="cpu-blas",
        fields=(("threads", "all"),),
        prediction=Prediction(1.7, 1.2, 2.0, "intuition"),
    ),
    Rung(
        id="cpu-fused",
        number=4,
        backend="cpu",
        idea="Queries, keys and values in one wide product: one read of the input, fewer calls.",
        before="cpu-threads",
        fields=(("fused_qkv", True),),
        prediction=Prediction(1.02, 0.98, 1.08, "intuition"),
    ),
    Rung(
        id="cpu-folded",
        number=5,
        backend="cpu",
        idea="Layernorm gain and shift multiplied into the next weights beforehand: two sweeps fewer each.",
        before="cpu-fused",
        fields=(("fold", True),),
        prediction=Prediction(1.02, 0.99, 1.05, "intuition"),
    ),
    Rung(
        id="cpu-pruned",
        number=6,
        backend="cpu",
        idea="The last layer only for the token that is read: 7 % of the work was never asked for.",
        before="cpu-folded",
        fields=(("prune", True),),
        prediction=Prediction(1.07, 1.04, 1.09, "floor"),
    ),
    Rung(
        id="cpu-batch",
        number=7,
        backend="cpu",
        idea="Eight sequences a pass, the weights read once for all: a pass takes longer, a sequence less.",
        before="cpu-pruned",
        fields=(("batch", 8),),
        prediction=Prediction(1.12, 0.9, 1.6, "intuition"),
    ),
)
