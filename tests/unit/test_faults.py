"""Faults planted in the cpu kernels, one at a time, and caught by the real gates in fp32."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import numpy as np
import pytest

from gputop.backends.cpu import kernels
from gputop.backends.cpu.activation_calls import Call
from gputop.backends.cpu.kernels import TABLE
from gputop.backends.cpu.memory import Memory
from gputop.model import weights
from gputop.model.workloads import parse_workload
from gputop.plan.plan_string import parse_word
from gputop.plan.types import LAYERNORM_EPS, Dims, Plan, Task, View, WeightView
from gputop.session.session import Session

TINY = parse_workload("tiny")
Bound = tuple[Call, ...]
Fault = Callable[[kernels.Bind, Task, Memory, Plan, Dims], Bound]


class Altered:
    """A memory of which some accesses are changed."""

    def __init__(self, memory: Memory, **changes: Callable[..., Any]) -> None:
        self._memory = memory
        vars(self).update(changes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._memory, name)


@pytest.fixture
def session() -> Iterator[Session]:
    session = Session.open("cpu", TINY)
    yield session
    session.close()


def plant(monkeypatch: pytest.MonkeyPatch, entry: str, phase: str, fault: Fault) -> None:
    """Put `fault` into the kernel table for the last layer's tasks of one phase."""
    whole = TABLE[entry]

    def faulty(task: Task, memory: Memory, plan: Plan, dims: Dims) -> Bound:
        last = task.layer == task.site.layers[1] - 1
        if task.site.phase == phase and last:
            return fault(whole, task, memory, plan, dims)
        return whole(task, memory, plan, dims)

    monkeypatch.setitem(TABLE, entry, faulty)


def without(role: str) -> Fault:
    """The kernel never sees this operand."""

    def fault(bind: kernels.Bind, task: Task, memory: Memory, plan: Plan, dims: Dims) -> Bound:
        assert task.operand(role) is not None
        return bind(
            replace(task, inputs=tuple(pair for pair in task.inputs if pair[0] != role)), memory, plan, dims
        )

    return fault


def stale_row(bind: kernels.Bind, task: Task, memory: Memory, plan: Plan, dims: Dims) -> Bound:
    """The last row of the output keeps what was in the buffer."""
    kept = memory.view(task.output)[-1:]
    before = np.empty_like(kept)
    return (
        partial(np.copyto, before, kept),
        *bind(task, memory, plan, dims),
        partial(np.copyto, kept, before),
    )


def stale_columns(bind: kernels.Bind, task: Task, memory: Memory, plan: Plan, dims: Dims) -> Bound:
    """The last tile of columns is never computed."""
    kept = memory.view(task.output)[:, -16:]
    before = np.empty_like(kept)
    return (
        partial(np.copyto, before, kept),
        *bind(task, memory, plan, dims),
        partial(np.copyto, kept, before),
    )


def short_sum(bind: kernels.Bind, task: Task, memory: Memory, plan: Plan, dims: Dims) -> Bound:
    """The last tile of the products' depth is left out."""
    a = task.operand("a")
    assert isinstance(a, View)
    shorter = tuple(
        (role, replace(a, columns=a.columns - 16) if role == "a" else x) for role, x in task.inputs
    )
    return bind(replace(task, inputs=shorter), memory, plan, dims)


def no_relu(bind: kernels.Bind, task: Task, memory: Memory, plan: Plan, dims: Dims) -> Bound:
    assert task.activation == "relu"
    return bind(replace(task, activation=None), memory, plan, dims)


def unfolded(bind: kernels.Bind, task: Task, memory: Memory, plan: Plan, dims: Dims) -> Bound:
    """The layernorm's gain is gone and the weights were not multiplied by it."""
    assert plan.fold
    plain = Memory(plan, dims, weights.master(TINY), keep_layers=False)
    return bind(task, Altered(memory, matrix=plain.matrix), plan, dims)  # type: ignore[arg-type]


def no_eps(bind: kernels.Bind, task: Task, memory: Memory, plan: Plan, dims: Dims) -> Bound:
    calls = [call for call in bind(task, memory, plan, dims) if not _adds(call, LAYERNORM_EPS)]
    assert len(calls) == len(bind(task, memory, plan, dims)) - 1
    return tuple(calls)


def swapped_heads(bind: kernels.Bind, task: Task, memory: Memory, plan: Plan, dims: Dims) -> Bound:
    """Heads 0 and 1 write each other's columns."""
    out, width = memory.view(task.output), dims.d_head
    first, second = out[:, :width], out[:, width : 2 * width]
    kept = np.empty_like(first)
    swap = (
        partial(np.copyto, kept, first),
        partial(np.copyto, first, second),
        partial(np.copyto, second, kept),
    )
    return (*bind(task, memory, plan, dims), *swap)


