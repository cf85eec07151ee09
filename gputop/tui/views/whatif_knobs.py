"""What the what-if view can turn besides a launch shape: everything that the model has a price for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import get_args

from gputop.perf import gpu_specs
from gputop.plan.types import KernelChoice, Math, Plan, PlanRequest
from gputop.results.whatif import WhatIfAsked
from gputop.tui.state import State

AS_RECORDED = "as recorded"
PARTS = (1, 2, 4, 8, 16, 32)
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
SEQUENCES = (16, 32, 64, 128, 256, 512, 1024)


@dataclass(frozen=True, slots=True)
class Subject:
    """What is turned: one site of a plan that was recorded."""

    plan: Plan
    request: PlanRequest
    site: str
    seq: int

    @property
    def choice(self) -> KernelChoice | None:
        """The site's kernel; None for a site that one kernel computes with its neighbours."""
        return dict(self.plan.dispatch).get(self.site)

    def asked(self, turned: Mapping[str, str]) -> WhatIfAsked:
        """Return what the model is asked; `turned`: field of a knob -> the value that it was turned to."""
        choice, parts = self.choice, turned.get("parts")
        sets = tuple((name, turned[name]) for name in ("batch", "math") if name in turned)
        uses = ((self.site, KernelChoice(choice.kernel, int(parts))),) if choice and parts else ()
        seq = int(turned["seq"]) if "seq" in turned else None
        return WhatIfAsked(self.request, sets, uses, seq, turned.get("device"))


def subject_of(state: State, site: str) -> Subject | None:
    """Return what can be turned of a recorded plan; None where plans are measured instead."""
    if not state.replaying or state.view is None or state.opened is None or state.pending:
        return None
    return Subject(state.view.plan, state.view.request, site, state.opened.workload.dims.seq)


@dataclass(frozen=True, slots=True)
class PriceKnob:
    """One thing that the model prices."""

    field: str
    title: str
    recorded: Callable[[Subject], str]
    """Its value as it was measured; empty if this site has no such thing."""
    others: tuple[str, ...]

    def values(self, subject: Subject) -> tuple[str, ...]:
        """Return every value in the order in which it is turned, the recorded one among them."""
        own = self.recorded(subject)
        if not own:
            return ()
        if own.isdigit():
            return tuple(map(str, sorted({int(own), *map(int, self.others)})))
        return tuple(dict.fromkeys((*self.others, own) if own in self.others else (own, *self.others)))

    def turned(self, subject: Subject, value: str, steps: int) -> str:
        """Return the value so many steps further, or the last one there is."""
        values = self.values(subject)
        if value not in values:
            return value
        return values[max(0, min(len(values) - 1, values.index(value) + steps))]


def _parts(subject: Subject) -> str:
    choice = subject.choice
    return str(choice.splits) if choice is not None and choice.splits is not None else ""


PRICE_KNOBS = (
    PriceKnob("parts", "parts of inner axis", _parts, tuple(map(str, PARTS))),
    PriceKnob("batch", "batch", lambda subject: str(subject.plan.batch), tuple(map(str, BATCHES))),
    PriceKnob("seq", "tokens of a sequence", lambda subject: str(subject.seq), tuple(map(str, SEQUENCES))),
    PriceKnob("math", "math", lambda subject: subject.plan.math, get_args(Math)),
    PriceKnob("device", "device", lambda _: AS_RECORDED, tuple(model.name for model in gpu_specs.MODELS)),
)
