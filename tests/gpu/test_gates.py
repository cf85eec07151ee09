"""Both gates for every rung: logits on two token sets and two poisons, and each phase on its own inputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from gputop.plan.plan_string import parse_word
from gputop.plan.rungs import Rung
from gputop.plan.types import PlanRequest
from gputop.session.session import Session
from tests.gpu.plans import STANDARD, catalog, gate_of

GPT2 = replace(STANDARD["gpt2-124m"], name="gpt2-124m-2", dims=replace(STANDARD["gpt2-124m"].dims, layers=2))
"""The published shape, two layers of it: its activation and its 50257 words."""
RUNGS = catalog().rungs_of("cuda")
ROW_PRODUCTS = (
    "q@1:gemm_one_row_k_major_2,wo@1:gemm_one_row_k_major,"
    "w1@1:gemm_one_row_k_major_8,w2@1:gemm_one_row_k_major_4"
)
TF32_PRODUCTS = (
    "qkv:gemm_k_major_short_2,wo:gemm_k_major_short_4,w1:gemm_k_major_tall_2,w2:gemm_k_major_tall_8"
)
FP32_PRODUCTS = (
    "qkv:gemm_fp32_k_major_8x8_3,wo:gemm_fp32_k_major_half_4,w1:gemm_fp32_k_major_half_2,"
    "w2:gemm_fp32_k_major_8x8_5,kv:gemm_fp32_k_major_half_1"
)
FP32_CLUSTERS = (
    "qkv:gemm_fp32_cluster_8x6_4,wo:gemm_fp32_cluster_8x4_8,w1:gemm_fp32_cluster_8x8_4,"
    "w2:gemm_fp32_cluster_8x4_8,kv:gemm_fp32_cluster_8x8_5"
)
FP32_SLICES = (
    "qkv:gemm_fp32_slices_48_2,wo:gemm_fp32_slices_24_2,w1:gemm_fp32_slices_36_1,"
    "w2:gemm_fp32_slices_40_3,kv:gemm_fp32_slices_24_1"
)
VARIANTS = (
    "naive,graph=on",
    "coalesced,fold=on,prune=on,batch=4",
    "coalesced,fused_stores=on,fused_qkv=on,layout=transposed",
    "oracle-fp32,graph=on",
    "oracle-tf32,batch=3,graph=on",
    "algebra,batch=4",
    "flash,batch=5,graph=on",
    "dispatch,graph=on",
    "dispatch,pdl=on,batch=2",
    f"graph,pdl=on,batch=4,{TF32_PRODUCTS},{ROW_PRODUCTS}",
    f"graph,pdl=on,math=fp32,attention:attention_flash,{FP32_PRODUCTS},{ROW_PRODUCTS}",
    f"graph,pdl=on,math=fp32,attention:attention_flash,{FP32_CLUSTERS},{ROW_PRODUCTS}",
    f"graph,pdl=on,math=fp32,batch=2,{FP32_SLICES},{ROW_PRODUCTS}",
)


@pytest.fixture(scope="module", params=[STANDARD["mini"], STANDARD["gpt2-small"], GPT2], ids=lambda w: w.name)
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    opened = Session.open("cuda", request.param)
    yield opened
    opened.close()


@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.id)
def test_a_rung_passes_its_gates(session: Session, rung: Rung) -> None:
    if rung.on_request and session.workload.name != "mini":
        pytest.skip("it takes minutes to prepare: tried on mini")
    gate = gate_of(session, PlanRequest(rung.id))
    assert gate.status == ("PASS pass-only" if rung.kind == "peer" else "PASS"), gate.where
    assert gate.pass_error is not None
    assert 0.0 < gate.pass_error <= gate.tolerance
    assert rung.kind == "peer" or gate.checks


@pytest.mark.parametrize("word", VARIANTS)
def test_toggles_keep_the_answer(session: Session, word: str) -> None:
    if session.workload.name != "mini":
        pytest.skip("toggles are tried on mini")
    gate = gate_of(session, parse_word(word))
    assert gate.status == "PASS", gate.where
