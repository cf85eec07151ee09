"""The cuda backend's rungs, oracles and peers."""

from __future__ import annotations

from gputop.plan.rungs import Prediction, Rung

Entry = tuple[str, str | tuple[str, ...]]


def _gemms(kernel: str, *phases: str) -> tuple[Entry, ...]:
    return tuple((phase, kernel) for phase in phases or ("qkv", "wo", "w1", "w2", "head"))


def _table(library: str) -> tuple[Entry, ...]:
    """The dispatch table for weights along the inner axis, with the library that has the other products.

    A narrow product over 128 rows is ours where this device has an instruction or a math for it; one row is
    ours everywhere, with more warps a column where the inner axis is long or the columns are few.
    """
    return (
        *_gemms(library, "qkv", "w1"),
        ("kv", ("gemm_fp32_k_major_half/4", library)),
        ("wo", ("gemm_warpgroup_56/8", "gemm_fp32_cluster_8x4/8", "gemm_fp32_k_major_half/8", library)),
        ("w2", ("gemm_warpgroup_56/8", "gemm_fp32_k_major_half/8", library)),
        *((site, (f"gemm_one_row_k_major{warps}", library)) for site, warps in ONE_ROW_WARPS),
    )


ONE_ROW_WARPS = (("q@1", "_2"), ("wo@1", "_2"), ("w1@1", ""), ("w2@1", "_4"), ("head", "_4"))
OTHER_KERNELS = "when it took other kernels, whose own times were known by then"
FLASH = ("attention_flash_tensor", "attention_flash_warps", "attention_flash", "attention_parallel")
ROW_LAYERNORM = ("layernorm_row_in_registers", "layernorm_warp_per_row")

