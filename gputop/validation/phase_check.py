"""The phases of a traced pass against float64, each on the inputs that this very pass gave it.

Rows are held against a tolerance of their norm, and every element against what rounding allows it. A task
whose products run on no tensor core is held to fp32, whatever the plan's math.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from gputop.model import activations
from gputop.model.number_formats import nearest_bf16, of_buffer, of_weight
from gputop.model.weights import reference_tensor
from gputop.phases import phases
from gputop.phases.rounding import stored_in_bf16
from gputop.plan.types import Dims, Math, Phase, Plan, Rounded, Step, Task, View, WeightView, Workload
from gputop.planner.kernel_calls import shapes_of
from gputop.results.records import ElementCheck, PhaseCheck
from gputop.util.heartbeat import beat
from gputop.validation.compare import badness, worst_element, worst_row

if TYPE_CHECKING:
    from typing import Protocol

    from numpy.typing import NDArray

    from gputop.validation.compare import Doubles, Floats

    class Trace(Protocol):
        """A pass that kept every layer's buffers."""

        def read(self, view: View) -> Floats: ...


MOST_COMPARED = 1 << 21
"""Elements compared at a time: in float64 a large batch would take twice its own memory."""

FP32_PIPES = frozenset({"fp32", "fp32_1"})
"""Ceilings that a kernel names whose products are fp32 multiply-adds (`LaunchShape.pipe`)."""

Known = MutableMapping[tuple[str, int], tuple[frozenset[bytes], PhaseCheck]]
"""Site and layer -> the different sequences checked there (digests of input and output), and the outcome."""


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
    reference; every row and element is compared. `known`: filled by the traces of one plan. A later trace
    is computed again in float64 only if it has sequences whose bits the one before it had not.
    """
    checker = _Checker(trace, workload, plan, dims, {} if known is None else known)
    # A broken pass hands on infinities; they are reported as not finite, not as NumPy's warnings.
    with np.errstate(invalid="ignore", over="ignore"):
        return tuple(checker.check(part) for step in steps for part in step.apart())


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
        chain, slack = _Chain(few), _Chain(few)
        for view, values in inputs.items():
            chain.write(self._few(view, few), values[chosen])
        expected: dict[View, Rounded] = {}
        for task in step.tasks:
            small = replace(task, output=self._few(task.output, few))
            operands = {role: self._operand(operand, chain, few) for role, operand in task.inputs}
            rounded = self._phases[task.site.phase].rounded(
                operands, self._slack(task, slack, few), small, few, self._math(step, task)
            )
            if task.output in outs:
                stored = of_buffer(task.output.buffer, self._plan.math)
                expected[task.output] = stored_in_bf16(rounded) if stored == "bf16" else rounded
            else:
                # Seen by nobody: the next task reads it as rounded as it may be.
                chain.write(small.output, rounded.value)
                slack.write(small.output, np.maximum(rounded.below, rounded.above))
        tolerance = max(self._phases[t.site.phase].tolerances[self._math(step, t)] for t in step.tasks)
        found = []
        for view, out in outs.items():
            different, _ = _distinct([a + b for a, b in zip(given, written[view], strict=True)])
            worst = _worst_of(out[different], expected[view], [alike[sequence] for sequence in different])
            row, element = _place(worst.row, different, out), worst.element
            if element is not None:
                element = replace(element, row=_place(element.row, different, out), layer=task.layer)
            found.append(PhaseCheck(step.site, task.layer, worst.error, tolerance, row, element))
        return max(found, key=badness)

    def _math(self, step: Step, task: Task) -> Math:
        """Of the products that the task's output comes from, or goes into before anybody sees it.

        The plan's math if they run on tensor cores, else fp32; bf16 where operands are stored so.
        """
        if self._plan.math == "bf16":
            return "bf16"
        if self._phases[task.site.phase].kind == "pointwise" and task.output in _written_by(step):
            return "fp32"
        own = Step(step.kernel, (task,)) if step.kernel.stamped else step
        pipes = {shape.pipe for shape in shapes_of(own, self._plan, self._dims)} - {None}
        return "fp32" if pipes and pipes <= FP32_PIPES else self._plan.math

    def _slack(self, task: Task, slack: _Chain, few: Dims) -> dict[str, Doubles]:
        """How far the operands that the launch itself wrote may be off, by role."""
        views = ((role, operand) for role, operand in task.inputs if isinstance(operand, View))
        return {role: slack.read(self._few(view, few)) for role, view in views if slack.holds(view)}

    def _operand(self, operand: View | WeightView, chain: _Chain, few: Dims) -> Doubles:
        if isinstance(operand, View):
            return chain.read(self._few(operand, few))
        whole = reference_tensor(self._workload, operand.tensor, operand.layer, self._plan.fold)
        part = whole[operand.start : operand.start + operand.outs]
        if of_weight(operand.tensor, self._plan.math) == "bf16":
            return nearest_bf16(part.astype(np.float32)).astype(np.float64)
        return part

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

    def holds(self, view: View) -> bool:
        """Whether the view's buffer was written."""
        return (view.buffer, view.slot) in self._slots


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


@dataclass(frozen=True, slots=True)
class _Worst:
    """The worst row and element of an output, rows counted through all its sequences."""

    error: float | None
    row: int
    element: ElementCheck | None


def _worst_of(out: Floats, expected: Rounded, alike: Sequence[int]) -> _Worst:
    """Of out [sequences, rows, columns]; `alike`: which of the expected sequences each is held against."""
    sequences, rows, columns = out.shape
    value, below, above = (
        array.reshape(-1, rows, columns) for array in (expected.value, expected.below, expected.above)
    )
    at_once = max(1, MOST_COMPARED // (rows * columns))
    found: list[_Worst] = []
    for first in range(0, sequences, at_once):
        some = slice(first, first + at_once)
        held = alike[some]
        block = out[some].reshape(-1, columns)
        against = Rounded(*(array[held].reshape(-1, columns) for array in (value, below, above)))
        error, row = worst_row(block, against.value)
        if error is None:
            return _Worst(None, first * rows + row, None)
        element = worst_element(block, against)
        element = replace(element, row=first * rows + element.row)
        found.append(_Worst(error, first * rows + row, element))
        beat()
    worst = max(found, key=lambda each: each.error or 0.0)
    elements = (each.element for each in found if each.element is not None)
    return replace(worst, element=max(elements, key=lambda element: element.share))


def _place(row: int, different: Sequence[int], out: Floats) -> int:
    """A row of the `different` sequences as a row of all of them in `out` [sequences, rows, columns]."""
    rows = int(out.shape[1])
    sequence, own = divmod(row, rows)
    return different[sequence] * rows + own


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
