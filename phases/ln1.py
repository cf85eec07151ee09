"""ln1: the layernorm before attention."""

from gputop.phases import gemm_cuda_tma, layernorm

PHASE = layernorm.phase(
    name="ln1",
    title="layernorm before attention",
    order=1,
    source="x",
    target="xn1",
    gain="gain1",
    shift="shift1",
    prunes=False,
    fused_kernels=gemm_cuda_tma.LN1_KERNELS,
)
