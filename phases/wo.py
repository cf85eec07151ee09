"""wo: attention's output projection, added to the residual stream."""

from gputop.phases import gemm

PHASE = gemm.layer_phase(
    name="wo",
    title="attention output, bias, residual",
    order=4,
    bias="bo",
    source="att",
    target="x_mid",
    width=lambda dims: dims.d_model,
    inner=lambda dims: dims.d_model,
    residual="x",
)
