"""Both gates: a right pass gets through, and each planted fault is caught and told by name and place."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gputop.model import weights
from gputop.model.rng import tokens
from gputop.model.workloads import WORKLOADS
from gputop.plan.plan_string import parse_word
from gputop.plan.types import Dims, Kernel, Math, Plan, Step, Task, Workload
from gputop.planner.resolver import Resolver, plan_dims
from gputop.results.records import ElementCheck, Gate, PhaseCheck
from gputop.validation import compare, gate, phase_check, reference
from tests.unit.float_pass import CATALOG, FloatPass, Floats, Operands, Spoil, at, unspoilt

GPT2_SMALL, _, TINY = WORKLOADS[:3]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(reference, "cache_dir", lambda name: tmp_path / name)
    reference.references.cache_clear()
    yield
    reference.references.cache_clear()


def passed(plan: Plan, steps: tuple[Step, ...], spoil: Spoil | None = None) -> FloatPass:
    return FloatPass(TINY, plan, steps, False, spoil or unspoilt)


def check_pass(
    run: Callable[[NDArray[np.int32], float], Floats],
    workload: Workload,
    dims: Dims,
    math: Math,
    bitwise_row_invariant: bool = True,
) -> Gate:
    """The pass gate, its passes run one after the other."""
    outs = tuple(np.array(run(*each)) for each in gate.pass_runs(workload, dims))
    return gate.judge_pass(outs, workload, dims, math, bitwise_row_invariant)


def gate_of(word: str, spoil: Spoil | None = None, catalog: Resolver = CATALOG) -> Gate:
    """Both gates of a plan on tiny, as a session would run them."""
    plan = catalog.resolve(parse_word(word), TINY.dims, "cpu")
    dims = plan_dims(TINY, plan)
    timed = passed(plan, catalog.steps(plan, dims), spoil)
    kept_steps = catalog.steps(plan, dims, keep_layers=True)
    kept = replace(passed(plan, kept_steps, spoil), keep_layers=True)
    known: phase_check.Known = {}
    checks: list[PhaseCheck] = []
    for ids, poison in zip(gate.trace_tokens(TINY, dims), gate.POISONS, strict=True):
        kept.run(ids, poison)
        checks += phase_check.check_phases(kept, kept_steps, TINY, plan, dims, known)
    return gate.combine(check_pass(timed.run, TINY, dims, plan.math), checks)


# --- right passes -------------------------------------------------------------------------------------


def reference_logits(workload: Workload, token_set: int, sequences: int = 1) -> NDArray[np.float64]:
    """[sequences, vocab] of the first sequences of one token set."""
    (logits,) = reference.references(workload, ((token_set, sequences),))
    return logits


@pytest.mark.parametrize(
    "word", ["cpu-loops", "cpu-transposed", "cpu-folded", "cpu-pruned", "cpu-pruned,fold=off"]
)
def test_a_right_pass_gets_through(word: str) -> None:
    outcome = gate_of(word)
    assert (outcome.status, outcome.where, outcome.ok) == ("PASS", "", True)
    assert outcome.pass_error is not None
    assert 0 < outcome.pass_error < 1e-6
    assert len(outcome.logits) == 2
    expected = reference_logits(TINY, 0)[0, :2]
    assert outcome.logits == pytest.approx(expected.tolist(), rel=1e-4)


def test_every_site_is_checked_and_its_worst_kept() -> None:
    outcome = gate_of("cpu-pruned")
    assert [check.site for check in outcome.checks] == [s.name for s in CATALOG.sites(TINY.dims, True)]
    assert {check.tolerance for check in outcome.checks} == {1e-5}


def test_the_pass_gate_alone_says_so() -> None:
    plan = CATALOG.resolve(parse_word("cpu-blas"), TINY.dims, "cpu")
    steps = CATALOG.steps(plan, TINY.dims)
    alone = check_pass(passed(plan, steps).run, TINY, TINY.dims, plan.math)
    assert alone.status == "PASS pass-only"
    assert gate.combine(alone, ()) == alone


def test_both_token_sets_and_both_poisons_are_run() -> None:
    seen: list[tuple[list[int], float]] = []

    def run(ids: NDArray[np.int32], poison: float) -> Floats:
        seen.append((ids.reshape(-1).tolist(), poison))
        return np.zeros((1, 256), np.float32)

    check_pass(run, TINY, TINY.dims, "fp32")
    assert [ids for ids, _ in seen] == [tokens(TINY, n, 1).reshape(-1).tolist() for n in (0, 1)]
    assert math.isnan(seen[0][1])
    assert seen[1][1] == 1e30


# --- planted faults -----------------------------------------------------------------------------------


def without(role: str) -> Callable[[Task, Operands, Any], Any]:
    def change(task: Task, operands: Operands, out: Any) -> Any:
        kept = {name: value for name, value in operands.items() if name != role}
        return CATALOG.phase(task.site.phase).reference(kept, task, TINY.dims)

    return change


def stale_last_row(task: Task, operands: Operands, out: Any) -> Any:
    spoilt = np.array(out)
    spoilt[-1] = spoilt[0]
    return spoilt


def zeroed_row(task: Task, operands: Operands, out: Any) -> Any:
    spoilt = np.array(out)
    spoilt[3] = 0
    return spoilt


def sees_the_future(task: Task, operands: Operands, out: Any) -> Any:
    dims = TINY.dims
    q, k, v = (operands[r].reshape(dims.seq, dims.heads, -1).swapaxes(0, 1) for r in "qkv")
    scores = q @ k.swapaxes(1, 2) / math.sqrt(dims.d_head)
    scores[:, np.triu(np.ones((dims.seq, dims.seq), bool), 2)] = -np.inf
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return ((shares / shares.sum(-1, keepdims=True)) @ v).swapaxes(0, 1).reshape(dims.seq, -1)


def swapped_heads(task: Task, operands: Operands, out: Any) -> Any:
    return np.roll(np.array(out), TINY.dims.d_head, axis=1)


def skipped_tile(task: Task, operands: Operands, out: Any) -> Any:
    spoilt = np.array(out)
    spoilt[:, -16:] = 0
    return spoilt


def slightly_scaled(task: Task, operands: Operands, out: Any) -> Any:
    return np.array(out) * 1.0001


FAULTS: Mapping[str, tuple[str, Callable[[Task, Operands, Any], Any]]] = {
    "no bias in qkv": ("qkv", without("bias")),
    "no bias in w1": ("w1", without("bias")),
    "no residual in wo": ("wo", without("residual")),
    "no residual in w2": ("w2", without("residual")),
    "mask off by one": ("attention", sees_the_future),
    "heads swapped": ("attention", swapped_heads),
    "stale row in ln2": ("ln2", stale_last_row),
    "zeroed row in w1": ("w1", zeroed_row),
    "last tile of w2 skipped": ("w2", skipped_tile),
    "wrong scale in ln1": ("ln1", slightly_scaled),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_caught_and_placed(fault: str) -> None:
    phase, change = FAULTS[fault]
    outcome = gate_of("cpu-blas", at(phase, change))
    assert outcome.status == "FAIL"
    assert not outcome.ok
    assert f"{phase} of layer 1, row " in outcome.where
    assert [check.site for check in outcome.checks if not check.ok] == [phase]


@pytest.mark.parametrize(("phase", "weight"), [("qkv", "wqkv"), ("w1", "w1"), ("head", "whead")])
def test_a_missing_fold_is_caught(phase: str, weight: str) -> None:
    """The weights are taken from the master, never from what the backend prepared."""

    def unfolded(task: Task, operands: Operands, out: Any) -> Any:
        plain = weights.reference_tensor(TINY, weight, task.layer, folded=False)
        return CATALOG.phase(phase).reference(operands | {"w": plain}, task, TINY.dims)

    outcome = gate_of("cpu-folded", at(phase, unfolded, layer=0))
    assert outcome.status == "FAIL"
    assert [check.site for check in outcome.checks if not check.ok] == [phase]


def test_a_fault_that_the_logits_can_not_see_is_caught_by_the_phases() -> None:
    """Of the last layer's output only each sequence's last row is read."""
    plan = CATALOG.resolve(parse_word("cpu-blas"), TINY.dims, "cpu")
    spoil = at("w2", zeroed_row)
    run = passed(plan, CATALOG.steps(plan, TINY.dims), spoil).run
    assert check_pass(run, TINY, TINY.dims, "fp32").ok
    assert gate_of("cpu-blas", spoil).where.startswith("w2 of layer 1, row 3: 1 from float64, allowed 1e-05")


def test_a_row_left_unwritten_is_told_where_it_happened_first() -> None:
    """What reads it is not finite either, in both traces."""

    def unwritten_row(task: Task, operands: Operands, out: Any) -> Any:
        spoilt = np.array(out)
        spoilt[3] = np.nan
        return spoilt

    outcome = gate_of("cpu-blas", at("w1", unwritten_row))
    assert outcome.where.startswith("w1 of layer 1, row 3: not finite (and 3 more")


def test_logits_that_are_not_finite_fail_without_a_number() -> None:
    outcome = gate_of("cpu-blas", at("head", lambda task, operands, out: out * np.nan, layer=0))
    assert (outcome.status, outcome.pass_error) == ("FAIL", None)
    assert "head of layer 0, row 0: not finite" in outcome.where
    assert "logits of token set 0, sequence 0, buffers poisoned with nan: not finite" in outcome.where


def test_a_read_of_poison_is_caught_though_relu_launders_it() -> None:
    """max(nan, 0) is 0 on a GPU: there the NaN run can pass and the 1e30 run must not."""
    plan = CATALOG.resolve(parse_word("cpu-blas"), TINY.dims, "cpu")

    def run(ids: NDArray[np.int32], poison: float) -> Floats:
        out = reference.float64_pass(TINY, ids).astype(np.float32)
        out[0, 5] += np.fmax(np.float32(poison), np.float32(0))
        return out

    outcome = check_pass(run, TINY, TINY.dims, plan.math)
    assert outcome.status == "FAIL"
    assert "token set 1" in outcome.where
    assert "token set 0" not in outcome.where


# --- batches ------------------------------------------------------------------------------------------


def exact(ids: NDArray[np.int32]) -> Floats:
    return np.stack([reference.float64_pass(TINY, ids[i : i + 1])[0] for i in range(len(ids))]).astype(
        np.float32
    )


@pytest.mark.parametrize("batch", [1, 2, 6, 12, 30])
def test_timed_batches_hold_each_sequence_once_and_differ_at_every_place(batch: int) -> None:
    first, second = gate.timed_tokens(TINY, replace(TINY.dims, batch=batch))
    assert first.shape == second.shape == (batch, TINY.dims.seq)
    assert len(np.unique(first, axis=0)) == len(np.unique(second, axis=0)) == batch
    assert (first != second).any(axis=1).all(), "what is left over from the other batch is wrong"
    assert np.array_equal(second[1:], first[:-1])


@pytest.mark.parametrize("batch", [*range(1, 70), 127, 128, 129])
def test_no_two_places_hold_equal_sequences_in_both_traces(batch: int) -> None:
    """So no leak between two places, at whatever distance, goes unseen."""
    traces = gate.trace_tokens(TINY, replace(TINY.dims, batch=batch))
    pairs = {(a.tobytes(), b.tobytes()) for a, b in zip(*traces, strict=True)}
    assert len(pairs) == batch
    kinds = max(len(np.unique(trace, axis=0)) for trace in traces)
    assert kinds <= max(gate.LEAST_KINDS, math.isqrt(batch - 1) + 1), "the reference's cost"


def test_one_different_bit_between_a_sequences_two_places_fails() -> None:
    dims = replace(TINY.dims, batch=3)

    def run(ids: NDArray[np.int32], poison: float) -> Floats:
        out = exact(ids)
        out[2, 7] = np.nextafter(out[2, 7], np.float32(np.inf))
        return out

    outcome = check_pass(run, TINY, dims, "fp32")
    assert outcome.status == "FAIL"
    assert "places 1 and 2" in outcome.where
    assert "bits" in outcome.where
    assert check_pass(run, TINY, dims, "fp32", bitwise_row_invariant=False).ok


@pytest.mark.parametrize("distance", [1, 2, 4, 5, 6, 7])
@pytest.mark.parametrize("bitwise_row_invariant", [False, True])
def test_a_result_of_another_sequence_fails(distance: int, bitwise_row_invariant: bool) -> None:
    dims = replace(TINY.dims, batch=8)

    def run(ids: NDArray[np.int32], poison: float) -> Floats:
        return np.roll(exact(ids), distance, axis=0)

    outcome = check_pass(run, TINY, dims, "fp32", bitwise_row_invariant)
    assert outcome.status == "FAIL"
    assert "token set 0, sequence" in outcome.where
    assert "token set 1, sequence" in outcome.where


@pytest.mark.parametrize(("batch", "distance"), [(6, 5), (12, 5), (12, 10), (26, 6), (26, 25)])
def test_attention_to_another_sequences_keys_fails(batch: int, distance: int) -> None:
    """Whatever the distance: also the one at which a traced batch repeats its sequences."""
    dims = replace(TINY.dims, batch=batch)

    def leak(task: Task, operands: Operands, out: Any) -> Any:
        keys = np.array(operands["k"])
        keys[distance * dims.seq :] = operands["k"][: -distance * dims.seq]
        return CATALOG.phase("attention").reference(operands | {"k": keys}, task, dims)

    outcome = gate_of(f"cpu-blas,batch={batch}", at("attention", leak))
    assert [check.site for check in outcome.checks if not check.ok] == ["attention"]


# --- timed passes -------------------------------------------------------------------------------------


def gated(repeats_bits: bool) -> gate.GatedPass:
    dims = replace(TINY.dims, batch=2)
    logits = tuple(exact(ids) for ids in gate.timed_tokens(TINY, dims))
    return gate.GatedPass(TINY, dims, "fp32", logits, repeats_bits)


@pytest.mark.parametrize("repeats_bits", [False, True])
def test_timed_logits_of_the_gated_bits_are_right_and_those_of_the_other_batch_wrong(
    repeats_bits: bool,
) -> None:
    passed = gated(repeats_bits)
    first, second = passed.logits
    assert passed.fault_of([(0, first.copy()), (1, second.copy())]) == ""
    assert passed.fault_of([]) == ""
    stale = passed.fault_of([(0, first), (1, first)])
    assert stale.startswith("logits of a timed pass, token set 1, sequence ")
    assert "from float64, allowed 1e-05" in stale
    assert "not finite" in passed.fault_of([(0, np.full_like(first, np.nan))])


def test_other_bits_than_the_gated_ones_fail_where_the_plan_repeats_them() -> None:
    moved = gated(True).logits[1].copy()
    moved[1, 3] = np.nextafter(moved[1, 3], np.float32(np.inf))
    assert (
        gated(True)
        .fault_of([(1, moved)])
        .endswith("token set 1, sequence 1: not the bits that the gated pass gave")
    )
    assert gated(False).fault_of([(1, moved)]) == ""


def test_phases_of_a_batch_are_checked_in_every_row() -> None:
    """Sequences that are given the same share one reference; the seventh's rows are still compared."""
    plan = CATALOG.resolve(parse_word("cpu-blas,batch=7"), TINY.dims, "cpu")
    dims = plan_dims(TINY, plan)
    steps = CATALOG.steps(plan, dims, keep_layers=True)

    def stale(task: Task, operands: Operands, out: Any) -> Any:
        spoilt = np.array(out)
        spoilt[-1] = spoilt[-2]
        return spoilt

    for spoil, wrong in ((None, []), (at("attention", stale), ["attention"])):
        kept = replace(passed(plan, steps, spoil), keep_layers=True)
        kept.run(gate.trace_tokens(TINY, dims)[0], 1e30)
        checks = phase_check.check_phases(kept, steps, TINY, plan, dims)
        assert [check.site for check in checks if not check.ok] == wrong
    assert next(check.row for check in checks if not check.ok) == 7 * 16 - 1


