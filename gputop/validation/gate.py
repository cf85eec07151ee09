"""The correctness check: no gate, no time.

*Pass*: last-token logits of two token sets against float64. *Phases*: every task's output, all rows,
against float64 on the inputs that this very pass gave it. Buffers are poisoned before each run, since
logits alone are blind to a stale row, and ReLU launders NaN. *Timed passes*: the logits of each one
against those that the pass gate accepted, so that the code that was timed is the code that was checked.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from hashlib import blake2b
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from gputop.model import activations
from gputop.model.rng import tokens
from gputop.model.weights import TENSORS, reference_tensor
from gputop.phases import phases
from gputop.plan.types import Dims, Math, Phase, Plan, Step, View, WeightView, Workload
from gputop.results.records import Gate, GateStatus, PhaseCheck
from gputop.util.heartbeat import beat
from gputop.validation.reference import MOST_SCORES, SEQUENCES_AT_ONCE, references

if TYPE_CHECKING:
    from typing import Protocol

    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Doubles = NDArray[np.float64]
    Tokens = NDArray[np.int32]
    Run = tuple[Tokens, float]
    """Tokens [batch, seq] of a pass, and what its buffers are poisoned with."""
    TimedLogits = tuple[int, Floats]
    """Which of the two timed batches a pass took, and the logits [batch, vocab] that it left."""

    class Trace(Protocol):
        """A pass that kept every layer's buffers."""

        def read(self, view: View) -> Floats: ...


PASS_TOLERANCES: Mapping[Math, float] = {"fp32": 1e-5, "tf32": 4e-3, "bf16": 2e-2}
POISONS = (math.nan, 1e30)
LEAST_KINDS = 5
"""A traced batch of at most this many sequences has no two alike."""
SMALL_ROW = 0.1
"""A row below this share of all rows' root mean square is held against that share of it: what a row of few
outputs loses where they cancel says nothing of the kernel."""
MOST_COMPARED = 1 << 21
"""Elements compared at a time: in float64 a large batch would take twice its own memory."""

Known = MutableMapping[tuple[str, int], tuple[frozenset[bytes], PhaseCheck]]
"""Site and layer -> the different sequences checked there (digests of input and output), and the outcome."""


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

    In float64: the sequences of a reference pass or a trace with their widest activations, a tensor before
    and after its fold, and a few blocks of what is compared.
    """
    sequences = max(min(dims.batch + 1, SEQUENCES_AT_ONCE), min(dims.batch, _kinds(dims.batch)))
    activations = sequences * dims.seq * (8 * dims.d_model + 3 * dims.d_ff)
    tensors = 3 * max(math.prod(tensor.shape(dims)) for tensor in TENSORS)
    return (activations + tensors + 4 * (MOST_COMPARED + MOST_SCORES)) * np.float64().nbytes


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
        if not _within(error, tolerance):
            place = f"logits of token set {token_set}, sequence {row}, "
            faults.append(_sentence(f"{place}buffers poisoned with {POISONS[token_set]:g}", error, tolerance))
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
            if not _within(error, PASS_TOLERANCES[self.math]):
                return _sentence(f"{place}, sequence {row}", error, PASS_TOLERANCES[self.math])
            if self.repeats_bits:
                return f"{place}, sequence {moved}: not the bits that the gated pass gave"
        return ""


def _expected(workload: Workload, dims: Dims) -> tuple[Doubles, Doubles]:
    """float64 logits [batch, vocab] of both timed batches."""
    first, other = references(workload, ((0, dims.batch), (1, 1)))
    return first, np.concatenate([other, first[:-1]])


def check_phases(
    trace: Trace,
    steps: Iterable[Step],
    workload: Workload,
    plan: Plan,
    dims: Dims,
    known: Known | None = None,
) -> tuple[PhaseCheck, ...]:
    """One check a step, in pass order, of a trace made of `steps` that keep every layer.

    What a fusing kernel computes in one launch is chained in float64 from its first inputs to the outputs of
    its last phase, unless it writes what lies between too. Sequences with bitwise equal inputs share one
    reference; every row is compared. `known`: filled by the traces of one plan. A later trace is computed
    again in float64 only if it has sequences whose bits the one before it had not.
    """
    checker = _Checker(trace, workload, plan, dims, {} if known is None else known)
    # A broken pass hands on infinities; they are reported as not finite, not as NumPy's warnings.
    with np.errstate(invalid="ignore", over="ignore"):
        return tuple(checker.check(part) for step in steps for part in step.apart())


def combine(pass_gate: Gate, checks: Sequence[PhaseCheck]) -> Gate:
    """The whole gate: the pass's, the worst check of each site, and what failed first in pass order."""
    failed = [check for check in checks if not check.ok]
    where = [pass_gate.where] if pass_gate.where else []
    if failed:
        first = failed[0]
        place = f"{first.site} of layer {first.layer}, row {first.row}"
        more = f" (and {len(failed) - 1} more checks)" if len(failed) > 1 else ""
        where.insert(0, _sentence(place, first.error, first.tolerance) + more)
    passed: GateStatus = "PASS" if checks else "PASS pass-only"
    status: GateStatus = passed if pass_gate.ok and not failed else "FAIL"
    worst: dict[str, PhaseCheck] = {}
    for check in checks:
        if check.site not in worst or _badness(check) > _badness(worst[check.site]):
            worst[check.site] = check
    return replace(pass_gate, status=status, checks=tuple(worst.values()), where="; ".join(where))


