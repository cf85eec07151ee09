"""The bounds of phases/rounding.py: never below what rounding does to right kernels, and not far above it.

Right kernels are emulated in NumPy on random operands: TF32 truncated and rounded, operands and results
stored in bf16, fp32 sums in several orders, tensor cores that cut their sums.
`GPUTOP_ROUNDING_INPUTS=20000` tries so many, not 1000.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gputop.model.number_formats import nearest_bf16
from gputop.phases import attention, embed, gemm, layernorm, rounding
from gputop.plan.types import LAYERNORM_EPS, Activation, Dims, Math, Rounded, Site, Task, View
from gputop.validation.compare import worst_element
from tests.unit import emulated
from tests.unit.emulated import FP32_SUMS, OPERANDS, Floats, Operand, Sum

INPUTS = int(os.environ.get("GPUTOP_ROUNDING_INPUTS", "1000"))
MATHS: tuple[Math, ...] = ("fp32", "tf32", "bf16")
ANY = Dims(1, 1, 1, 1, 1, 1)
"""For phases whose bounds ask nothing of the model's sizes."""

Generator = np.random.Generator
RELU_OR_NONE: tuple[Activation | None, ...] = (None, "relu")
GELUS: tuple[Activation | None, ...] = ("gelu", "gelu_new")
Operands = dict[str, Any]


def task(phase: str, rows: int, columns: int, inner: int = 0, activation: Activation | None = None) -> Task:
    site = Site(phase, phase, rows, columns, inner, (0, 1))
    return Task(site, 0, (), View("x", 0, rows, columns, columns), activation)