def scaled_wrongly(bind: kernels.Bind, task: Task, memory: Memory, plan: Plan, dims: Dims) -> Bound:
    """Scores divided by the root of the model's width instead of the head's."""
    return tuple(
        partial(np.multiply, call.args[0], np.float32(dims.d_model**-0.5), call.args[2])
        if isinstance(call, partial) and call.func is np.multiply and np.isscalar(call.args[1])
        else call
        for call in bind(task, memory, plan, dims)
    )


def masked_late(bind: kernels.Bind, task: Task, memory: Memory, plan: Plan, dims: Dims) -> Bound:
    """Each query also sees the key after it."""
    late = np.triu(np.full((dims.seq, dims.seq), -np.inf, np.float32), 2)
    return _with_mask(bind(task, memory, plan, dims), kernels.causal_mask(dims.seq), late)


def masked_early(bind: kernels.Bind, task: Task, memory: Memory, plan: Plan, dims: Dims) -> Bound:
    """No query but the first sees its own key."""
    early = np.triu(np.full((dims.seq, dims.seq), -np.inf, np.float32), 0)
    early[0, 0] = 0
    return _with_mask(bind(task, memory, plan, dims), kernels.causal_mask(dims.seq), early)


def shifted_positions(bind: kernels.Bind, task: Task, memory: Memory, plan: Plan, dims: Dims) -> Bound:
    """Every row takes the position after its own."""

    def table(view: Any) -> Any:
        rows = memory.table(view)
        return np.roll(rows, -1, axis=0) if view.tensor == "position" else rows

    return bind(task, Altered(memory, table=table), plan, dims)  # type: ignore[arg-type]


def neighbours_key(bind: kernels.Bind, task: Task, memory: Memory, plan: Plan, dims: Dims) -> Bound:
    """The second sequence's first key is the first sequence's."""
    k = task.operand("k")
    keys = memory.view(k)  # type: ignore[arg-type]
    mixed = np.empty_like(keys)

    def view(wanted: View) -> Any:
        return mixed if wanted == k else memory.view(wanted)

    leak = (partial(np.copyto, mixed, keys), partial(np.copyto, mixed[dims.seq], mixed[0]))
    return (*leak, *bind(task, Altered(memory, view=view), plan, dims))  # type: ignore[arg-type]


def over_one_less(bind: kernels.Bind, task: Task, memory: Memory, plan: Plan, dims: Dims) -> Bound:
    """The variance of d_model numbers divided by d_model - 1."""
    calls = list(bind(task, memory, plan, dims))
    mean, spread = (i for i, call in enumerate(calls) if _multiplies(call, 1 / dims.d_model))
    assert mean < spread
    variance = memory.scratch("variance", (task.output.rows,))
    calls[spread] = partial(np.multiply, variance, np.float32(1 / (dims.d_model - 1)), variance)
    return tuple(calls)


def sloped(bind: kernels.Bind, task: Task, memory: Memory, plan: Plan, dims: Dims) -> Bound:
    """ReLU with a slope of 0.001 below zero."""
    out = memory.view(task.output)

    def leak() -> None:
        np.multiply(out, np.where(out < 0, np.float32(0.001), np.float32(1)), out=out)

    return (*no_relu(bind, task, memory, plan, dims), leak)


def slightly_off(share: float, where: tuple[int | slice, ...], role: str = "") -> Fault:
    """Output at `where` off by a share of itself; with `role`, of that vector there."""

    def fault(bind: kernels.Bind, task: Task, memory: Memory, plan: Plan, dims: Dims) -> Bound:
        out = memory.view(task.output)
        operand = task.operand(role) if role else None
        vector = memory.vector(operand) if isinstance(operand, WeightView) else None

        def spoil() -> None:
            out[where] += np.float32(share) * (out[where] if vector is None else vector[where[-1]])

        return (*bind(task, memory, plan, dims), spoil)

    return fault


def rounded_positions(bind: kernels.Bind, task: Task, memory: Memory, plan: Plan, dims: Dims) -> Bound:
    """Positions without their last four bits."""

    def table(view: Any) -> Any:
        rows = memory.table(view)
        if view.tensor != "position":
            return rows
        return (rows.view(np.uint32) & np.uint32(0xFFFFFFF0)).view(np.float32)

    return bind(task, Altered(memory, table=table), plan, dims)  # type: ignore[arg-type]


