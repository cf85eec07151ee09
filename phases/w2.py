"""w2: the feed-forward network's way down, added to the residual stream."""

from gputop.phases import gemm

PHASE = gemm.layer_phase(
    name="w2",
    title="feed-forward down, bias, residual",
    order=7,
    bias="b2",
    source="h",
    target="x",
    width=lambda dims: dims.d_model,
    inner=lambda dims: dims.d_ff,
    residual="x_mid",
)
