"""Faults in a TF32 pass, whose products are as far off as tensor cores make them, caught where they are.

The pass is emulated: the operands of products are truncated, as tensor cores do it, and the rest is fp32.
Many of these faults hide below what TF32 does to a row. What sees them is an element's own bound or, where
no tensor core is at work, the tolerance of fp32.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gputop.model.workloads import parse_workload
from gputop.plan.plan_string import parse_word
from gputop.plan.types import LAYERNORM_EPS, Dims, Step, Task
from gputop.results.records import PhaseCheck
from gputop.validation import gate
from gputop.validation.phase_check import check_phases
from tests.unit.emulated import BF16_BITS, nearest, truncated
from tests.unit.float_pass import CATALOG, FloatPass, Operands, Spoil, at, unspoilt

MINI = replace(parse_workload("mini"), dims=Dims(1, 256, 4, 1024, 32, 256))
"""One layer of it, and a quarter of its tokens."""


def checked(phases: Sequence[str], spoil: Spoil = unspoilt, exact: Sequence[str] = ()) -> list[PhaseCheck]:
    """The checks of these phases in a TF32 pass of mini; products of `exact` phases are in fp32."""
    plan = CATALOG.resolve(parse_word("cpu-blas"), MINI.dims, "cpu")
    steps = tuple(_tf32(step, exact) for step in CATALOG.steps(plan, MINI.dims, keep_layers=True))
    plan = replace(plan, math="tf32")
    traced = FloatPass(MINI, plan, steps, True, spoil, truncated, tuple(exact))
    traced.run(gate.trace_tokens(MINI, MINI.dims)[0], 1e30)
    wanted = [step for step in steps if step.tasks[0].site.phase in phases]
    return list(check_phases(traced, wanted, MINI, plan, MINI.dims))


def _tf32(step: Step, exact: Sequence[str]) -> Step:
    """The step by a kernel that declares no pipe of fp32, unless its phase is an exact one."""
    if step.tasks[0].site.phase in exact:
        return step
    return replace(step, kernel=replace(step.kernel, shapes=None))


def changed(out: Any, where: Any, change: Any) -> Any:
    """`out` with `change` of the elements at `where`."""
    spoilt = np.array(out)
    spoilt[where] = change(spoilt[where])
    return spoilt


def again(task: Task, operands: Operands, **others: Any) -> Any:
    """The phase computed with other operands."""
    return CATALOG.phase(task.site.phase).reference(operands | others, task, MINI.dims)


def normalised(eps: float = LAYERNORM_EPS, lost: int = 0, centred: bool = True) -> Spoil:
    """A layernorm whose variance is another one."""

    def change(task: Task, operands: Operands, out: Any) -> Any:
        x = operands["x"].astype(np.float64)
        apart = x - x.mean(axis=1, keepdims=True)
        squares = (apart if centred else x) ** 2
        spread = squares.sum(axis=1, keepdims=True) / (x.shape[1] - lost)
        return (apart / np.sqrt(spread + eps) * operands["gain"] + operands["shift"]).astype(np.float32)

    return change


def sloped(task: Task, operands: Operands, out: Any) -> Any:
    before = again(replace(task, activation=None), operands)
    return np.where(before < 0, np.float32(0.001) * before, out)


def without_last_product(where: Any) -> Spoil:
    """The elements at `where` lack the last product of their sums."""

    def change(task: Task, operands: Operands, out: Any) -> Any:
        short = again(task, operands, a=operands["a"][:, :-1], w=operands["w"][:, :-1])
        spoilt = np.array(out)
        spoilt[where] = short[where]
        return spoilt

    return change


def no_residual(task: Task, operands: Operands, out: Any) -> Any:
    return changed(out, (9, slice(40, 44)), lambda own: own - operands["residual"][9, 40:44])


def sums_in_bf16(task: Task, operands: Operands, out: Any) -> Any:
    """Cut after each quarter of the inner axis."""
    total = np.zeros_like(out)
    for part in np.array_split(np.arange(operands["a"].shape[1]), 4):
        total = truncated(total + operands["a"][:, part] @ operands["w"][:, part].T, BF16_BITS)
    return total + operands["bias"]


def unscaled_parts(task: Task, operands: Operands, out: Any) -> Any:
    """Two halves of the keys, each under its own maximum, added as they are."""
    dims = MINI.dims
    q, k, v = (operands[role].reshape(dims.seq, dims.heads, -1).swapaxes(0, 1) for role in "qkv")
    scores = q @ k.swapaxes(1, 2) * np.float32(dims.d_head**-0.5)
    scores[:, np.triu(np.ones((dims.seq, dims.seq), bool), 1)] = -np.inf
    sums, totals = [], []
    for half in (slice(0, 16), slice(16, 32)):
        most = np.maximum(scores[:, :, half].max(axis=-1, keepdims=True), np.float32(-1e30))
        shares = np.exp(scores[:, :, half] - most)
        sums.append(shares @ v[:, half])
        totals.append(shares.sum(axis=-1, keepdims=True))
    return (sum(sums) / sum(totals)).swapaxes(0, 1).reshape(dims.seq, -1)


LARGE: Mapping[str, tuple[str, Spoil]] = {
    "bias missing in 4 columns": (
        "w1",
        lambda task, operands, out: np.maximum(
            changed(
                again(replace(task, activation=None), operands),
                (slice(None), slice(0, 4)),
                lambda own: own - operands["bias"][:4],
            ),
            0,
        ),
    ),
    "one element 10 % off": ("qkv", lambda task, operands, out: changed(out, (5, 7), lambda own: own * 1.1)),
    "one element doubled": ("wo", lambda task, operands, out: changed(out, (5, 7), lambda own: own * 2)),
    "eps left out": ("ln1", normalised(eps=0.0)),
    "variance about 0 instead of the mean": ("ln2", normalised(centred=False)),
    "scale 1 % off": ("ln2", lambda task, operands, out: out * np.float32(1.01)),
    "scores' scale 5 % off": (
        "attention",
        lambda task, operands, out: again(task, operands, q=operands["q"] * np.float32(1.05)),
    ),
    "residual missing in 4 elements of a row": ("w2", no_residual),
    "sums cut to bf16": ("qkv", sums_in_bf16),
    "parts' totals not rescaled": ("attention", unscaled_parts),
}
"""What a row's norm sees, if not always in TF32."""

