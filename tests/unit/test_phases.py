"""References of the phases, their wiring, and the whole pass, against straightforward implementations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gputop.model import activations, weights
from gputop.model.rng import tokens
from gputop.model.workloads import WORKLOADS
from gputop.plan.types import Dims, Plan, PlanRequest, Task, View, Workload
from gputop.planner.resolver import Resolver, plan_dims
from gputop.validation.reference import float64_pass

Doubles = NDArray[np.float64]
CATALOG = Resolver.load()
TINY = WORKLOADS[2]
SMALL = Workload("small", Dims(layers=2, d_model=12, heads=3, d_ff=20, seq=5, vocab=11), seed=4)


# --- the model token by token, in plain loops -------------------------------------------------------


def dot(a: list[float], b: list[float]) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def affine(x: list[float], w: list[list[float]], b: list[float]) -> list[float]:
    return [dot(row, x) + bias for row, bias in zip(w, b, strict=True)]


def normalised(x: list[float], gain: list[float], shift: list[float]) -> list[float]:
    mean = math.fsum(x) / len(x)
    variance = math.fsum((value - mean) ** 2 for value in x) / len(x)
    return [(v - mean) / math.sqrt(variance + 1e-5) * g + s for v, g, s in zip(x, gain, shift, strict=True)]


def attended(q: list[float], keys: list[list[float]], values: list[list[float]], heads: int) -> list[float]:
    size, out = len(q) // heads, []
    for head in range(heads):
        own = slice(head * size, (head + 1) * size)
        scores = [math.exp(dot(q[own], k[own]) / math.sqrt(size)) for k in keys]
        shares = [score / math.fsum(scores) for score in scores]
        out += [dot(shares, [v[own][i] for v in values]) for i in range(size)]
    return out


def plain_pass(workload: Workload, ids: list[int]) -> list[float]:
    """Last-token logits, one token after the other, with keys and values kept."""
    dims = workload.dims
    d = dims.d_model
    w: dict[str, Any] = {name: array.tolist() for name, array in weights.master(workload).items()}
    keys: list[list[list[float]]] = [[] for _ in range(dims.layers)]
    values: list[list[list[float]]] = [[] for _ in range(dims.layers)]
    x: list[float] = []
    for place, token in enumerate(ids):
        x = [e + p for e, p in zip(w["embedding"][0][token], w["position"][0][place], strict=True)]
        for n in range(dims.layers):
            qkv = affine(normalised(x, w["gain1"][n], w["shift1"][n]), w["wqkv"][n], w["bqkv"][n])
            keys[n].append(qkv[d : 2 * d])
            values[n].append(qkv[2 * d :])
            mixed = affine(attended(qkv[:d], keys[n], values[n], dims.heads), w["wo"][n], w["bo"][n])
            x = [a + b for a, b in zip(x, mixed, strict=True)]
            up = affine(normalised(x, w["gain2"][n], w["shift2"][n]), w["w1"][n], w["b1"][n])
            down = affine([max(value, 0.0) for value in up], w["w2"][n], w["b2"][n])
            x = [a + b for a, b in zip(x, down, strict=True)]
    last = normalised(x, w["gainf"][0], w["shiftf"][0])
    return [dot(row, last) for row in w["whead"][0]]


def test_the_reference_pass_is_the_plain_one() -> None:
    ids = tokens(SMALL, 0, 2)
    expected = [plain_pass(SMALL, sequence) for sequence in ids.tolist()]
    np.testing.assert_allclose(float64_pass(SMALL, ids), expected, rtol=1e-12, atol=1e-14)


# --- the phases wired up ----------------------------------------------------------------------------


def elements(view: View) -> NDArray[np.intp]:
    return view.offset + np.arange(view.rows)[:, None] * view.ld + np.arange(view.columns)


class Float64Pass:
    """A plan run task by task through the phases' own references, over poisoned buffers."""

    def __init__(self, workload: Workload, plan: Plan, keep_layers: bool, split_qkv: bool = False) -> None:
        self.dims = plan_dims(workload, plan)
        self.plan = plan
        self.workload = workload
        self.tasks = CATALOG.pass_tasks(plan, self.dims, keep_layers)
        if split_qkv:
            self.tasks = tuple(part for task in self.tasks for part in self._parts(task))
        self.memory = {
            buffer.name: np.full(
                (activations.slots(buffer, self.dims, keep_layers), buffer.size(self.dims)), np.nan
            )
            for buffer in activations.table(plan.prune)
        }

    def run(self, ids: NDArray[np.int32]) -> Doubles:
        self.memory["tokens"][0] = ids.reshape(-1)
        for task in self.tasks:
            phase = CATALOG.phase(task.site.phase)
            operands = {role: self._operand(operand) for role, operand in task.inputs}
            self._slot(task.output)[elements(task.output)] = phase.reference(operands, task, self.dims)
        return self.memory["logits"].reshape(self.dims.batch, -1)

    def _parts(self, task: Task) -> tuple[Task, ...]:
        if task.site.phase != "qkv":
            return (task,)
        return activations.split(task, self.dims.d_model, self.plan.layout)

    def _slot(self, view: View) -> Doubles:
        slot: Doubles = self.memory[view.buffer][view.slot]
        return slot

    def _operand(self, operand: Any) -> Doubles:
        if isinstance(operand, View):
            return self._slot(operand)[elements(operand)]
        return self._stored(operand)

    def _stored(self, operand: Any) -> Doubles:
        """As a backend would read it: from memory in the plan's layout, by offset and ld."""
        whole = weights.reference_tensor(self.workload, operand.tensor, operand.layer, self.plan.fold)
        if whole.ndim == 1:
            return whole[operand.offset : operand.offset + operand.outs]
        inner = whole.shape[1]
        if self.plan.layout == "row" or operand.tensor in ("embedding", "position"):
            view = View("", 0, operand.outs, inner, operand.ld, operand.offset)
            return np.asarray(whole.reshape(-1)[elements(view)])
        view = View("", 0, inner, operand.outs, operand.ld, operand.offset)
        return np.asarray(whole.T.reshape(-1)[elements(view)].T)


