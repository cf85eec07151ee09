"""The activation functions: their values, on the cpu and in both references, and what the gate says."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gputop.backends.cpu import activation_calls
from gputop.backends.cpu.backend import open_backend
from gputop.backends.cpu.memory import Memory
from gputop.model.activation_functions import FUNCTIONS
from gputop.model.rng import tokens
from gputop.model.weights import master
from gputop.phases import rounding
from gputop.plan.plan_string import parse_word
from gputop.plan.types import Activation, Dims, Plan, PlanRequest, Workload
from gputop.planner.resolver import Resolver
from gputop.session.prepared_plans import PreparedLanes
from gputop.validation.reference import float64_pass

CATALOG = Resolver.load()
RUNGS = [rung.id for rung in CATALOG.rungs_of("cpu")]
GELUS: tuple[Activation, ...] = ("gelu", "gelu_new")
SIZES = Dims(layers=2, d_model=36, heads=3, d_ff=70, seq=7, vocab=101)
"""Small, and odd where something may ask for multiples: the words too."""


def model(activation: Activation, tied: bool = True) -> Workload:
    return Workload("odd", replace(SIZES, activation=activation, tied_head=tied), seed=3)


def by_hand(activation: Activation, x: float) -> float:
    if activation == "relu":
        return max(x, 0.0)
    if activation == "gelu":
        return x * math.erfc(-x / math.sqrt(2)) / 2
    return x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def silent(text: str) -> None:
    """Narrates to nobody."""


def applied(activation: Activation, values: NDArray[np.float32]) -> NDArray[np.float32]:
    """By the cpu backend's calls, in a plan's memory."""
    dims = model(activation).dims
    memory = Memory(Plan("cpu", PlanRequest(""), ()), dims, {}, keep_layers=False)
    out = values.copy()
    with np.errstate(all="ignore"):
        for call in activation_calls.CALLS[activation](out, memory):
            call()
    return out


@pytest.mark.parametrize("activation", FUNCTIONS)
@given(values=st.lists(st.floats(-40.0, 40.0, width=32), min_size=1, max_size=20))
def test_every_form_is_the_function_of_the_paper(activation: Activation, values: list[float]) -> None:
    x = np.array(values)
    expected = [by_hand(activation, value) for value in values]
    np.testing.assert_allclose(FUNCTIONS[activation].float64(x), expected, rtol=1e-9, atol=1e-14)
    on_cpu = applied(activation, x.astype(np.float32))
    # erfc is off by 1.5e-7 at most, of which half a value is lost.
    np.testing.assert_allclose(on_cpu, expected, rtol=3e-7, atol=1e-7 * np.abs(x).max() + 1e-9)


@pytest.mark.parametrize("activation", GELUS)
def test_poison_stays_visible_and_large_values_are_kept(activation: Activation) -> None:
    out = applied(activation, np.array([np.nan, 1e30, -1e30], np.float32))
    assert np.isnan(out[0])
    assert out[1] == np.float32(1e30)
    assert out[2] == 0.0


def test_the_two_gelus_differ_where_the_paper_says_so() -> None:
    exact, approximate = (FUNCTIONS[name].float64(np.array([-2.0])) for name in GELUS)
    assert exact[0] == pytest.approx(-0.0455003, abs=1e-7)
    assert approximate[0] == pytest.approx(-0.0454023, abs=1e-7)


@pytest.mark.parametrize("activation", GELUS)
@pytest.mark.parametrize("rung", RUNGS)
def test_every_cpu_rung_passes_both_gates_with_odd_sizes(rung: str, activation: Activation) -> None:
    opened = open_backend(model(activation), None, silent)
    plan = CATALOG.resolve(parse_word(rung), opened.workload.dims, "cpu")
    lanes = PreparedLanes(opened, CATALOG)
    gate = lanes.check_phases(lanes.get(plan, silent), silent)
    opened.close()
    assert gate.status == "PASS", gate.where
    assert gate.pass_error is not None
    assert gate.pass_error < 2e-6


def test_the_other_gelu_is_caught_at_the_phase_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(activation_calls.CALLS, "gelu_new", activation_calls.CALLS["gelu"])
    monkeypatch.setattr(activation_calls, "scratch_bytes", lambda dims: 0)
    opened = open_backend(model("gelu_new"), None, silent)
    plan = CATALOG.resolve(parse_word("cpu-blas"), opened.workload.dims, "cpu")
    lanes = PreparedLanes(opened, CATALOG)
    gate = lanes.check_phases(lanes.get(plan, silent), silent)
    opened.close()
    assert gate.status == "FAIL"
    assert "w1 of layer 0" in gate.where


def test_a_tied_head_is_the_embedding_and_another_answer() -> None:
    tied, own = master(model("gelu_new")), master(model("gelu_new", tied=False))
    assert np.array_equal(tied["whead"], tied["embedding"])
    assert not np.array_equal(own["whead"], own["embedding"])
    ids = tokens(model("gelu_new"), 0, 1)
    one, other = (float64_pass(model("gelu_new", tied), ids) for tied in (True, False))
    assert not np.allclose(one, other, rtol=0.1)


@pytest.mark.parametrize("activation", FUNCTIONS)
@given(
    value=st.floats(-30.0, 30.0),
    error=st.floats(1e-9, 3.0),
    part=st.floats(-1.0, 1.0),
)
def test_the_gates_bounds_hold_every_input_that_may_be_meant(
    activation: Activation, value: float, error: float, part: float
) -> None:
    out, below, above = rounding.activated(np.array([value]), np.array([error]), activation)
    meant = by_hand(activation, value + part * error)
    assert out[0] - below[0] - 1e-12 <= meant <= out[0] + above[0] + 1e-12


@pytest.mark.parametrize("activation", GELUS)
def test_the_gates_bounds_are_no_wider_than_the_function_is_steep(activation: Activation) -> None:
    """1.13 is GELU's largest slope: a wider bound would hide a fault."""
    value, error = np.linspace(-6, 6, 4001), 1e-3
    _, below, above = rounding.activated(value, np.full_like(value, error), activation)
    assert (np.maximum(below, above) <= 1.14 * error + 5e-7 * abs(value)).all()
