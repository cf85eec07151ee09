"""What a plan stores in bf16, and how a float becomes bf16 and a float again."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gputop.model.activations import BUFFERS
from gputop.model.number_formats import nearest_bf16, of_buffer, of_weight, widened
from gputop.model.weights import GEMM_WEIGHTS, TENSORS

FINITE = st.floats(-(2.0**127), 2.0**127, width=32)


@given(st.lists(FINITE, min_size=1, max_size=50))
def test_rounding_takes_the_nearest_of_both_neighbours_and_the_even_one_of_a_tie(values: list[float]) -> None:
    floats = np.array(values, np.float32)
    down = floats.view(np.uint32) & np.uint32(0xFFFF0000)
    neighbours = np.stack([down, down + np.uint32(0x10000)]).view(np.float32).astype(np.float64)
    apart = abs(neighbours - floats)
    odd = (down >> np.uint32(16) & np.uint32(1)).astype(bool)
    upper = (apart[1] < apart[0]) | ((apart[0] == apart[1]) & odd)
    np.testing.assert_array_equal(nearest_bf16(floats), np.where(upper, neighbours[1], neighbours[0]))


@given(st.lists(FINITE, min_size=1, max_size=50))
def test_what_is_stored_comes_back(values: list[float]) -> None:
    floats = nearest_bf16(np.array(values, np.float32))
    bits = (floats.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    np.testing.assert_array_equal(widened(bits), floats)


def test_a_bf16_plan_keeps_tokens_logits_vectors_and_tables() -> None:
    kept = {buffer.name for buffer in BUFFERS if of_buffer(buffer.name, "bf16") != "bf16"}
    assert kept == {"tokens", "logits"}
    rounded = {tensor.name for tensor in TENSORS if of_weight(tensor.name, "bf16") == "bf16"}
    assert rounded == set(GEMM_WEIGHTS)


def test_other_plans_store_floats() -> None:
    assert {of_weight(tensor.name, "tf32") for tensor in TENSORS} == {"float32"}
    assert {of_buffer(buffer.name, "fp32") for buffer in BUFFERS} == {"float32", "int32"}
