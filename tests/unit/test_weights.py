"""Layouts and folds of the weights."""

from __future__ import annotations

import numpy as np
import pytest

from gputop.model import weights
from gputop.model.workloads import WORKLOADS
from gputop.plan.types import Plan, PlanRequest

TINY = WORKLOADS[2]
PLAIN = Plan("cpu", PlanRequest("any"), ())


def test_every_element_is_drawn_once() -> None:
    drawn: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for part in weights.parts(TINY.dims):
        drawn.setdefault((part.tensor, part.layer), []).append((part.offset, part.count))
    for (name, _), runs in drawn.items():
        ends = [offset + count for offset, count in sorted(runs)]
        assert [offset for offset, _ in sorted(runs)] == [0, *ends[:-1]]
        assert ends[-1] == np.prod(weights.BY_NAME[name].shape(TINY.dims))
    assert len(drawn) == sum(weights.layer_count(tensor, TINY.dims) for tensor in weights.TENSORS)


def test_part_names_are_unique() -> None:
    names = [part.name for part in weights.parts(TINY.dims)]
    assert len(set(names)) == len(names)
    assert {"0/wq", "1/wv", "0/w1", "embedding", "gainf"} <= set(names)


def test_queries_and_keys_spread_wider_than_values() -> None:
    wqkv = weights.master(WORKLOADS[1])["wqkv"][0].reshape(3, -1)
    assert wqkv.std(axis=1) == pytest.approx([0.05, 0.05, 0.02], rel=0.02)


def test_a_plan_that_changes_nothing_shares_the_masters_memory() -> None:
    master = weights.master(TINY)
    assert all(array is master[name] for name, array in weights.effective(master, PLAIN, TINY.dims).items())


def test_the_master_can_not_be_written() -> None:
    with pytest.raises(ValueError, match="read-only"):
        weights.master(TINY)["w1"][0, 0, 0] = 1


def test_transposed_is_in_by_out() -> None:
    master = weights.master(TINY)
    stored = weights.effective(master, PLAIN.change(layout="transposed"), TINY.dims)
    for name in weights.GEMM_WEIGHTS:
        assert stored[name].flags.c_contiguous
        assert np.array_equal(stored[name], master[name].transpose(0, 2, 1))
    assert stored["embedding"] is master["embedding"]


@pytest.mark.parametrize("layout", ["row", "transposed"])
def test_a_fold_drops_gains_and_rounds_once(layout: str) -> None:
    stored = weights.effective(weights.master(TINY), PLAIN.change(fold=True, layout=layout), TINY.dims)
    assert not {"gain1", "shift1", "gain2", "shift2", "gainf", "shiftf"} & set(stored)
    for name, layers in (("wqkv", 2), ("bqkv", 2), ("w1", 2), ("b1", 2), ("whead", 1), ("bhead", 1)):
        for layer in range(layers):
            exact = weights.reference_tensor(TINY, name, layer, folded=True)
            got = stored[name][layer]
            oriented = got.T if got.ndim == 2 and layout == "transposed" else got
            assert np.array_equal(oriented, exact.astype(np.float32))


def test_the_fold_is_the_same_function() -> None:
    rng = np.random.default_rng(0)
    normed, weight = rng.standard_normal((5, 8)), rng.standard_normal((6, 8))
    # What a layernorm hands on before its gain has mean 0, which the fold makes use of.
    normed -= normed.mean(axis=1, keepdims=True)
    bias, gain, shift = rng.standard_normal(6), rng.standard_normal(8), rng.standard_normal(8)
    folded_weight, folded_bias = weights.fold(weight, bias, gain, shift)
    np.testing.assert_allclose(
        normed @ folded_weight.T + folded_bias,
        (normed * gain + shift) @ weight.T + bias,
        rtol=1e-12,
        atol=1e-12,
    )
    assert np.array_equal(weights.fold(weight, None, gain, shift)[1], weight @ shift)
