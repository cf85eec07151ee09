"""The correctness check: no gate, no time.

*Pass*: last-token logits of two token sets against float64. *Phases*: every task's output against float64 on
the inputs that this very pass gave it (phase_check.py). Buffers are poisoned before each run, since
logits alone are blind to a stale row, and ReLU launders NaN. *Timed passes*: the logits of each one
against those that the pass gate accepted, so that the code that was timed is the code that was checked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gputop.model.rng import tokens
from gputop.model.weights import TENSORS
from gputop.plan.types import Dims, Math, Workload
from gputop.results.records import Gate, GateStatus, PhaseCheck, beyond
from gputop.validation.compare import within, worst_row
from gputop.validation.phase_check import MOST_COMPARED
from gputop.validation.reference import MOST_SCORES, SEQUENCES_AT_ONCE, references

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gputop.validation.compare import Doubles, Floats

    Tokens = NDArray[np.int32]
    Run = tuple[Tokens, float]
    """Tokens [batch, seq] of a pass, and what its buffers are poisoned with."""
    TimedLogits = tuple[int, Floats]
    """Which of the two timed batches a pass took, and the logits [batch, vocab] that it left."""


PASS_TOLERANCES: Mapping[Math, float] = {"fp32": 1e-5, "tf32": 4e-3, "bf16": 2e-2}
POISONS = (math.nan, 1e30)
LEAST_KINDS = 5
"""A traced batch of at most this many sequences has no two alike."""


def timed_tokens(workload: Workload, dims: Dims) -> tuple[Tokens, Tokens]:
    """The two batches [batch, seq] that timed passes take in turn; no batch has a sequence twice.

    The second batch begins with a sequence of its own, and the first batch's follow one place further on.
    So every sequence stands at two places among different neighbours, and output that a kernel left over
    from the pass before is wrong at every place. (Sequences are drawn at random: a workload of few tokens
    and few words can repeat one.)
    """
    first = tokens(workload, 0, dims.batch)
    return first, np.concatenate([tokens(workload, 1, 1), first[:-1]])


def trace_tokens(workload: Workload, dims: Dims) -> tuple[Tokens, Tokens]:
    """The batches [batch, seq] of the two traced passes, one a poison, for `check_phases`.

    The float64 reference of a trace costs as many sequences as it has different ones. A large batch
    therefore has only about sqrt(batch) of them, but no two places hold equal sequences in both traces:
    place b holds sequence b mod n in the first trace and b div n in the second.
    """
    kinds = _kinds(dims.batch)
    drawn = tokens(workload, 1, min(kinds, dims.batch))
    place = np.arange(dims.batch)
    first = drawn[place % kinds]
    return first, first if dims.batch <= kinds else drawn[place // kinds]


def _kinds(batch: int) -> int:
    """Different sequences in a trace: n with n^2 >= batch."""
    return max(LEAST_KINDS, math.isqrt(batch - 1) + 1)


def need_bytes(dims: Dims) -> int:
    """Host memory that both gates take at most, beside what the pass itself does.

    In float64: the sequences of a reference pass or a trace with their widest activations and the bounds of
    those, a tensor before and after its fold, and a few blocks of what is compared.
    """
    sequences = max(min(dims.batch + 1, SEQUENCES_AT_ONCE), min(dims.batch, _kinds(dims.batch)))
    activations = sequences * dims.seq * (8 * dims.d_model + 6 * dims.d_ff)
    tensors = 3 * max(math.prod(tensor.shape(dims)) for tensor in TENSORS)
    return (activations + tensors + 8 * (MOST_COMPARED + MOST_SCORES)) * np.float64().nbytes


def pass_runs(workload: Workload, dims: Dims) -> tuple[Run, Run]:
    """The passes of the pass gate: both timed batches. Neither run depends on the other."""
    first, second = timed_tokens(workload, dims)
    return (first, POISONS[0]), (second, POISONS[1])


def judge_pass(
    outs: Sequence[Floats], workload: Workload, dims: Dims, math: Math, bitwise_row_invariant: bool = True
) -> Gate:
    """The pass gate, given the logits [batch, vocab] of each of `pass_runs`.

    Each sequence is held against its own float64 reference. A sequence must give equal bits at both its
    places, unless the plan has a kernel that rounds equal rows differently (`bitwise_row_invariant` False).
    """
    tolerance = PASS_TOLERANCES[math]
    faults: list[str] = []
    errors: list[float | None] = []
    for token_set, (out, expected) in enumerate(zip(outs, _expected(workload, dims), strict=True)):
        error, row = worst_row(out, expected)
        errors.append(error)
        if not within(error, tolerance):
            place = f"logits of token set {token_set}, sequence {row}, "
            faults.append(beyond(f"{place}buffers poisoned with {POISONS[token_set]:g}", error, tolerance))
    if bitwise_row_invariant and (moved := _first_unlike(outs[0][:-1], outs[1][1:])) is not None:
        faults.append(
            f"logits of one sequence differ in their bits at places {moved} and {moved + 1} of the batch"
        )
    return Gate(
        status="FAIL" if faults else "PASS pass-only",
        pass_error=_worst(errors),
        tolerance=tolerance,
        logits=tuple(float(value) for value in outs[0][0, :2]),
        where="; ".join(faults),
    )


@dataclass(frozen=True, slots=True)
class GatedPass:
    """What the pass gate accepted, which timed passes must repeat."""

    workload: Workload
    dims: Dims
    math: Math
    logits: tuple[Floats, ...]
    """[batch, vocab] of each of `pass_runs`."""
    repeats_bits: bool
    """False if a kernel of the plan may give other bits from run to run."""

    def fault_of(self, timed: Sequence[TimedLogits]) -> str:
        """What is wrong with logits that timed passes left, in a sentence; empty if nothing is.

        Their bits must be those of the gated pass. If they need not repeat, other bits are held against the
        float64 reference with the pass gate's tolerance.
        """
        for token_set, logits in timed:
            moved = _first_unlike(logits, self.logits[token_set])
            if moved is None:
                continue
            place = f"logits of a timed pass, token set {token_set}"
            error, row = worst_row(logits, _expected(self.workload, self.dims)[token_set])
            if not within(error, PASS_TOLERANCES[self.math]):
                return beyond(f"{place}, sequence {row}", error, PASS_TOLERANCES[self.math])
            if self.repeats_bits:
                return f"{place}, sequence {moved}: not the bits that the gated pass gave"
        return ""


def _expected(workload: Workload, dims: Dims) -> tuple[Doubles, Doubles]:
    """float64 logits [batch, vocab] of both timed batches."""
    first, other = references(workload, ((0, dims.batch), (1, 1)))
    return first, np.concatenate([other, first[:-1]])


def combine(pass_gate: Gate, checks: Sequence[PhaseCheck]) -> Gate:
    """The whole gate: the pass's, the worst check of each site, and what failed first in pass order."""
    failed = [check for check in checks if not check.ok]
    where = [pass_gate.where] if pass_gate.where else []
    if failed:
        more = f" (and {len(failed) - 1} more checks)" if len(failed) > 1 else ""
        where.insert(0, f"{failed[0].fault}{more}")
    passed: GateStatus = "PASS" if checks else "PASS pass-only"
    status: GateStatus = passed if pass_gate.ok and not failed else "FAIL"
    sites = dict.fromkeys(check.site for check in checks)
    worst = tuple(_worst_of_site([check for check in checks if check.site == site]) for site in sites)
    return replace(pass_gate, status=status, checks=worst, where="; ".join(where))


def _worst_of_site(checks: Sequence[PhaseCheck]) -> PhaseCheck:
    """The check with the worst row, with the worst element of all."""
    row = max(checks, key=lambda check: math.inf if check.error is None else check.error / check.tolerance)
    elements = [check.element for check in checks if check.element is not None]
    return replace(row, element=max(elements, key=lambda element: element.share, default=None))


def _first_unlike(a: Floats, b: Floats) -> int | None:
    """The first row whose bits differ between two arrays of one shape."""
    bits_a, bits_b = (np.ascontiguousarray(rows, np.float32).view(np.uint32) for rows in (a, b))
    same = (bits_a == bits_b).all(axis=1)
    return None if same.all() else int(np.argmin(same))


def _worst(errors: Sequence[float | None]) -> float | None:
    known = [error for error in errors if error is not None]
    return max(known) if len(known) == len(errors) else None
