"""w1: the feed-forward network's way up, with the model's activation function."""

from gputop.phases import gemm

PHASE = gemm.layer_phase(
    name="w1",
    title="feed-forward up, bias, activation",
    order=6,
    bias="b1",
    source="xn2",
    target="h",
    width=lambda dims: dims.d_ff,
    inner=lambda dims: dims.d_model,
    activated=True,
)
