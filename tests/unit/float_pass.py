"""A plan run in float32 through the phases' own references, with a fault planted into any of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputop.model import activations, weights
from gputop.plan.types import Plan, Step, Task, View, WeightView, Workload
from gputop.planner.resolver import Resolver, plan_dims
from tests.unit.emulated import Operand, as_is

Floats = NDArray[np.float32]
Operands = dict[str, Any]
Spoil = Callable[[Task, Operands, Any], Any]
"""(task, operands, right output) -> output: a fault planted into one kernel."""

CATALOG = Resolver.load()
MULTIPLIED = ("a", "w", "q", "k", "v")
"""Roles of the operands of products."""


def unspoilt(task: Task, operands: Operands, out: Any) -> Any:
    return out


def at(phase: str, change: Callable[[Task, Operands, Any], Any], layer: int = 1) -> Spoil:
    """The change, in one phase of one layer."""

    def spoil(task: Task, operands: Operands, out: Any) -> Any:
        return change(task, operands, out) if (task.site.phase, task.layer) == (phase, layer) else out

    return spoil


@dataclass
class FloatPass:
    """A plan in float32, task by task over poisoned buffers, with a fault where one is planted."""

    workload: Workload
    plan: Plan
    steps: tuple[Step, ...]
    keep_layers: bool
    spoil: Spoil = unspoilt
    operand: Operand = as_is
    """How a product rounds its operands before it multiplies them."""
    exact: tuple[str, ...] = ()
    """Phases whose products do not."""

    def run(self, ids: NDArray[np.int32], poison: float) -> Floats:
        dims = plan_dims(self.workload, self.plan)
        self.memory = {
            buffer.name: np.full(
                (activations.slots(buffer, dims, self.keep_layers), buffer.size(dims)), poison, np.float32
            )
            for buffer in activations.table(self.plan.prune)
        }
        self.memory["tokens"][0] = ids.reshape(-1)
        for task in (task for step in self.steps for task in step.tasks):
            given = {role: self._operand(operand) for role, operand in task.inputs}
            rounds = as_is if task.site.phase in self.exact else self.operand
            operands = {role: rounds(x) if role in MULTIPLIED else x for role, x in given.items()}
            right = CATALOG.phase(task.site.phase).reference(operands, task, dims)
            self.memory[task.output.buffer][task.output.slot][elements(task.output)] = self.spoil(
                task, operands, right
            )
        return self.memory["logits"].reshape(dims.batch, -1)

    def read(self, view: View) -> Floats:
        read: Floats = self.memory[view.buffer][view.slot][elements(view)]
        return read

    def _operand(self, operand: View | WeightView) -> NDArray[Any]:
        if isinstance(operand, View):
            return self.read(operand)
        whole = weights.reference_tensor(self.workload, operand.tensor, operand.layer, self.plan.fold)
        return whole[operand.start : operand.start + operand.outs].astype(np.float32)


def elements(view: View) -> NDArray[np.intp]:
    """Indices [rows, columns] of a view in its flat buffer."""
    return view.offset + np.arange(view.rows)[:, None] * view.ld + np.arange(view.columns)