def drawn(rng: Generator, rows: int, columns: int) -> Floats:
    """Rows such as a pass may have, and some that none has: offsets, outliers, few values, any size."""
    x = rng.standard_normal((rows, columns))
    kind = rng.integers(6)
    if kind == 1:
        x = np.maximum(x, 0)
    elif kind == 2:
        x[:, rng.integers(columns, size=max(1, columns // 200))] *= 100
    elif kind == 3:
        x += rng.uniform(-5, 5)
    elif kind == 4:
        x *= 10.0 ** rng.uniform(-6, 6)
    elif kind == 5:
        x = rng.choice([-1.0, 1.0, 1.5], size=x.shape) * x[0, 0]
    return x.astype(np.float32)


def as_stored(operands: Operands, math: Math, *roles: str) -> Operands:
    """The operands as a kernel of this math gets them: those of these roles may be stored in bf16."""
    return {
        role: nearest_bf16(values) if math == "bf16" and role in roles else values
        for role, values in operands.items()
    }


def stored(out: Floats, bounds: Rounded, math: Math) -> tuple[Floats, Rounded]:
    """A result as a kernel of this math stores it, and its bounds."""
    if math != "bf16":
        return out, bounds
    return nearest_bf16(out), rounding.stored_in_bf16(bounds)


def exact(operands: Operands) -> Operands:
    return {role: values.astype(np.float64) for role, values in operands.items()}


def some(rng: Generator, math: Math) -> tuple[Operand, Sum]:
    """How a kernel of this math rounds its operands, and in which order it adds."""
    operand = OPERANDS[math][rng.integers(len(OPERANDS[math]))]
    add = FP32_SUMS[rng.integers(len(FP32_SUMS))] if math == "fp32" else emulated.by_tensor_core
    return operand, add


def product(
    rng: Generator, math: Math, inner: int = 0, activations: tuple[Activation | None, ...] = RELU_OR_NONE
) -> tuple[Floats, Rounded, Operands]:
    """A right kernel's output, its bounds, and what it was given."""
    inner = inner or int(rng.choice([1, 3, 8, 35, 64, 100, 256, 768, 3072]))
    rows, columns = int(rng.integers(1, 6)), int(rng.integers(1, 40))
    activation = activations[rng.integers(len(activations))]
    operands: Operands = {
        "a": drawn(rng, rows, inner),
        "w": (rng.uniform(-1, 1, (columns, inner)) * rng.choice([0.02, 0.05, 1])).astype(np.float32),
    }
    operands = as_stored(operands, math, "a", "w")
    operand, add = some(rng, math)
    out = emulated.product(operands["a"], operands["w"].T, operand, add)
    if rng.integers(2):
        operands["bias"] = rng.uniform(-0.03, 0.03, columns).astype(np.float32)
        out = out + operands["bias"]
    if activation is not None:
        out = emulated.activated(out, activation, rng)
    elif rng.integers(2):
        operands["residual"] = drawn(rng, rows, columns)
        operands = as_stored(operands, math, "residual")
        out = out + operands["residual"]
    asked = task("w1", rows, columns, inner, activation)
    return *stored(out, gemm.rounded(exact(operands), {}, asked, ANY, math), math), operands


def normalised(rng: Generator, math: Math) -> tuple[Floats, Rounded]:
    columns = int(rng.choice([3, 4, 16, 64, 100, 256, 768, 1024, 1600]))
    operands: Operands = as_stored({"x": drawn(rng, 4, columns)}, math, "x")
    if rng.integers(2):
        operands["gain"] = (1 + 0.1 * rng.standard_normal(columns)).astype(np.float32)
        operands["shift"] = (0.02 * rng.standard_normal(columns)).astype(np.float32)
    _, add = some(rng, "fp32")
    gain, shift = operands.get("gain"), operands.get("shift")
    out = emulated.layernorm(operands["x"], gain, shift, LAYERNORM_EPS, add)
    return stored(out, layernorm.rounded(exact(operands), {}, task("ln1", 4, columns), ANY, math), math)


def attended(rng: Generator, math: Math) -> tuple[Floats, Rounded]:
    seq, d_head = int(rng.choice([1, 2, 16, 65, 128])), int(rng.choice([4, 16, 64]))
    rows = int(rng.choice([1, seq]))
    dims = Dims(1, d_head, 1, 4, seq, 4)
    q = (rng.choice([0.1, 1.0, 3.0]) * rng.standard_normal((rows, d_head))).astype(np.float32)
    k, v = (rng.standard_normal((seq, d_head)).astype(np.float32) for _ in "kv")
    tile = int(rng.choice([8, 32, 128]))
    operands = as_stored({"q": q, "k": k, "v": v}, math, *"qkv")
    q, k, v = operands.values()
    out = emulated.attention(q, k, v, tile, *some(rng, math), rng)
    asked = task("attention", rows, d_head)
    return stored(out, attention.rounded(exact(operands), {}, asked, dims, math), math)


def embedded(rng: Generator, math: Math) -> tuple[Floats, Rounded]:
    dims = Dims(1, 64, 1, 4, 4, 4)
    operands: Operands = {"tokens": rng.integers(0, 9, (4, 1)), "embedding": drawn(rng, 9, 64)}
    operands["position"] = drawn(rng, 4, 64)
    out = operands["embedding"][operands["tokens"][:, 0]] + operands["position"]
    return stored(out, embed.rounded(exact(operands), {}, task("embed", 4, 64), dims, math), math)


FAMILIES: dict[str, tuple[Callable[[Generator, Math], Any], float]] = {
    "product": (product, 0.6),
    "layernorm": (normalised, 0.2),
    "attention": (attended, 0.1),
    "embed": (embedded, 0.1),
}
"""Each with its share of the inputs."""


@pytest.mark.parametrize("family", FAMILIES)
def test_a_right_kernel_is_within_its_bounds_whatever_it_is_given(family: str) -> None:
    """With room beside, but for one rounding to bf16: that may take all that it is allowed."""
    tried, share = FAMILIES[family]
    for seed in range(round(share * INPUTS)):
        math = MATHS[seed % 3]
        out, bounds, *_ = tried(np.random.default_rng(seed), math)
        found = worst_element(out, bounds)
        assert found.bound is not None, f"seed {seed}"
        assert found.share < (1 if math == "bf16" else 0.75), f"seed {seed}: {found}"


def test_a_right_gelu_is_within_its_bounds() -> None:
    """No room is asked for below its lowest point, which many inputs that may be meant come to."""
    for seed in range(round(0.3 * INPUTS)):
        out, bounds, _ = product(np.random.default_rng(seed), MATHS[seed % 3], activations=GELUS)
        found = worst_element(out, bounds)
        assert found.bound is not None, f"seed {seed}"
        assert found.share < 1, f"seed {seed}: {found}"


@pytest.mark.parametrize("math", MATHS)
@pytest.mark.parametrize("inner", [256, 768, 3072])
def test_a_product_that_is_missing_in_one_element_is_beyond_its_bound(math: Math, inner: int) -> None:
    """The largest of the sum's, and in fp32 the median one too: what a bound by the worst case would miss."""
    rng = np.random.default_rng(7)
    a = rng.standard_normal((2, inner)).astype(np.float32)
    w = rng.uniform(-0.05, 0.05, (3, inner)).astype(np.float32)
    a, w = as_stored({"a": a, "w": w}, math, "a", "w").values()
    terms = a[0].astype(np.float64) * w[1]
    order = np.argsort(abs(terms))
    for index in (order[-1], order[inner // 2]) if math == "fp32" else (order[-1],):
        operand, add = OPERANDS[math][0], FP32_SUMS[0] if math == "fp32" else emulated.by_tensor_core
        out = emulated.product(a, w.T, operand, add)
        bounds = gemm.rounded(exact({"a": a, "w": w}), {}, task("w1", 2, 3, inner), ANY, math)
        assert worst_element(*stored(out, bounds, math)).ok
        out[0, 1] -= np.float32(terms[index])
        found = worst_element(*stored(out, bounds, math))
        assert (found.row, found.column, found.ok) == (0, 1, False)


@pytest.mark.parametrize("inner", [1, 2, 16, 36])
def test_a_short_sum_may_be_as_far_off_as_in_the_worst_case(inner: int) -> None:
    """All operands a hair below what TF32 keeps, truncated: every error pushes the same way."""
    a = np.full((1, inner), np.nextafter(np.float32(1 + 2.0**-10), np.float32(0)))
    w = np.where(np.arange(inner) % 2, np.float32(1), np.float32(-1)) * a
    out = emulated.product(a, w.T, emulated.truncated, emulated.by_tensor_core)
    bounds = gemm.rounded(exact({"a": a, "w": w}), {}, task("w1", 1, 1, inner), ANY, "tf32")
    assert worst_element(out, bounds).ok


def test_below_zero_relu_allows_nothing_but_zero() -> None:
    rng = np.random.default_rng(3)
    a, w = (rng.standard_normal((n, 64)).astype(np.float32) for n in (8, 32))
    before = a @ w.T
    bounds = gemm.rounded(exact({"a": a, "w": w}), {}, task("w1", 8, 32, 64, activation="relu"), ANY, "bf16")
    assert worst_element(np.maximum(before, 0), bounds).ok
    for slope in (1e-3, 1e-6, -1e-6):
        assert not worst_element(np.where(before < 0, np.float32(slope) * before, before), bounds).ok


@pytest.mark.parametrize("math", ["fp32", "tf32"])
def test_what_a_kernel_keeps_to_itself_may_be_rounded_too(math: Math) -> None:
    """A layernorm fused with the product behind it is within the chained bounds, not the product's own."""
    rng = np.random.default_rng(5)
    x = (rng.standard_normal((4, 256)) + 100).astype(np.float32)
    w = rng.uniform(-0.05, 0.05, (32, 256)).astype(np.float32)
    operand, add = OPERANDS[math][0], FP32_SUMS[0]
    inside = emulated.layernorm(x, None, None, LAYERNORM_EPS, add)
    out = emulated.product(inside, w.T, operand, add)
    norm = layernorm.rounded(exact({"x": x}), {}, task("ln2", 4, 256), ANY, math)
    chained = partial(gemm.rounded, {"a": norm.value, "w": w.astype(np.float64)})
    asked = task("w1", 4, 32, 256)
    assert worst_element(out, chained({"a": norm.above}, asked, ANY, math)).ok
    if math == "fp32":
        assert not worst_element(out, chained({}, asked, ANY, math)).ok


def test_weights_in_bf16_leave_a_share_of_the_mean_that_a_layernorm_left_to_them() -> None:
    """Their rows add up to 0 only before they are rounded; a product beyond that share is found."""
    rng = np.random.default_rng(6)
    x = nearest_bf16((rng.standard_normal((4, 256)) + 3).astype(np.float32))
    w = rng.uniform(-0.05, 0.05, (32, 256))
    rounded_w = nearest_bf16((w - w.mean(axis=1, keepdims=True)).astype(np.float32))
    scale = 1 / np.sqrt(x.var(axis=1, keepdims=True) + np.float32(LAYERNORM_EPS))
    out = emulated.product(x, rounded_w.T, emulated.as_is, emulated.by_tensor_core) * scale
    norm = layernorm.rounded(exact({"x": x}), {}, task("ln2", 4, 256), ANY, "bf16")
    operands = {"a": norm.value, "w": rounded_w.astype(np.float64)}
    bounds = gemm.rounded(operands, {"a": norm.above}, task("w1", 4, 32, 256), ANY, "bf16")
    assert worst_element(*stored(out, bounds, "bf16")).ok
    with_mean = emulated.product(
        x, nearest_bf16(w.astype(np.float32)).T, emulated.as_is, emulated.by_tensor_core
    )
    assert not worst_element(*stored(with_mean * scale, bounds, "bf16")).ok


@pytest.mark.parametrize("value", [0.0, 1.0, 1.99, -(2.0**-130), 3e38, 2.0**-60])
def test_a_value_stored_in_bf16_may_move_by_half_of_its_last_bit(value: float) -> None:
    zero = np.zeros((1, 1))
    bounds = rounding.stored_in_bf16(Rounded(np.full((1, 1), value), zero, zero))
    moved = nearest_bf16(np.full((1, 1), value, np.float32))
    assert worst_element(moved, bounds).ok
    half_of_last_bit = 2.0 ** (np.floor(np.log2(abs(value))) - rounding.BF16_BITS) if value else 0.0
    assert bounds.above[0, 0] == bounds.below[0, 0] == half_of_last_bit


def test_queries_keys_and_values_that_are_off_widen_the_bounds_of_attention() -> None:
    rng = np.random.default_rng(9)
    dims = Dims(1, 64, 4, 4, 16, 4)
    q, k, v = (rng.standard_normal((16, 64)) for _ in "qkv")
    off = {role: np.full((16, 64), 1e-4) for role in "qkv"}
    asked = task("attention", 16, 64)
    moved = {
        role: values + off[role] * rng.uniform(-1, 1, values.shape)
        for role, values in (("q", q), ("k", k), ("v", v))
    }
    out = attention.reference(moved, asked, dims)
    given = {"q": q, "k": k, "v": v}
    assert worst_element(out, attention.rounded(given, off, asked, dims, "fp32")).ok
    assert not worst_element(out, attention.rounded(given, {}, asked, dims, "fp32")).ok


@pytest.mark.parametrize("family", FAMILIES)
def test_the_value_between_the_bounds_is_the_reference(family: str) -> None:
    references = {"product": gemm, "layernorm": layernorm, "attention": attention, "embed": embed}
    rng = np.random.default_rng(11)
    dims = Dims(1, 16, 2, 4, 8, 4)
    x: NDArray[np.float64] = rng.standard_normal((8, 16))
    operands: Operands = {
        "product": {"a": x, "w": rng.standard_normal((5, 16)), "bias": rng.standard_normal(5)},
        "layernorm": {"x": x, "gain": x[0], "shift": x[1]},
        "attention": {"q": x, "k": x + 1, "v": x - 1},
        "embed": {"tokens": rng.integers(0, 9, (8, 1)), "embedding": x[[0] * 9], "position": x},
    }[family]
    asked = task(family, 8, 5 if family == "product" else 16, 16, activation="relu")
    bounds = references[family].rounded(operands, {}, asked, dims, "fp32")
    np.testing.assert_allclose(bounds.value, references[family].reference(operands, asked, dims), rtol=1e-13)
    assert (bounds.below >= 0).all()
    assert (bounds.above >= 0).all()


def test_rows_of_tiny_numbers_have_bounds_of_their_own_size() -> None:
    a, w = np.full((1, 4), 1e-30), np.full((4, 1), 1e-3)
    assert rounding.root_of_squares(a, w)[0, 0] == pytest.approx(2e-33, rel=1e-5)
    assert rounding.root_of_squares(0 * a, w)[0, 0] == 0