# --- kernels that fuse --------------------------------------------------------------------------------


def test_a_fused_step_is_held_against_its_chained_phases() -> None:
    """Nothing of its inside is read: the fused kernel may leave it unwritten."""
    fused = Kernel("ln2_w1", "cpu", "", ("ln2", "w1"), fuses=True)
    catalog = replace(CATALOG, records=(*CATALOG.records, fused))
    plan = catalog.resolve(parse_word("cpu-pruned,w1:ln2_w1"), TINY.dims, "cpu")
    steps = catalog.steps(plan, TINY.dims, keep_layers=True)
    kept = replace(passed(plan, steps), keep_layers=True)
    kept.run(gate.trace_tokens(TINY, TINY.dims)[0], math.nan)
    kept.memory["xn2"][:] = np.nan
    checks = {check.site: check for check in phase_check.check_phases(kept, steps, TINY, plan, TINY.dims)}
    assert checks["ln2+w1"].ok
    assert checks["ln2@1+w1@1"].ok
    kept.memory["h"][0, 300] += np.float32(0.01)
    failed = [check for check in phase_check.check_phases(kept, steps, TINY, plan, TINY.dims) if not check.ok]
    assert next((check.site, check.layer, check.row) for check in failed) == ("ln2+w1", 0, 1)