RUNGS = (
    Rung(
        id="naive",
        number=1,
        backend="cuda",
        idea="The CPU code with one thread for each output; every thread walks its own row of weights.",
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
        use=_gemms("gemm_split_k/8", "wo", "w2", "head") + _gemms("gemm_split_k/4", "qkv", "w1"),
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
        id="sass-fp32",
        number=8,
        backend="cuda",
        idea="fp32 products written against their SASS: no predicates, 16-byte cp.async staging, 8x8 sums.",
        before="attention",
        use=(
            ("qkv", "gemm_sass_fp32_square/5"),
            ("wo", "gemm_sass_fp32_square/8"),
            ("w1", "gemm_sass_fp32_square/4"),
            ("w2", "gemm_sass_fp32_square/16"),
        ),
        prediction=Prediction(1.7, 1.3, 2.3, "sass"),
    ),
    Rung(
        id="wmma",
        number=9,
        backend="cuda",
        idea="Tensor cores by hand: WMMA fragments in TF32 in place of the register micro-tiles.",
        before="sass-fp32",
        fields=(("math", "tf32"),),
        use=(
            ("qkv", "gemm_wmma_tall/3"),
            ("wo", "gemm_wmma_short/5"),
            ("w1", "gemm_wmma_tall/3"),
            ("w2", "gemm_wmma_tall/11"),
            ("head", "gemm_one_row"),
        ),
        prediction=Prediction(1.5, 1.1, 2.0, "floor"),
    ),
    Rung(
        id="algebra",
        number=10,
        backend="cuda",
        idea="Layernorm folded into the next weights, stores fused, the last layer for the token read.",
        before="wmma",
        fields=(("fold", True), ("fused_stores", True), ("prune", True)),
        use=(
            ("q@1", "gemm_one_row"),
            ("wo@1", "gemm_one_row"),
            ("w1@1", "gemm_one_row"),
            ("w2@1", "gemm_one_row"),
        ),
        prediction=Prediction(1.25, 1.1, 1.45, "phase table"),
    ),
    Rung(
        id="dispatch",
        number=11,
        backend="cuda",
        idea="A table: each site gets what is faster there. With weights along the inner axis the wide "
        "products are the library's; narrow ones, one-row sites and the layernorm are ours.",
        before="algebra",
        fields=(("layout", "row"),),
        use=(*_table("cublas"), ("ln1", ROW_LAYERNORM), ("ln2", ROW_LAYERNORM), ("lnf", ROW_LAYERNORM)),
        prediction=Prediction(
            1.4,
            1.15,
            1.7,
            "phase table",
            first=Prediction(1.05, 0.95, 1.2, "phase table"),
            revised=OTHER_KERNELS,
        ),
    ),
    Rung(
        id="w2-assault",
        number=12,
        backend="cuda",
        idea="Our slowest product's loop taken apart: advancing pointers, depth doubled, three stages.",
        before="algebra",
        use=(("w2", "gemm_w2_assault_tall/11"), ("w2@1", "gemm_one_row")),
        prediction=Prediction(1.03, 0.99, 1.12, "intuition"),
    ),
    Rung(
        id="cublaslt",
        number=13,
        backend="cuda",
        idea="The library writes bias, activation and residual in its products' epilogue, not in a launch "
        "of ours.",
        before="dispatch",
        use=_table("cublaslt"),
        prediction=Prediction(
            1.12,
            1.03,
            1.25,
            "phase table",
            first=Prediction(1.08, 1.03, 1.15, "phase table"),
            revised=OTHER_KERNELS,
        ),
    ),
    Rung(
        id="flash",
        number=14,
        backend="cuda",
        idea="Keys and values stream through shared memory for 16 queries at once, softmax online, "
        "both products on tensor cores.",
        before="cublaslt",
        use=(("attention", FLASH),),
        prediction=Prediction(
            1.4,
            1.2,
            1.7,
            "phase table",
            first=Prediction(1.06, 0.98, 1.18, "floor"),
            revised=OTHER_KERNELS,
        ),
    ),
    Rung(
        id="graph",
        number=15,
        backend="cuda",
        idea="All launches of a pass captured once and submitted as one graph.",
        before="flash",
        fields=(("graph", True),),
        prediction=Prediction(1.1, 1.03, 1.25, "floor"),
    ),
    Rung(
        id="tournament",
        number=16,
        backend="cuda",
        idea="The library's 16 candidates raced with the weight in L2, instead of its heuristic's first.",
        before="graph",
        use=_table("cublaslt_best"),
        prediction=Prediction(1.0, 0.99, 1.05, "intuition"),
    ),
    # Forecast for the 12-layer model at batch 1 on an H200. It missed: docs/findings.md, finding 8.
    # Barriers: 88 x 1.27 us (264 blocks) = 112 us, against 110 graph nodes x 1.10 us = 121 us, so no gain.
    # Footprint: the merged kernel has 168 registers a thread and 92 KB of stages, so shared memory allows 2
    #   blocks (8 warps) an SM; registers would allow 3. Alone, layernorm has 16 blocks or 64 warps an SM, the
    #   gather 8 or 64, one_row 2 or 64, flash 5 or 20, the tile product with three stages 4 or 16.
    # Its price: small at batch 1. A product has at most 264 items anyway, flash 192, layernorm a row a block,
    #   and 264 blocks with 4 stages have 19 MB in flight, where bandwidth times latency needs 3.5 MB. One-row
    #   sites have only 2.2 MB in flight, so they are a third slower. From batch 4 on, all of it is paid.
    # Products: 1 us to fill the stages, 0.2 us a step, up to 2 us to add partial results: about 17 us a layer
    #   for the four, where the library takes 44 us. So the rung is faster at batch 1 if steps are that short.
    Rung(
        id="megakernel",
        number=17,
        backend="cuda",
        idea="The whole pass as one cooperative launch: grid barriers for launches, one footprint for all.",
        before="graph",
        fields=(("graph", False), ("layout", "transposed")),
        use=(("embed", "megakernel"),),
        prediction=Prediction(
            1.3,
            0.9,
            1.8,
            "floor",
            first=Prediction(1.2, 0.85, 1.6, "floor"),
            revised="when its barriers and footprint were counted",
        ),
    ),
    Rung(
        id="batch",
        number=18,
        backend="cuda",
        idea="32 sequences a pass: each weight read serves them all and every tile is full.",
        before="graph",
        fields=(("batch", 32),),
        prediction=Prediction(5.5, 3.5, 8.0, "floor"),
    ),
    Rung(
        id="dependent",
        number=19,
        backend="cuda",
        idea="Programmatic dependent launch: a kernel of ours starts and sends for its weights while the one "
        "before drains.",
        before="graph",
        fields=(("pdl", True),),
        prediction=Prediction(1.05, 1.0, 1.1, "floor"),
    ),
    Rung(
        id="hopper",
        number=20,
        backend="cuda",
        idea="Every wide product on wgmma by our own kernel, which can start early where the library waits.",
        before="dependent",
        use=(
            ("qkv", "gemm_warpgroup_80/4"),
            ("kv", "gemm_warpgroup_56/4"),
            ("q@1", "gemm_one_row_k_major_2"),
            ("w1", "gemm_warpgroup_56/2"),
            ("w1@1", "gemm_one_row_k_major"),
        ),
        prediction=Prediction(1.15, 1.05, 1.3, "phase table"),
    ),
    Rung(
        id="carveout",
        number=21,
        backend="cuda",
        idea="All kernels ask for the same division of an SM's memory, so that blocks of two can share it.",
        before="hopper",
        fields=(("carveout", "shared"),),
        prediction=Prediction(1.03, 0.98, 1.1, "phase table"),
    ),
    Rung(
        id="tma",
        number=22,
        backend="cuda",
        idea="Wide products' tiles by the copy engine: one thread asks for 16 KB, pairs of blocks share K.",
        before="carveout",
        use=(
            ("qkv", "gemm_tma_72_2"),
            ("kv", "gemm_tma_72_2"),
            ("q@1", "gemm_one_row_k_major_2"),
            ("wo", "gemm_tma_24_2"),
            ("wo@1", "gemm_one_row_k_major_2"),
            ("w1", "gemm_tma_96_2"),
            ("w1@1", "gemm_one_row_k_major"),
            ("w2", "gemm_tma_112_8"),
            ("w2@1", "gemm_one_row_k_major_4"),
        ),
        prediction=Prediction(1.2, 1.05, 1.4, "phase table"),
    ),
    Rung(
        id="layernorm-fused",
        number=23,
        backend="cuda",
        idea="Layernorm in the product after it: the mean in the weights, a row's scale found beside.",
        before="tma",
        use=(
            ("ln1", "gemm_tma_ln1_72_2"),
            ("ln2", "gemm_tma_ln2_96_2"),
            ("ln2@1", ROW_LAYERNORM),
            ("w1@1", "gemm_one_row_k_major"),
        ),
        prediction=Prediction(1.1, 1.03, 1.2, "phase table"),
    ),
    Rung(
        id="attention-tma",
        number=24,
        backend="cuda",
        idea="Attention's tiles by the copy engine, eight warps a block, one block an SM.",
        before="layernorm-fused",
        use=(("attention", "attention_flash_tma_alone"),),
        prediction=Prediction(1.08, 1.0, 1.2, "phase table"),
    ),
    Rung(
        id="fp32-dependent",
        number=25,
        backend="cuda",
        idea="The same chain in exact fp32: no tensor core, so FFMA sets the floor and the products are all.",
        before="dependent",
        fields=(("math", "fp32"),),
        prediction=Prediction(0.43, 0.4, 0.47, "phase table"),
    ),
    Rung(
        id="fp32-slices",
        number=26,
        backend="cuda",
        idea="fp32 products with one block an SM, whose warps each multiply the tile over a slice of K.",
        before="fp32-dependent",
        use=(
            ("qkv", "gemm_fp32_slices_36/1"),
            ("kv", "gemm_fp32_slices_48/2"),
            ("q@1", "gemm_one_row_k_major_2"),
            ("wo", "gemm_fp32_slices_24/2"),
            ("wo@1", "gemm_one_row_k_major_2"),
            ("w1", "gemm_fp32_slices_48/1"),
            ("w1@1", "gemm_one_row_k_major"),
            ("w2", "gemm_fp32_slices_52/4"),
            ("w2@1", "gemm_one_row_k_major_4"),
        ),
        prediction=Prediction(1.6, 1.35, 1.85, "sass"),
    ),
    Rung(
        id="batch-attention",
        number=27,
        backend="cuda",
        idea="Attention of 128 queries of a head by one block: keys and values come once for all of them.",
        before="batch",
        use=(
            ("attention", ("attention_flash_head", *FLASH)),
            ("attention@1", FLASH),
        ),
        prediction=Prediction(1.12, 1.08, 1.15, "phase table"),
    ),
    Rung(
        id="batch-rows",
        number=28,
        backend="cuda",
        idea="The last token of 32 sequences is 32 rows: one product of tiles, not a row at a time.",
        before="batch-attention",
        use=(
            ("q@1", "gemm_warpgroup_56/8"),
            ("wo@1", "gemm_warpgroup_56/8"),
            ("w1@1", "gemm_warpgroup_56/2"),
            ("w2@1", "gemm_warpgroup_56/8"),
            ("head", "gemm_warpgroup_56/8"),
        ),
        prediction=Prediction(1.04, 1.03, 1.05, "phase table"),
    ),
    Rung(
        id="paced",
        number=33,
        backend="cuda",
        idea="Copies in the order they are needed in: two pieces of weights early, later products' last.",
        before="attention-tma",
        use=(
            ("ln1", "gemm_tma_ln1_72_2_paced"),
            ("wo", "gemm_tma_24_2_paced"),
            ("wo@1", "gemm_one_row_k_major_2"),
            ("ln2", "gemm_tma_ln2_96_2_paced"),
            ("ln2@1", ROW_LAYERNORM),
            ("w1@1", "gemm_one_row_k_major"),
            ("w2", "gemm_tma_112_8_paced"),
            ("w2@1", "gemm_one_row_k_major_4"),
        ),
        prediction=Prediction(1.04, 1.0, 1.06, "phase table"),
    ),
    Rung(
        id="one-row-layernorms",
        number=34,
        backend="cuda",
        idea="The last token's layernorms in the one-row products after them: two launches less at the end.",
        before="paced",
        use=(("ln2@1", "gemm_tma_ln2_96_2_paced"), ("lnf", "gemm_one_row_lnf")),
        prediction=Prediction(1.007, 1.0, 1.012, "phase table"),
    ),
    Rung(
        id="rows-divided",
        number=35,
        backend="cuda",
        idea="wo and w2 in tiles of 128 rows, 64 a warpgroup: weights come once, and one exchange is gone.",
        before="one-row-layernorms",
        use=(
            ("wo", "gemm_tma_rows_32_4"),
            ("wo@1", "gemm_one_row_k_major_2"),
            ("w2", "gemm_tma_rows_56_8"),
            ("w2@1", "gemm_one_row_k_major_4"),
        ),
        prediction=Prediction(1.018, 1.0, 1.03, "phase table"),
    ),
    # Forecast for the 12-layer model at batch 1 on an H200, from the terms of `attention-tma` (324 us). A
    # product's copies and wgmma halve; its boundary, first copy and store stay. A layer of 23 us takes 16:
    #   qkv 4.6 to 3.2, wo 3.4 to 2.4, w1 5.2 to 3.4, w2 5.6 to 3.9, attention 4.3 to 3.4.
    # The first forecast missed. It had w2 in sixteen clusters of eight, of which the device holds fifteen at
    # once, and it took the products' waits for those of their copies.
    # Ends: one-row sites wait for DRAM, which brings half, and there are two launches less: 20 to 14 us.
    Rung(
        id="bf16",
        number=29,
        backend="cuda",
        idea="Weights and activations of two bytes, sums in fp32: half the copies, half the products.",
        before="attention-tma",
        fields=(("math", "bf16"),),
        use=(
            ("embed", "embed_bf16_gather"),
            ("ln1", "gemm_bf16_ln1_40_1_paced"),
            ("attention", "attention_bf16_flash"),
            ("wo", "gemm_bf16_16_1_paced"),
            ("wo@1", "gemm_bf16_one_row"),
            ("ln2", "gemm_bf16_ln2_48_1_paced"),
            ("w2", "gemm_bf16_56_4_paced"),
            ("w2@1", "gemm_bf16_one_row_long"),
            ("lnf", "gemm_bf16_one_row_lnf"),
        ),
        prediction=Prediction(
            1.47,
            1.4,
            1.54,
            "phase table",
            first=Prediction(1.55, 1.35, 1.75, "phase table"),
            revised=OTHER_KERNELS,
        ),
    ),
    Rung(
        id="torch-eager",
        number=13,
        backend="cuda",
        kind="peer",
        idea="PyTorch as it comes, on our weights, in TF32: a kernel an operation, submitted from Python.",
        before="attention",
        fields=(("peer", "torch-eager"), ("math", "tf32")),
        features=("flash",),
    ),
    Rung(
        id="torch-compile",
        number=13,
        backend="cuda",
        kind="peer",
        idea="torch.compile in reduce-overhead mode: pointwise work fused, the pass replayed as a graph.",
        before="torch-eager",
        fields=(("peer", "torch-compile"),),
        features=("fusion", "flash", "graph"),
    ),
    Rung(
        id="torch-max-autotune",
        number=13,
        backend="cuda",
        kind="peer",
        idea="torch.compile in max-autotune mode: each product by whichever kernel its own trials favour.",
        before="torch-compile",
        fields=(("peer", "torch-max-autotune"),),
        on_request=True,
        features=("fusion", "flash", "graph"),
    ),
)
