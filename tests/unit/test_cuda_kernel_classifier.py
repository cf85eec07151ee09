"""Kernels of frameworks and libraries by kind: known names have their place, unknown ones are not guessed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputop.backends.cuda.timing.spans import Span
from gputop.backends.cuda.torch.kernel_classifier import RULES, by_kind, kind_of, listed

KNOWN = {
    "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize64x64x32_warpgroupsize1x1x1_execute_kernel": "gemm",
    "_ZN7cutlass7Kernel2I50cutlass_80_tensorop_s1688gemm_64x64_32x6_tn_align4EEvNT_6ParamsE": "gemm",
    "_ZN8cublasLt19splitKreduce_kernelILi32ELi16EiffffLb0EfffLb1ELb1ELb0ELb0EEEvNS_18cublasSplitK": "gemm",
    "nvjet_tst_128x64_64x5_1x2_h_bz_TNT": "gemm",
    "ampere_sgemm_32x128_tn": "gemm",
    "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false>": "gemm",
    "_Z11scal_kernelIffLi1ELb1ELi6ELi5ELi5ELi3EEv21cublasTransposeParamsIT0_EPKT_PS3_PKS1_": "gemm",
    "_ZN8cublasLt8epilogue4impl12globalKernelILi8ELi32EfffLb1ELb1ELi1EEEviilPT1_18cublasLtEpilogue": "gemm",
    "triton_tem_fused_addmm_relu_view_7": "gemm",
    "fmha_cutlassF_f32_aligned_64x64_rf_sm80": "attention",
    "_ZN13pytorch_flash16flash_fwd_kernelI23Flash_fwd_kernel_traitsILi64EEEEvNS_16Flash_fwd": "attention",
    "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_3_64x128x64": "attention",
    "_ZN2at6native43_GLOBAL__N__softmax_warp_forwardIfffLi7ELb0ELb0EEEvPT0_PKT_iii": "attention",
    "triton_tem_fused_flex_attention_2": "attention",
    "triton_tem_fused__scaled_dot_product_efficient_attention_addmm_9": "gemm",
    "triton_per_fused_add_addmm_native_layer_norm_view_4": "pointwise",
    "triton_poi_fused__scaled_dot_product_efficient_attention_clone_1": "pointwise",
    "triton_poi_fused_addmm_relu_5": "pointwise",
    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3": "pointwise",
    "_ZN2at6native54_GLOBAL__N__vectorized_layer_norm_kernelIffEEviT0_PKT_S5_S5_PS2_S6_PS3_": "pointwise",
    "_ZN2at6native29vectorized_gather_kernelILi16ElEEvPcS2_PT0_illllb": "pointwise",
    "void at::native::(anonymous namespace)::indexSelectSmallIndex<float, int, unsigned int>": "pointwise",
    "_ZN2at6native55_GLOBAL__N__ForeachBinaryOpList_multi_tensor_apply_kernelINS1_18Tensor": "pointwise",
    "a_kernel_nobody_knows": "other",
    "": "other",
}  # fmt: skip
names = st.sampled_from(sorted(KNOWN))
spans = st.lists(
    st.tuples(st.integers(1, 10_000), st.integers(1, 3_000), names).map(
        lambda each: Span(each[0], each[0] + each[1], each[2])
    ),
    max_size=30,
)
BLOCKER = Span(0, 1, "blocker")


@pytest.mark.parametrize(("name", "kind"), KNOWN.items(), ids=range(len(KNOWN)))
def test_known_names_fall_into_place(name: str, kind: str) -> None:
    assert kind_of(name) == kind


def test_every_rule_decides_for_some_name() -> None:
    import re

    deciding = {next((r for r in RULES if re.search(r.pattern, name, re.I)), None) for name in KNOWN}
    assert {rule.whose for rule in RULES if rule not in deciding} <= {RULES[0].whose}


@given(spans)
def test_kinds_share_out_the_whole_span_and_every_launch(kernels: list[Span]) -> None:
    found = by_kind([*kernels, BLOCKER])
    assert sum(times.launches for times in found.values()) == len(kernels)
    whole = max((span.end for span in kernels), default=1) - BLOCKER.end
    shared = sum(times.time_s + times.gap_s for times in found.values())
    assert shared == pytest.approx(max(0, whole) * 1e-9, abs=1e-15)


@given(spans)
def test_a_kernel_of_unknown_kind_is_named(kernels: list[Span]) -> None:
    found = by_kind([BLOCKER, *kernels])
    unknown = {span.name for span in kernels if KNOWN[span.name] == "other"}
    assert set(found["other"].names if "other" in found else ()) == unknown


def test_long_lists_are_cut_unless_nobody_knows_what_they_are() -> None:
    many = [f"k{i}" for i in range(7)]
    assert listed("gemm", many) == "k0; k1; k2; k3; and 3 more"
    assert listed("other", many) == "; ".join(many)