SMALL: Mapping[str, tuple[str, Spoil]] = {
    "variance over d - 1": ("ln1", normalised(lost=1)),
    "eps a tenth too large": ("ln1", normalised(eps=1.1 * LAYERNORM_EPS)),
    "gain of one column rounded to TF32": (
        "ln2",
        lambda task, operands, out: changed(
            out, (slice(None), 3), lambda own: own * truncated(operands["gain"])[3] / operands["gain"][3]
        ),
    ),
    "layernorm stored in TF32": ("ln1", lambda task, operands, out: nearest(out)),
    "positions rounded to TF32": (
        "embed",
        lambda task, operands, out: again(task, operands, position=nearest(operands["position"])),
    ),
    "ReLU with a slope of 0.001 below zero": ("w1", sloped),
    "ReLU that ends at 0.0005": ("w1", lambda task, operands, out: np.maximum(out, np.float32(0.0005))),
    "last product missing in one column": ("w1", without_last_product((slice(None), 200))),
    "last product missing in one element": ("qkv", without_last_product((27, 13))),
    "one column 2 % off": (
        "qkv",
        lambda task, operands, out: changed(out, (slice(None), 100), lambda own: own * np.float32(1.02)),
    ),
    "a neighbour's bias in one column": (
        "qkv",
        lambda task, operands, out: changed(
            out, (slice(None), 8), lambda own: own + operands["bias"][9] - operands["bias"][8]
        ),
    ),
}
"""What a row's norm does not see in TF32."""

EXACT: Mapping[str, tuple[str, Spoil]] = {
    "attention's shares rounded to TF32": (
        "attention",
        lambda task, operands, out: again(task, operands, v=nearest(operands["v"])),
    ),
    "scores' scale 0.1 % off": (
        "attention",
        lambda task, operands, out: again(task, operands, q=operands["q"] * np.float32(1.001)),
    ),
    "product in TF32": ("wo", lambda task, operands, out: again(task, operands, w=nearest(operands["w"]))),
}
"""Of kernels that compute in fp32 within a TF32 plan."""


def test_a_right_tf32_pass_is_right_phase_by_phase() -> None:
    everywhere = [phase.name for phase in CATALOG.phases]
    for exact in ((), ("attention", "wo")):
        found = checked(everywhere, exact=exact)
        assert [check.site for check in found] == everywhere
        assert all(check.ok for check in found)
        shares = [check.element.share for check in found if check.element is not None]
        assert len(shares) == len(everywhere)
        assert max(shares) < 0.6, "far from an alarm"


@pytest.mark.parametrize("name", LARGE)
def test_a_fault_of_a_tf32_pass_is_caught(name: str) -> None:
    phase, spoil = LARGE[name]
    (check,) = checked([phase], at(phase, spoil, layer=0))
    assert not check.ok


@pytest.mark.parametrize("name", SMALL)
def test_a_fault_that_hides_from_the_norms_of_rows_in_tf32_is_caught_all_the_same(name: str) -> None:
    phase, spoil = SMALL[name]
    (check,) = checked([phase], at(phase, spoil, layer=0))
    assert not check.ok
    assert check.error is not None
    assert check.error <= CATALOG.phase(phase).tolerances["tf32"], "what was all that it was held to"


@pytest.mark.parametrize("name", EXACT)
def test_a_fault_of_an_fp32_kernel_in_a_tf32_pass_is_caught(name: str) -> None:
    phase, spoil = EXACT[name]
    (check,) = checked([phase], at(phase, spoil, layer=0), exact=[phase])
    assert not check.ok
    (as_tensor_cores_do,) = checked([phase], at(phase, spoil, layer=0))
    assert as_tensor_cores_do.ok, "there it is no fault"