def test_a_fused_kernel_that_writes_every_output_is_checked_phase_by_phase() -> None:
    whole = Kernel("mega", "cpu", "", tuple(p.name for p in CATALOG.phases), fuses=True, stamped=True)
    catalog = replace(CATALOG, records=(*CATALOG.records, whole))
    outcome = gate_of("cpu-pruned,embed:mega", at("w1", skipped_tile, layer=0), catalog)
    assert [check.site for check in outcome.checks] == [s.name for s in CATALOG.sites(TINY.dims, True)]
    assert [check.site for check in outcome.checks if not check.ok] == ["w1"]


# --- what is compared ---------------------------------------------------------------------------------


def test_a_second_trace_is_computed_again_only_where_its_bits_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = CATALOG.resolve(parse_word("cpu-blas,batch=8"), TINY.dims, "cpu")
    dims = plan_dims(TINY, plan)
    steps = CATALOG.steps(plan, dims, keep_layers=True)
    kept = replace(passed(plan, steps), keep_layers=True)
    known: phase_check.Known = {}
    compared: list[str] = []
    compare = phase_check._Checker._compare

    def counted(self: Any, step: Step, *rest: Any) -> PhaseCheck:
        compared.append(step.site)
        return compare(self, step, *rest)

    monkeypatch.setattr(phase_check._Checker, "_compare", counted)

    def check() -> tuple[PhaseCheck, ...]:
        compared.clear()
        return phase_check.check_phases(kept, steps, TINY, plan, dims, known)

    first, second = gate.trace_tokens(TINY, dims)
    kept.run(first, math.nan)
    outcome = check()
    assert len(compared) == len(outcome) == len(steps)
    assert check() == outcome
    assert compared == []
    # A pass of rows that are rounded alike wherever they stand leaves the same bits at other places.
    moved = [next(i for i in range(8) if np.array_equal(first[i], ids)) for ids in second]
    for name, buffer in kept.memory.items():
        by_sequence = buffer.reshape(len(buffer), 8, -1)
        kept.memory[name] = by_sequence[:, moved].reshape(buffer.shape)
    assert check() == outcome
    assert compared == []
    kept.memory["h"][0, 300] += np.float32(0.01)
    wrong = [(check.site, check.layer) for check in check() if not check.ok]
    assert wrong == [("w1", 0), ("w2", 0)], "what wrote it, and what was computed from something else"
    assert compared == ["w1", "w2"]