def worst_row(out: Floats, expected: Doubles) -> tuple[float | None, int]:
    """The largest ||out - expected|| / ||expected|| over rows, and its row; None at the first not finite.

    See `SMALL_ROW` for rows much smaller than the others.
    """
    finite = np.isfinite(out).all(axis=1) & np.isfinite(expected).all(axis=1)
    if not finite.all():
        return None, int(np.argmin(finite))
    norms = np.linalg.norm(expected, axis=1)
    least = max(SMALL_ROW * math.sqrt(np.mean(norms**2)), np.finfo(np.float64).tiny)
    errors = np.linalg.norm(out - expected, axis=1) / np.maximum(norms, least)
    row = int(np.argmax(errors))
    return float(errors[row]), row


class _Checker:
    """The references of one trace."""

    def __init__(self, trace: Trace, workload: Workload, plan: Plan, dims: Dims, known: Known) -> None:
        self._trace, self._workload, self._plan, self._dims = trace, workload, plan, dims
        self._known = known
        self._seen: dict[View, list[bytes]] = {}
        """Digests of what was read: one step's output is another's input."""
        self._phases: dict[str, Phase] = {phase.name: phase for phase in phases()}

    def check(self, step: Step) -> PhaseCheck:
        beat()
        inputs = {view: _per_sequence(self._trace.read(view), self._dims.batch) for view in _read_by(step)}
        outs = {view: _per_sequence(self._trace.read(view), self._dims.batch) for view in _written_by(step)}
        read = [self._digests(view, values) for view, values in inputs.items()]
        given = [b"".join(parts) for parts in zip(*read, strict=True)]
        written = {view: self._digests(view, out) for view, out in outs.items()}
        place = (step.site, step.tasks[0].layer)
        ends = [b"".join(parts) for parts in zip(*written.values(), strict=True)]
        sequences = frozenset(a + b for a, b in zip(given, ends, strict=True))
        checked, outcome = self._known.get(place, (frozenset[bytes](), None))
        if outcome is None or not sequences <= checked:
            outcome = self._compare(step, inputs, outs, given, written)
            self._known[place] = (sequences, outcome)
        return outcome

    def _digests(self, view: View, values: Floats) -> list[bytes]:
        if view not in self._seen:
            self._seen[view] = _digests(values)
        return self._seen[view]

    def _compare(
        self,
        step: Step,
        inputs: Mapping[View, Floats],
        outs: Mapping[View, Floats],
        given: Sequence[bytes],
        written: Mapping[View, Sequence[bytes]],
    ) -> PhaseCheck:
        """The step's outputs [sequences, rows, columns] against float64 of each different sequence.

        `given`, `written`: what tells sequences apart by their inputs and by each output.
        """
        chosen, alike = _distinct(given)
        few = replace(self._dims, batch=len(chosen))
        chain = _Chain(few)
        for view, values in inputs.items():
            chain.write(self._few(view, few), values[chosen])
        for task in step.tasks:
            small = replace(task, output=self._few(task.output, few))
            operands = {role: self._operand(operand, chain, few) for role, operand in task.inputs}
            chain.write(small.output, self._phases[task.site.phase].reference(operands, small, few))
        tolerance = max(self._phases[t.site.phase].tolerances[self._plan.math] for t in step.tasks)
        found = []
        for view, out in outs.items():
            expected = _per_sequence(chain.read(self._few(view, few)), few.batch)
            different, _ = _distinct([a + b for a, b in zip(given, written[view], strict=True)])
            error, at = _worst_of(out[different], expected, [alike[sequence] for sequence in different])
            rows = out.shape[1]
            row = different[at // rows] * rows + at % rows
            found.append(PhaseCheck(step.site, task.layer, error, tolerance, row))
        return max(found, key=_badness)

    def _operand(self, operand: View | WeightView, chain: _Chain, few: Dims) -> Doubles:
        if isinstance(operand, View):
            return chain.read(self._few(operand, few))
        whole = reference_tensor(self._workload, operand.tensor, operand.layer, self._plan.fold)
        return whole[operand.start : operand.start + operand.outs]

    def _few(self, view: View, few: Dims) -> View:
        """The same rectangle with the rows of fewer sequences."""
        return replace(view, rows=view.rows * few.batch // self._dims.batch)


class _Chain:
    """What goes into a launch and what its tasks have computed so far, laid out as in the buffers."""

    def __init__(self, dims: Dims) -> None:
        self._dims = dims
        self._slots: dict[tuple[str, int], Doubles] = {}

    def write(self, view: View, values: NDArray[Any]) -> None:
        place = (view.buffer, view.slot)
        if place not in self._slots:
            self._slots[place] = np.full(activations.BY_NAME[view.buffer].size(self._dims), np.nan)
        _rectangle(self._slots[place], view)[:] = values.reshape(view.rows, view.columns)

    def read(self, view: View) -> Doubles:
        return _rectangle(self._slots[view.buffer, view.slot], view)


def _read_by(step: Step) -> tuple[View, ...]:
    """The views that a launch reads, without those that its own tasks write before."""
    written: set[tuple[str, int]] = set()
    read: dict[View, None] = {}
    for task in step.tasks:
        views = (operand for _, operand in task.inputs if isinstance(operand, View))
        read |= dict.fromkeys(view for view in views if (view.buffer, view.slot) not in written)
        written.add((task.output.buffer, task.output.slot))
    return tuple(read)


def _written_by(step: Step) -> tuple[View, ...]:
    """Return the views that a launch writes: of a fusing kernel those of the last phase it computes."""
    last = step.tasks[-1].site.phase
    return tuple(task.output for task in step.tasks if task.site.phase == last)


def _digests(values: NDArray[Any]) -> list[bytes]:
    """Of each sequence's bits in [sequences, rows, columns], on all cores: a large batch is gigabytes."""

    def digest(own: NDArray[Any]) -> bytes:
        return blake2b(np.ascontiguousarray(own).data).digest()

    if len(values) == 1:
        return [digest(values[0])]
    with ThreadPoolExecutor() as pool:
        return list(pool.map(digest, values))


def _distinct(digests: Sequence[bytes]) -> tuple[list[int], list[int]]:
    """The first sequence of each kind of inputs, and for every sequence the number of its kind."""
    kinds: dict[bytes, int] = {}
    chosen: list[int] = []
    alike: list[int] = []
    for sequence, digest in enumerate(digests):
        if digest not in kinds:
            kinds[digest] = len(chosen)
            chosen.append(sequence)
        alike.append(kinds[digest])
    return chosen, alike


def _worst_of(out: Floats, expected: Doubles, alike: Sequence[int]) -> tuple[float | None, int]:
    """As `worst_row`, of all sequences' rows; `alike`: which of the expected ones each is held against."""
    sequences, rows, columns = out.shape
    at_once = max(1, MOST_COMPARED // (rows * columns))
    worst: list[tuple[float, int]] = []
    for first in range(0, sequences, at_once):
        some = slice(first, first + at_once)
        error, row = worst_row(out[some].reshape(-1, columns), expected[alike[some]].reshape(-1, columns))
        if error is None:
            return None, first * rows + row
        worst.append((error, first * rows + row))
        beat()
    return max(worst, key=itemgetter(0))


def _per_sequence(rows: NDArray[Any], sequences: int) -> NDArray[Any]:
    """[sequences, rows of each, columns]."""
    return rows.reshape(sequences, -1, rows.shape[1])


def _rectangle(buffer: Doubles, view: View) -> Doubles:
    """The view's elements of a flat buffer, [rows, columns], in place. IndexError for one that it has not."""
    last = view.offset + (view.rows - 1) * view.ld + view.columns
    if last > len(buffer):
        raise IndexError(f"{view.buffer} has {len(buffer)} elements, and a view of it ends at {last}")
    item = buffer.itemsize
    return as_strided(buffer[view.offset :], (view.rows, view.columns), (view.ld * item, item))


def _first_unlike(a: Floats, b: Floats) -> int | None:
    """The first row whose bits differ between two arrays of one shape."""
    bits_a, bits_b = (np.ascontiguousarray(rows, np.float32).view(np.uint32) for rows in (a, b))
    same = (bits_a == bits_b).all(axis=1)
    return None if same.all() else int(np.argmin(same))


def _within(error: float | None, tolerance: float) -> bool:
    return error is not None and error <= tolerance


def _worst(errors: Sequence[float | None]) -> float | None:
    known = [error for error in errors if error is not None]
    return max(known) if len(known) == len(errors) else None


def _badness(check: PhaseCheck) -> float:
    return math.inf if check.error is None else check.error / check.tolerance


def _sentence(place: str, error: float | None, tolerance: float) -> str:
    if error is None:
        return f"{place}: not finite"
    return f"{place}: {error:.2g} from float64, allowed {tolerance:g}"