GEMM, NORM, ATTEND = "cpu_blas_gemm", "cpu_layernorm", "cpu_blas_attention"
FAULTS = [
    *((GEMM, phase, "cpu-blas", without("bias"), "missing bias") for phase in ("qkv", "wo", "w1", "w2")),
    (GEMM, "head", "cpu-blas,fold=on", without("bias"), "missing bias"),
    *((GEMM, phase, "cpu-blas", without("residual"), "missing residual") for phase in ("wo", "w2")),
    *((GEMM, phase, "cpu-blas,fold=on", unfolded, "missing fold") for phase in ("qkv", "w1", "head")),
    *(
        (GEMM, phase, "cpu-blas", stale_columns, "skipped last tile")
        for phase in ("qkv", "wo", "w1", "w2", "head")
    ),
    *((GEMM, phase, "cpu-blas", short_sum, "short sum") for phase in ("qkv", "wo", "w1", "w2", "head")),
    *((GEMM, phase, "cpu-blas", stale_row, "stale row") for phase in ("qkv", "wo", "w1", "w2", "head")),
    (GEMM, "w1", "cpu-blas", no_relu, "missing relu"),
    (GEMM, "w1", "cpu-blas", sloped, "relu with a slope below zero"),
    *((NORM, phase, "cpu-blas", over_one_less, "variance over d - 1") for phase in ("ln1", "ln2", "lnf")),
    *((NORM, phase, "cpu-blas", without("gain"), "missing gain") for phase in ("ln1", "ln2", "lnf")),
    *((NORM, phase, "cpu-blas", without("shift"), "missing shift") for phase in ("ln1", "ln2", "lnf")),
    *((NORM, phase, "cpu-blas", no_eps, "missing eps") for phase in ("ln1", "ln2", "lnf")),
    *((NORM, phase, "cpu-blas", stale_row, "stale row") for phase in ("ln1", "ln2", "lnf")),
    (ATTEND, "attention", "cpu-blas", masked_late, "mask one late"),
    (ATTEND, "attention", "cpu-blas", masked_early, "mask one early"),
    (ATTEND, "attention", "cpu-blas", scaled_wrongly, "wrong scale"),
    (ATTEND, "attention", "cpu-blas", swapped_heads, "swapped heads"),
    (ATTEND, "attention", "cpu-blas", stale_row, "stale row"),
    (ATTEND, "attention", "cpu-blas,batch=2", neighbours_key, "leak between sequences"),
    ("cpu_embed", "embed", "cpu-blas", shifted_positions, "wrong position"),
    ("cpu_embed", "embed", "cpu-blas", stale_row, "stale row"),
]


SMALL = [
    (GEMM, "w1", "cpu-blas", slightly_off(5e-5, (5, 8)), "one element 0.005 % off"),
    (GEMM, "qkv", "cpu-blas", slightly_off(5e-5, (5, 8)), "one element 0.005 % off"),
    (GEMM, "wo", "cpu-blas", slightly_off(3e-5, (0, 60)), "one element 0.003 % off"),
    (GEMM, "head", "cpu-blas", slightly_off(1e-4, (0, 200)), "one element 0.01 % off"),
    (GEMM, "qkv", "cpu-blas", slightly_off(-1e-3, (slice(None), 9), "bias"), "one bias 0.1 % too small"),
    (NORM, "ln1", "cpu-blas", slightly_off(4e-5, (slice(None), 3)), "one gain 0.004 % off"),
    (NORM, "ln2", "cpu-blas", slightly_off(4e-5, (3, 3)), "one element 0.004 % off"),
    (ATTEND, "attention", "cpu-blas", slightly_off(5e-5, (9, 20)), "one element 0.005 % off"),
    ("cpu_embed", "embed", "cpu-blas", rounded_positions, "positions without their last bits"),
]
"""What hides from the norms of rows even in fp32: bounds of elements see it."""


@pytest.mark.parametrize(
    ("entry", "phase", "word", "fault"),
    [pytest.param(*case[:4], id=f"{case[1]}: {case[4]}") for case in SMALL],
)
def test_a_fault_too_small_for_the_norm_of_a_row_is_caught_by_an_elements_bound(
    monkeypatch: pytest.MonkeyPatch, session: Session, entry: str, phase: str, word: str, fault: Fault
) -> None:
    plant(monkeypatch, entry, phase, fault)
    gate = session.check(parse_word(word))
    (check,) = (check for check in gate.checks if not check.ok)
    assert check.site == phase
    assert check.error is not None
    assert check.error <= check.tolerance
    assert check.element is not None
    assert check.element.bound is not None
    assert gate.where.startswith(
        f"{phase} of layer {check.layer}, row {check.element.row}, column {check.element.column}: "
    )
    assert "rounding explains" in gate.where