@pytest.mark.parametrize("at_once", [1, 3 * 16 * 256, phase_check.MOST_COMPARED])
def test_the_worst_row_is_found_however_many_are_compared_at_a_time(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(phase_check, "MOST_COMPARED", at_once)

    def worse(task: Task, operands: Operands, out: Any) -> Any:
        spoilt = np.array(out)
        spoilt[[20, 70]] *= [[1.001], [1.002]]
        return spoilt

    outcome = gate_of("cpu-blas,batch=7", at("w1", worse))
    (check,) = [check for check in outcome.checks if not check.ok]
    assert (check.site, check.layer, check.row) == ("w1", 1, 70)
    assert check.error == pytest.approx(2e-3, rel=1e-3)


def test_a_row_whose_few_outputs_cancel_is_no_fault_and_a_wrong_one_is() -> None:
    expected = np.array([[1.0], [-0.7], [1e-4], [0.0]])
    rounded = expected + 1e-8
    error, _ = compare.worst_row(rounded.astype(np.float64), expected)
    assert error is not None
    assert error < 1e-6
    missing = expected * [[1], [1], [0], [1]]
    error, row = compare.worst_row(missing, expected)
    assert row == 2
    assert error is not None
    assert error > 1e-3


# --- combining ----------------------------------------------------------------------------------------

PASSED = Gate("PASS pass-only", 1e-7, 1e-5)


def test_combine_keeps_the_worst_of_each_site_and_names_the_first_that_failed() -> None:
    checks = (
        PhaseCheck("w1", 0, 1e-7, 1e-5, 4),
        PhaseCheck("w1", 1, 2e-5, 1e-5, 5),
        PhaseCheck("w2", 1, None, 1e-5, 6),
        PhaseCheck("w2", 2, 1e-3, 1e-5, 7),
    )
    outcome = gate.combine(PASSED, checks)
    assert outcome.status == "FAIL"
    assert outcome.checks == (checks[1], checks[2])
    assert outcome.where == "w1 of layer 1, row 5: 2e-05 from float64, allowed 1e-05 (and 2 more checks)"


def test_combine_keeps_the_worst_element_of_each_site_wherever_it_is() -> None:
    checks = (
        PhaseCheck("w1", 0, 5e-6, 1e-5, 4, ElementCheck(4, 0, 1e-6, 1e-5, layer=0)),
        PhaseCheck("w1", 1, 1e-6, 1e-5, 5, ElementCheck(6, 9, 3e-5, 1e-5, layer=1)),
        PhaseCheck("w1", 2, 2e-6, 1e-5, 5, ElementCheck(7, 1, 0.0, 0.0, layer=2)),
    )
    outcome = gate.combine(PASSED, checks)
    (worst,) = outcome.checks
    assert (worst.layer, worst.error, worst.element) == (0, 5e-6, checks[1].element)
    assert not worst.ok
    assert outcome.where == "w1 of layer 1, row 6, column 9: 3e-05 from float64, rounding explains 1e-05"


def test_an_element_that_may_not_differ_at_all_is_the_worst_that_does() -> None:
    assert ElementCheck(0, 0, 1e-30, 0.0).share == math.inf
    assert ElementCheck(0, 0, 0.0, 0.0).share == 0
    assert ElementCheck(0, 0, 1e30, None).ok


def test_a_failed_pass_stays_failed_whatever_the_phases_say() -> None:
    failed = replace(PASSED, status="FAIL", pass_error=1.0, where="logits are off")
    outcome = gate.combine(failed, (PhaseCheck("w1", 0, 1e-7, 1e-5, 0),))
    assert (outcome.status, outcome.where) == ("FAIL", "logits are off")


# --- the reference's cache ----------------------------------------------------------------------------


def test_the_reference_is_kept_and_a_broken_entry_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = reference_logits(TINY, 0, 2)
    (file,) = (tmp_path / "references").rglob("*.npy")
    with monkeypatch.context() as patch:
        patch.setattr(reference, "float64_pass", lambda workload, ids: pytest.fail("not read back"))
        reference.references.cache_clear()
        assert np.array_equal(reference_logits(TINY, 0, 1), first[:1])
    whole = file.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    for broken in (b"", b"no array", whole[:-8], whole + b"more", bytes(len(whole)), bytes(flipped)):
        file.write_bytes(broken)
        reference.references.cache_clear()
        assert np.array_equal(reference_logits(TINY, 0, 2), first)
        assert file.read_bytes() == whole, "kept anew"


def test_seeds_and_token_sets_are_kept_apart() -> None:
    logits = [
        reference_logits(workload, token_set)
        for workload in (TINY, replace(TINY, seed=1))
        for token_set in (0, 1)
    ]
    assert len({array.tobytes() for array in logits}) == 4


def test_a_cache_that_can_not_be_written_costs_nothing_but_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setattr(reference, "cache_dir", lambda name: tmp_path / "file" / name)
    assert reference_logits(TINY, 0).shape == (1, 256)


def test_the_shipped_logits_are_those_computed_here() -> None:
    """If not, the fill or the reference has changed: `reference.ship(WORKLOADS[0])` writes them again.

    The first sequence stands for all, for time: they are written by one call.
    """
    (computed,) = reference.compute(GPT2_SMALL, ((0, 1),))
    weights.master.cache_clear()
    kept = reference_logits(GPT2_SMALL, 0)
    np.testing.assert_allclose(kept, computed, rtol=1e-10, atol=1e-12)


def test_the_standard_workload_ships_all_that_the_gate_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "compute", lambda *wanted: pytest.fail("computed"))
    for batch in (1, 2, 64):
        dims = replace(GPT2_SMALL.dims, batch=batch)
        outcome = check_pass(
            lambda ids, poison: np.zeros((len(ids), 256), np.float32), GPT2_SMALL, dims, "fp32"
        )
        assert outcome.pass_error == pytest.approx(1.0)