def plan_of(workload: Workload, **changes: Any) -> Plan:
    return CATALOG.resolve(PlanRequest("cpu-loops"), workload.dims, "cpu").change(**changes)


@pytest.mark.parametrize("keep_layers", [False, True])
@pytest.mark.parametrize("layout", ["row", "transposed"])
@pytest.mark.parametrize("prune", [False, True])
@pytest.mark.parametrize("fold", [False, True])
@pytest.mark.parametrize("batch", [1, 3])
def test_every_wiring_is_the_same_function(
    keep_layers: bool, layout: str, prune: bool, fold: bool, batch: int
) -> None:
    plan = plan_of(SMALL, layout=layout, prune=prune, fold=fold, batch=batch)
    ids = tokens(SMALL, 0, batch)
    out = Float64Pass(SMALL, plan, keep_layers).run(ids)
    np.testing.assert_allclose(out, float64_pass(SMALL, ids), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("layout", ["row", "transposed"])
@pytest.mark.parametrize("prune", [False, True])
def test_qkv_in_parts_is_the_same_function(layout: str, prune: bool) -> None:
    plan = plan_of(SMALL, layout=layout, prune=prune)
    ids = tokens(SMALL, 1, 1)
    out = Float64Pass(SMALL, plan, False, split_qkv=True).run(ids)
    np.testing.assert_allclose(out, float64_pass(SMALL, ids), rtol=1e-12, atol=1e-13)


@st.composite
def any_dims(draw: st.DrawFn) -> Dims:
    heads = draw(st.integers(1, 3))
    return Dims(
        layers=draw(st.integers(1, 3)),
        d_model=heads * draw(st.integers(1, 5)),
        heads=heads,
        d_ff=draw(st.integers(1, 9)),
        seq=draw(st.integers(1, 7)),
        vocab=draw(st.integers(1, 9)),
    )


@settings(max_examples=40)
@given(dims=any_dims(), prune=st.booleans(), fold=st.booleans(), batch=st.integers(1, 3))
def test_every_shape_is_wired_right(dims: Dims, prune: bool, fold: bool, batch: int) -> None:
    """One layer, one token, one head, one word included."""
    workload = Workload("any", dims)
    plan = plan_of(workload, prune=prune, fold=fold, batch=batch)
    ids = tokens(workload, 0, batch)
    expected = float64_pass(workload, ids)
    out = Float64Pass(workload, plan, True).run(ids)
    np.testing.assert_allclose(out, expected, rtol=1e-9, atol=1e-10)


def test_no_task_writes_what_it_reads() -> None:
    for prune in (False, True):
        plan = plan_of(TINY, prune=prune)
        for task in CATALOG.pass_tasks(plan, TINY.dims, False):
            read = {operand.buffer for _, operand in task.inputs if isinstance(operand, View)}
            assert task.output.buffer not in read


@pytest.mark.parametrize("prune", [False, True])
@pytest.mark.parametrize("keep_layers", [False, True])
def test_every_view_lies_within_its_buffer(prune: bool, keep_layers: bool) -> None:
    plan = plan_of(TINY, prune=prune, batch=3)
    dims = plan_dims(TINY, plan)
    present = {buffer.name: buffer for buffer in activations.table(prune)}
    for task in CATALOG.pass_tasks(plan, dims, keep_layers):
        views = [operand for _, operand in task.inputs if isinstance(operand, View)]
        for view in (*views, task.output):
            buffer = present[view.buffer]
            assert view.slot < activations.slots(buffer, dims, keep_layers)
            assert elements(view).max() < buffer.size(dims)


def test_kept_layers_are_never_overwritten() -> None:
    plan = plan_of(TINY, prune=True)
    written: set[tuple[str, int, int]] = set()
    for task in CATALOG.pass_tasks(plan, TINY.dims, True):
        cells = {(task.output.buffer, task.output.slot, int(cell)) for cell in elements(task.output).flat}
        assert not cells & written
        written |= cells


# --- each reference on random operands --------------------------------------------------------------


def reference(phase: str, operands: Mapping[str, Doubles], rows: int, dims: Dims, **task: Any) -> Doubles:
    plan = plan_of(TINY)
    sites = {site.name: site for site in CATALOG.sites(dims, True)}
    wired = CATALOG.phase(phase).task(sites[phase], 0, plan, dims, False)
    output = replace(wired.output, rows=rows)
    return np.asarray(CATALOG.phase(phase).reference(operands, replace(wired, output=output, **task), dims))


def test_gemm_applies_relu_before_the_residual() -> None:
    rng = np.random.default_rng(1)
    a, w, bias, residual = (rng.standard_normal(shape) for shape in ((4, 6), (5, 6), (5,), (4, 5)))
    operands = {"a": a, "w": w, "bias": bias, "residual": residual}
    got = reference("w1", operands, 4, TINY.dims, activation="relu")
    expected = [
        [
            max(math.fsum(a[i, k] * w[j, k] for k in range(6)) + bias[j], 0.0) + residual[i, j]
            for j in range(5)
        ]
        for i in range(4)
    ]
    np.testing.assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.parametrize("queries", [1, 2, 5])
def test_attention_of_the_last_rows_is_the_end_of_all_rows(queries: int) -> None:
    dims = Dims(2, 6, 2, 8, 5, 4, batch=3)
    rng = np.random.default_rng(2)
    q, k, v = (rng.standard_normal((3, 5, 6)) for _ in range(3))
    got = reference(
        "attention",
        {"q": q[:, 5 - queries :].reshape(-1, 6), "k": k.reshape(-1, 6), "v": v.reshape(-1, 6)},
        3 * queries,
        dims,
    )
    expected = [
        attended(q[b, i].tolist(), k[b, : i + 1].tolist(), v[b, : i + 1].tolist(), 2)
        for b in range(3)
        for i in range(5 - queries, 5)
    ]
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-14)


def test_attention_survives_large_scores() -> None:
    dims = Dims(2, 4, 1, 8, 2, 4)
    big = np.full((2, 4), 1e3)
    values = np.arange(8.0).reshape(2, 4)
    got = reference("attention", {"q": big, "k": big, "v": values}, 2, dims)
    np.testing.assert_allclose(got, [values[0], values.mean(axis=0)])


# --- the folders --------------------------------------------------------------------------------------


def test_neither_folder_is_a_package() -> None:
    root = Path(__file__).resolve().parents[2]
    assert not list((root / "phases").rglob("__init__.py"))
    assert not list((root / "kernels").rglob("__init__.py"))


def test_phases_come_in_pass_order() -> None:
    names = [phase.name for phase in CATALOG.phases]
    assert names == ["embed", "ln1", "qkv", "attention", "wo", "ln2", "w1", "w2", "lnf", "head"]
    assert len({phase.order for phase in CATALOG.phases}) == len(names)