@pytest.mark.parametrize(
    ("entry", "phase", "word", "fault"),
    [pytest.param(*case[:4], id=f"{case[1]}: {case[4]}") for case in FAULTS],
)
def test_the_gate_catches_a_fault_and_says_where(
    monkeypatch: pytest.MonkeyPatch, session: Session, entry: str, phase: str, word: str, fault: Fault
) -> None:
    plant(monkeypatch, entry, phase, fault)
    gate = session.check(parse_word(word))
    assert gate.status == "FAIL"
    assert gate.where.startswith(f"{phase} of layer")
    failed = [check.site for check in gate.checks if not check.ok]
    assert failed[0] == phase
    if not poisonous(fault):
        assert failed == [phase], "a phase that was given wrong inputs is not itself at fault"


def poisonous(fault: Fault) -> bool:
    """Whether what it leaves behind is poison, on which no later phase can be right."""
    return fault in (stale_row, stale_columns)


def test_the_same_plans_pass_without_a_fault(session: Session) -> None:
    words = {case[2] for case in FAULTS}
    assert {word: session.check(parse_word(word)).status for word in words} == dict.fromkeys(words, "PASS")


def test_a_leak_between_sequences_shows_in_the_logits_of_both_runs(
    monkeypatch: pytest.MonkeyPatch, session: Session
) -> None:
    plant(monkeypatch, ATTEND, "attention", neighbours_key)
    gate = session.check(parse_word("cpu-blas,batch=2"))
    assert "token set 0" in gate.where
    assert "token set 1" in gate.where


def test_a_plan_that_fails_has_no_time(monkeypatch: pytest.MonkeyPatch, session: Session) -> None:
    plant(monkeypatch, GEMM, "wo", without("residual"))
    window = session.measure(parse_word("cpu-blas"), parse_word("cpu-loops"), seconds=0.05)
    failing, passing = window.lane("current"), window.lane("pinned")
    assert failing is not None
    assert passing is not None
    assert failing.gate.status == "FAIL"
    assert failing.rows == ()
    assert (failing.device_s, failing.wall_s) == (None, None)
    assert window.comparison is None
    assert "cpu-blas" in window.verdict
    assert "wo of layer" in window.verdict
    assert passing.device_s is not None


def only_when(runs: Callable[[int], bool]) -> Fault:
    """The kernel does nothing in passes (counted from 1) for which `runs` is False."""

    def fault(bind: kernels.Bind, task: Task, memory: Memory, plan: Plan, dims: Dims) -> Bound:
        calls, passes = bind(task, memory, plan, dims), count(1)

        def maybe() -> None:
            if runs(next(passes)):
                for call in calls:
                    call()

        return (maybe,)

    return fault


LAPSES = {
    "computes in its first three calls": lambda number: number <= 3,
    "fails at each seventh": lambda number: number % 7 != 0,
}


@pytest.mark.parametrize("lapse", LAPSES)
@pytest.mark.parametrize(
    ("entry", "phase"), [("cpu_embed", "embed"), (GEMM, "w1"), (ATTEND, "attention"), (GEMM, "head")]
)
@pytest.mark.parametrize("word", ["cpu-blas", "cpu-blas,batch=2"])
def test_a_kernel_that_passes_the_gate_and_lapses_when_timed_has_no_time(
    monkeypatch: pytest.MonkeyPatch, session: Session, entry: str, phase: str, word: str, lapse: str
) -> None:
    """What it leaves is what the pass before left: right for other tokens, never for those of this pass."""
    plant(monkeypatch, entry, phase, only_when(LAPSES[lapse]))
    window = session.measure(parse_word(word), seconds=0.05)
    lane = window.lane("current")
    assert lane is not None
    assert lane.gate.status == "FAIL"
    assert lane.gate.where.startswith("logits of a timed pass, token set ")
    assert (lane.rows, lane.device_s, lane.wall_s) == ((), None, None)
    assert window.stopped_because == "gate failed"
    assert word in window.verdict
    assert session.check(parse_word(word)).status == "FAIL", "and stays so while it is prepared"


@pytest.mark.parametrize("role", ["current", "pinned"])
def test_of_a_pair_the_plan_that_lapses_is_left_out(
    monkeypatch: pytest.MonkeyPatch, session: Session, role: str
) -> None:
    plant(monkeypatch, "cpu_loops_gemm", "w1", only_when(LAPSES["fails at each seventh"]))
    words = ("cpu-loops", "cpu-blas") if role == "current" else ("cpu-blas", "cpu-loops")
    window = session.measure(*map(parse_word, words), seconds=0.1)
    lapsing, sound = window.lane(role), window.lane({"current": "pinned", "pinned": "current"}[role])
    assert lapsing is not None
    assert sound is not None
    assert (lapsing.gate.status, lapsing.rows) == ("FAIL", ())
    assert sound.gate.ok
    assert sound.device_s is not None
    assert window.comparison is None
    assert "no time for cpu-loops" in window.verdict


def test_a_rung_that_lapses_has_no_time_in_the_ladder(
    monkeypatch: pytest.MonkeyPatch, session: Session
) -> None:
    plant(monkeypatch, "cpu_loops_gemm", "w1", only_when(LAPSES["fails at each seventh"]))
    rungs = [parse_word(word) for word in ("cpu-loops", "cpu-blas", "cpu-threads")]
    loops, blas, threads = session.measure_ladder(rungs, seconds=0.2).entries
    assert loops.gate.status == "FAIL"
    assert (loops.device_s, loops.binds, loops.ratio_first) == (None, None, None)
    assert blas.device_s is not None
    assert (threads.before, threads.verdict != "") == ("cpu-blas", True)


def test_a_kernel_that_breaks_after_the_last_timed_pass_is_caught_when_the_window_closes(
    monkeypatch: pytest.MonkeyPatch, session: Session
) -> None:
    """Only on poisoned buffers does it show that the kernel no longer writes all of its output."""
    broken: list[bool] = []

    def later(bind: kernels.Bind, task: Task, memory: Memory, plan: Plan, dims: Dims) -> Bound:
        whole, stale = bind(task, memory, plan, dims), stale_columns(bind, task, memory, plan, dims)

        def either() -> None:
            for call in stale if broken else whole:
                call()

        return (either,)

    plant(monkeypatch, GEMM, "w1", later)
    asked = count()

    def stop() -> bool:
        broken.extend([True] * (next(asked) > 5))
        return bool(broken)

    lane = session.measure(parse_word("cpu-blas"), seconds=5.0, stop=stop).lane("current")
    assert lane is not None
    assert lane.gate.status == "FAIL"
    assert lane.gate.where.startswith("after the timed passes: ")
    assert lane.rows == ()


def test_a_rung_that_fails_has_no_time_in_the_ladder(
    monkeypatch: pytest.MonkeyPatch, session: Session
) -> None:
    plant(monkeypatch, GEMM, "w2", without("bias"))
    ladder = session.measure_ladder([parse_word("cpu-loops"), parse_word("cpu-blas")], seconds=0.05)
    loops, blas = ladder.entries
    assert loops.device_s is not None
    assert blas.gate.status == "FAIL"
    assert (blas.device_s, blas.ratio_before, blas.ratio_first) == (None, None, None)


def test_what_the_logits_hide_has_no_time_in_a_ladder_that_is_exported(
    monkeypatch: pytest.MonkeyPatch, session: Session
) -> None:
    plant(monkeypatch, ATTEND, "attention", masked_late)
    rungs = [parse_word("cpu-loops"), parse_word("cpu-blas,layout=transposed")]
    _, blind = session.measure_ladder(rungs, 0.05).entries
    assert blind.gate.status == "PASS pass-only"
    loops, seen = session.measure_ladder(rungs, 0.05, check_phases=True).entries
    assert loops.gate.status == "PASS"
    assert loops.device_s is not None
    assert seen.gate.status == "FAIL"
    assert "attention of layer" in seen.gate.where
    assert (seen.device_s, seen.ratio_first) == (None, None)


def _adds(call: Call, value: float) -> bool:
    return (
        isinstance(call, partial)
        and call.func is np.add
        and np.isscalar(call.args[1])
        and call.args[1] == np.float32(value)
    )


def _multiplies(call: Call, value: float) -> bool:
    return (
        isinstance(call, partial)
        and call.func is np.multiply
        and np.isscalar(call.args[1])
        and call.args[1] == np.float32(value)
    )


def _with_mask(calls: Bound, mask: Any, other: Any) -> Bound:
    changed = tuple(
        partial(np.add, call.args[0], other, call.args[2])
        if isinstance(call, partial) and call.args[1] is mask
        else call
        for call in calls
    )
    assert changed != calls
    return changed
